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
    schedule = <tile = [64, 128, 16], product = mma<warps = [2, 4]>, transfers = {x = gather, values = copy, index = staged}, pipeline = async_groups<stages = 3>, grid = flat>
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
    schedule = <tile = [64, 128, 16], product = mma<warps = [2, 4]>, transfers = {x = copy, values = copy, index = resident}, pipeline = async_groups<stages = 3>, grid = flat>
    ins(%x, %v, %i : tensor<?x224xf16>, tensor<56x128xf16>, tensor<56x1xi8>)
    outs(%y : tensor<?x128xf32>) -> tensor<?x128xf32>
  return %r : tensor<?x128xf32>
}
