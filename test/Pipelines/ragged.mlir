// RUN: nm-opt %s --convert-linalg-to-nm-sparse --nm-sparse-materialize-encodings --nm-sparse-select-storage=density=25 | FileCheck %s
// RUN: nm-opt %s --convert-linalg-to-nm-sparse --nm-sparse-materialize-encodings --convert-nm-sparse-to-linalg | FileCheck %s --check-prefix=ORACLE
// RUN: nm-opt %s --convert-linalg-to-nm-sparse --nm-sparse-materialize-encodings --nm-sparse-select-schedule --nm-sparse-tile --canonicalize \
// RUN:   | FileCheck %s --check-prefix=TILE
// RUN: nm-opt %s --convert-linalg-to-nm-sparse --nm-sparse-materialize-encodings --nm-sparse-select-schedule --nm-sparse-tile --nm-sparse-promote \
// RUN:   | FileCheck %s --check-prefix=PROMOTE

// A free weight of larger blocks than one element is stored panel by panel. How many
// rows there are is known at run time.
// CHECK-LABEL: func.func @argument
// CHECK-SAME: tensor<?x64xf16> {nm_sparse.component = #nm_sparse.component<"values", weight = 0, of = #nm_sparse.packed<#nm_sparse.ragged<#[[FREE:sparse[0-9]*]]>, [200, 300], f16>>}
// CHECK-SAME: tensor<?x1xi32> {nm_sparse.component = #nm_sparse.component<"index", weight = 0
// CHECK-SAME: tensor<4x4xi32> {nm_sparse.component = #nm_sparse.component<"panels", weight = 0
// CHECK: nm_sparse.matmul #[[FREE]] storage = #nm_sparse.ragged<#[[FREE]], density = 25> indexing_maps
// CHECK-SAME: tensor<?x1xi32>, tensor<4x4xi32>)

// ORACLE-LABEL: func.func @argument
// ORACLE: nm_sparse.unpack #{{.*}} : tensor<?x64xf16>, tensor<?x1xi32>, tensor<4x4xi32> to tensor<300x200xf16>

// The CTA with place `p` computes the panel that comes there, longest first, and the
// K loop has as many steps as that panel has rows.
// TILE-LABEL: func.func @argument
// TILE: scf.forall (%{{.*}}, %[[OUTPUT:.*]]) =
// TILE: %[[PLACE:.*]] = affine.apply #{{.*}}()[%[[OUTPUT]]]
// TILE: %[[NEXT:.*]] = tensor.extract %[[PANELS:.*]][%[[PLACE]], %c2]
// TILE: %[[PANEL:.*]] = arith.index_castui %[[NEXT]]
// TILE: %[[FIRST:.*]] = tensor.extract %{{.*}}[%c0, %c0] : tensor<1x4xi32>
// TILE: %[[COUNT:.*]] = tensor.extract %{{.*}}[%c0, %c1] : tensor<1x4xi32>
// TILE: %[[ROWS:.*]] = arith.index_castui %[[COUNT]]
// TILE: nm_tile.k_loop %[[ROW:.*]] = %c0 to %[[ROWS]] step %c[[T:[0-9]+]]
// TILE: nm_sparse.matmul {{.*}} tensor<[[T]]x64xf16>, tensor<[[T]]x1xi32>) {{.*}} at(first_row = %[[ROW]])

// Producers look rows up where the index lies; no table is made.
// PROMOTE-LABEL: func.func @argument
// PROMOTE: nm_tile.k_loop
// PROMOTE: %[[INDEX:.*]] = tensor.extract_slice %{{.*}} : tensor<?x1xi32> to tensor<{{[0-9]+}}x1xi32>
// PROMOTE: nm_tile.async_gather {{.*}} by_row ins(%{{.*}}, %[[INDEX]]
// PROMOTE: nm_tile.matmul #{{.*}} schedule = {{.*}} condensed
#w = #nm_sparse.encoding<free, block = [1, 64], dim = 1>
func.func @argument(%x: tensor<?x300xf16>, %w: tensor<200x300xf16, #w>, %init: tensor<?x200xf32>) -> tensor<?x200xf32> {
  %y = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>,
                                      affine_map<(m, n, k) -> (m, n)>]
    ins(%x, %w : tensor<?x300xf16>, tensor<200x300xf16, #w>) outs(%init : tensor<?x200xf32>) -> tensor<?x200xf32>
  return %y : tensor<?x200xf32>
}
