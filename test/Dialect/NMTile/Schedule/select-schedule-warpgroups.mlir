// RUN: nm-opt %s --nm-sparse-select-schedule=chip=sm_90a | FileCheck %s
// RUN: not nm-opt %s --nm-sparse-select-schedule=chip=sm_100a 2>&1 | FileCheck %s --check-prefix=REFUSED

// CHECK: #nm_tile.schedule<tile = [256, 128, 64], product = wgmma<warps = [1, 8]>
// REFUSED: has a schedule with product = wgmma, which sm_100a has no products of warpgroups for; sm_90a has them

#xm = affine_map<(m, n, k) -> (k, m)>
#wm = affine_map<(m, n, k) -> (k, n)>
#ym = affine_map<(m, n, k) -> (n, m)>
func.func @given(%x: tensor<4096x?xf16>, %v: tensor<1024x4096xf16>, %i: tensor<1024x32xi8>,
                 %y: tensor<4096x?xf32>) -> tensor<4096x?xf32> {
  %r = nm_sparse.matmul <8:32, block = [1, 128]> indexing_maps = [#xm, #wm, #ym]
    config = #nm_tile.schedule<tile = [256, 128, 64], product = wgmma<warps = [1, 8]>, transfers = {x = gather, values = copy, index = resident}, pipeline = async_groups<stages = 4>, grid = flat>
    ins(%x, %v, %i : tensor<4096x?xf16>, tensor<1024x4096xf16>, tensor<1024x32xi8>)
    outs(%y : tensor<4096x?xf32>) -> tensor<4096x?xf32>
  return %r : tensor<4096x?xf32>
}
