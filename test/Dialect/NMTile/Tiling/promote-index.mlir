// RUN: nm-opt %s --nm-sparse-tile --nm-sparse-promote --split-input-file | FileCheck %s

#xm = affine_map<(m, n, k) -> (m, k)>
#wm = affine_map<(m, n, k) -> (k, n)>
#ym = affine_map<(m, n, k) -> (m, n)>

// A gather reads its index when it is issued: a staged one would still be on its
// way, so it is read where it lies. The last tile may have fewer panels.

// CHECK-LABEL: func @staged
// CHECK: nm_tile.k_loop
// CHECK: %[[STEP:.*]] = tensor.extract_slice {{.*}} : tensor<56x?xi8> to tensor<?x?xi8>
// CHECK: nm_tile.async_copy {{.*}}xf16
// CHECK-NOT: nm_tile.async_copy
// CHECK: nm_tile.async_gather {{.*}} panels = 4 ins(%{{.*}}, %[[STEP]]
func.func @staged(%x: tensor<?x224xf16>, %v: tensor<56x96xf16>, %i: tensor<56x3xi8>,
                  %y: tensor<?x96xf32>) -> tensor<?x96xf32> {
  %r = nm_sparse.matmul <8:32, block = [1, 32]> indexing_maps = [#xm, #wm, #ym]
    config = #nm_tile.schedule<tile = [64, 128, 16], product = mma<warps = [2, 4]>, transfers = {x = gather, values = copy, index = staged}, pipeline = async_groups<stages = 3>, grid = flat>
    ins(%x, %v, %i : tensor<?x224xf16>, tensor<56x96xf16>, tensor<56x3xi8>)
    outs(%y : tensor<?x96xf32>) -> tensor<?x96xf32>
  return %r : tensor<?x96xf32>
}

// -----

#xm = affine_map<(m, n, k) -> (m, k)>
#wm = affine_map<(m, n, k) -> (k, n)>
#ym = affine_map<(m, n, k) -> (m, n)>

// Seven windows in steps of two: the resident index has rows for eight, or the
// last step would read past it.

// CHECK-LABEL: func @resident
// CHECK: bufferization.alloc_tensor() {{.*}} : tensor<64x1xi8>
// CHECK: nm_tile.k_loop
// CHECK: tensor.extract_slice {{.*}} : tensor<64x1xi8> to tensor<16x1xi8>
func.func @resident(%x: tensor<?x224xf16>, %v: tensor<56x128xf16>, %i: tensor<56x1xi8>,
                    %y: tensor<?x128xf32>) -> tensor<?x128xf32> {
  %r = nm_sparse.matmul <8:32, block = [1, 128]> indexing_maps = [#xm, #wm, #ym]
    config = #nm_tile.schedule<tile = [64, 128, 16], product = mma<warps = [2, 4]>, transfers = {x = copy, values = copy, index = resident}, pipeline = async_groups<stages = 3>, grid = flat>
    ins(%x, %v, %i : tensor<?x224xf16>, tensor<56x128xf16>, tensor<56x1xi8>)
    outs(%y : tensor<?x128xf32>) -> tensor<?x128xf32>
  return %r : tensor<?x128xf32>
}

// -----

#w = #nm_sparse.encoding<7:8, block = [1, 128]>
#xm = affine_map<(m, n, k) -> (m, k)>
#wm = affine_map<(m, n, k) -> (k, n)>
#ym = affine_map<(m, n, k) -> (m, n)>
#s = #nm_tile.schedule<tile = [128, 128, 64], product = mma<warps = [2, 4]>, transfers = {x = gather, values = copy, index = rows}, pipeline = async_groups<stages = 3>>

// Steps that begin inside windows gather by a table of rows, for all of the
// contraction and filled up to whole steps, from all of x. The last step copies
// what values it has.

// CHECK: #[[SWAP:map[0-9]*]] = affine_map<(d0, d1) -> (d1, d0)>
// CHECK-NEXT: #[[SAME:map[0-9]*]] = affine_map<(d0, d1) -> (d0, d1)>
// CHECK-LABEL: func @parts_of_windows
// CHECK: %[[ROWS:.*]] = nm_tile.async_copy rows_of = #{{.*}} ins(%{{.*}} : tensor<112x1xi8>) outs(%{{.*}} : tensor<128x1xi16>)
// CHECK: nm_tile.k_loop %[[R:[a-z0-9]*]] =
// CHECK: nm_tile.async_copy ins(%{{.*}} : tensor<?x128xf16>) outs(%{{.*}} : tensor<64x128xf16>)
// CHECK: %[[STEP:.*]] = tensor.extract_slice %[[ROWS]][%[[R]], 0] [64, 1]
// CHECK: nm_tile.async_gather #{{.*}} indexing_maps = [#[[SWAP]], #[[SAME]]] by_row ins(%{{.*}}, %[[STEP]] : tensor<128x128xf16>, tensor<64x1xi16>) outs(%{{.*}} : tensor<64x128xf16>)
func.func @parts_of_windows(%x: tensor<128x128xf16>, %v: tensor<112x128xf16>,
                            %i: tensor<112x1xi8>, %out: tensor<128x128xf32>)
    -> tensor<128x128xf32> {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %c112 = arith.constant 112 : index
  %r = scf.forall (%m) = (0) to (128) step (128) shared_outs(%o = %out) -> (tensor<128x128xf32>) {
    %y = nm_tile.k_loop %k = %c0 to %c112 step %c64 iter_args(%acc = %o) -> (tensor<128x128xf32>) {
      %size = affine.min affine_map<(d0) -> (64, -d0 + 112)>(%k)
      %vs = tensor.extract_slice %v[%k, 0] [%size, 128] [1, 1] : tensor<112x128xf16> to tensor<?x128xf16>
      %p = nm_sparse.matmul #w indexing_maps = [#xm, #wm, #ym] config = #s
        ins(%x, %vs, %i : tensor<128x128xf16>, tensor<?x128xf16>, tensor<112x1xi8>)
        outs(%acc : tensor<128x128xf32>) at(first_row = %k) -> tensor<128x128xf32>
      nm_tile.yield %p : tensor<128x128xf32>
    }
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %y into %o[0, 0] [128, 128] [1, 1] : tensor<128x128xf32> into tensor<128x128xf32>
    }
  } {mapping = [#gpu.block<x>]}
  return %r : tensor<128x128xf32>
}
