// RUN: nm-opt %s --nm-sparse-to-nvvm=chip=sm_90a | nm-translate --nm-sparse-to-manifest | FileCheck %s

// The kernel takes the address of a map of the values, arg1.

// CHECK: "box": [
// CHECK-NEXT: 64,
// CHECK-NEXT: 64
// CHECK-NEXT: ],
// CHECK-NEXT: "field": "tensor_map",
// CHECK-NEXT: "l2_promotion": "l2promo_128b",
// CHECK-NEXT: "source": "arg1",
// CHECK-NEXT: "swizzle": "swizzle_128b",
// CHECK-NEXT: "type": "ptr"

#w = #nm_sparse.encoding<8:16, block = [1, 128]>
#s = #nm_tile.schedule<tile = [128, 128, 64], product = wgmma<warps = [1, 8]>, transfers = {x = gather, values = bulk, index = resident}, pipeline = ring<stages = 3, producers = 4>, grid = flat>
func.func @linear(%x: tensor<512x?xf16>, %w: tensor<512x256xf16, #w>, %init: tensor<256x?xf32>) -> tensor<256x?xf32> {
  %y = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (n, m)>]
    {nm_sparse.config = #s}
    ins(%x, %w : tensor<512x?xf16>, tensor<512x256xf16, #w>) outs(%init : tensor<256x?xf32>) -> tensor<256x?xf32>
  return %y : tensor<256x?xf32>
}
