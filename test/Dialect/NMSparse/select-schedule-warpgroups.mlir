// RUN: nm-opt %s --nm-sparse-select-schedule=chip=sm_90a | FileCheck %s
// RUN: not nm-opt %s --nm-sparse-select-schedule=chip=sm_100a 2>&1 | FileCheck %s --check-prefix=REFUSED

// CHECK: #nm_sparse.schedule<wgmma, tile = [256, 128, 8], warps = [1, 8]
// REFUSED: has a schedule of kind wgmma, which sm_100a has no products of warpgroups for; sm_90a has them

#xm = affine_map<(m, n, k) -> (k, m)>
#wm = affine_map<(m, n, k) -> (k, n)>
#ym = affine_map<(m, n, k) -> (n, m)>
func.func @given(%x: tensor<4096x?xf16>, %v: tensor<1024x4096xf16>, %i: tensor<1024x32xi8>,
                 %y: tensor<4096x?xf32>) -> tensor<4096x?xf32> {
  %r = nm_sparse.matmul <8:32, block = [1, 128]> indexing_maps = [#xm, #wm, #ym]
    schedule = <wgmma, tile = [256, 128, 8], warps = [1, 8], stages = 4, split_k = 1, operands = packed, index = resident>
    ins(%x, %v, %i : tensor<4096x?xf16>, tensor<1024x4096xf16>, tensor<1024x32xi8>)
    outs(%y : tensor<4096x?xf32>) -> tensor<4096x?xf32>
  return %r : tensor<4096x?xf32>
}
