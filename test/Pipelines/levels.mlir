// RUN: nm-opt %s | nm-opt | FileCheck %s --check-prefix=SAME
// RUN: nm-opt %s --nm-sparse-select-storage | FileCheck %s --check-prefix=STORE
// RUN: nm-opt %s --nm-sparse-select-storage --nm-sparse-select-schedule=chip=sm_90a --nm-sparse-tile | FileCheck %s --check-prefix=TILE
// RUN: nm-opt %s --nm-sparse-select-storage --nm-sparse-select-schedule=chip=sm_90a --nm-sparse-tile --nm-sparse-promote --canonicalize | FileCheck %s --check-prefix=PROMOTE

// With two levels, the outer index stays as it is, and the inner index becomes
// bits: 200 rows are 25 windows of 8, which keep 100 rows, in 4 tiles of 32.

#e = #nm_sparse.encoding<[4:8, block = [1, 64]], [2:4]>
#packed = #nm_sparse.packed<#e, [200, 128], f16>
#x = affine_map<(m, n, k) -> (k, m)>
#w = affine_map<(m, n, k) -> (k, n)>
#y = affine_map<(m, n, k) -> (n, m)>
#s = #nm_tile.schedule<tile = [64, 128, 32], product = wgmma_sp<warps = 8>,
  transfers = {x = gather, values = bulk, index = resident}, pipeline = ring<stages = 2, producers = 4>>

// SAME: nm_sparse.matmul #{{.*}} indexing_maps = {{.*}} ins(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} : {{.*}}, tensor<50x128xi8>) outs({{.*}} -> tensor<128x64xf16>

// STORE-LABEL: func.func @linear
// STORE-SAME: tensor<4x4x512xf16> {nm_sparse.component = #nm_sparse.component<"values", weight = 0, of = #nm_sparse.packed<#nm_sparse.bitmap<#sparse>, [200, 128], f16>>}
// STORE-SAME: tensor<100x2xi8> {nm_sparse.component = #nm_sparse.component<"index", weight = 0
// STORE-SAME: tensor<4x4x32xi32> {nm_sparse.component = #nm_sparse.component<"bits", weight = 0
// STORE: nm_sparse.matmul #sparse storage = #nm_sparse.bitmap<#sparse> {{.*}} ins(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} : {{.*}}, tensor<4x4x32xi32>)

// A K step is 16 windows, two tiles of what is kept.
// TILE: nm_tile.k_loop %[[W:.*]] = %{{.*}} to %c25 step %c16
// TILE-DAG: %[[WINDOWS:.*]] = affine.min #{{.*}}(%[[W]])
// TILE-DAG: tensor.extract_slice {{.*}}[0, %{{.*}}, 0] [4, %{{.*}}, 512] {{.*}} to tensor<4x?x512xf16>
// TILE-DAG: tensor.extract_slice {{.*}}[0, %{{.*}}, 0] [4, %{{.*}}, 32] {{.*}} to tensor<4x?x32xi32>
// TILE-DAG: tensor.extract_slice {{.*}} to tensor<?x2xi8>
// TILE-DAG: tensor.extract_slice {{.*}} to tensor<?x64xf16>
// TILE: nm_sparse.matmul {{.*}} tensor<?x2xi8>, tensor<4x?x32xi32>)

// The rows of both panels are gathered, then multiplied as 2:4.
// PROMOTE: nm_tile.k_loop
// PROMOTE: nm_tile.async_gather #sparse {{.*}} -> tensor<128x64xf16>
// PROMOTE: nm_tile.async_copy {{.*}} tensor<4x2x32xi32>
// PROMOTE: nm_tile.matmul #sparse storage = #nm_sparse.bitmap<#sparse> schedule = #{{.*}} condensed ins({{.*}}, %{{.*}} : tensor<128x64xf16>, tensor<4x2x512xf16>, tensor<4x2x32xi32>)
func.func @linear(%x: tensor<200x64xf16>,
    %v: tensor<50x128xf16> {nm_sparse.component = #nm_sparse.component<"values", weight = 0, of = #packed>},
    %i: tensor<100x2xi8> {nm_sparse.component = #nm_sparse.component<"index", weight = 0, of = #packed>},
    %j: tensor<50x128xi8> {nm_sparse.component = #nm_sparse.component<"inner_index", weight = 0, of = #packed>},
    %o: tensor<128x64xf16>) -> tensor<128x64xf16> {
  %0 = nm_sparse.matmul #e indexing_maps = [#x, #w, #y] config = #s
    ins(%x, %v, %i, %j : tensor<200x64xf16>, tensor<50x128xf16>, tensor<100x2xi8>, tensor<50x128xi8>)
    outs(%o : tensor<128x64xf16>) -> tensor<128x64xf16>
  return %0 : tensor<128x64xf16>
}
