// What nm-opt makes of two-products.mlir with the stages from front to map, with
// the second launch's body moved into the first launch: their tiles lie in shared
// memory, and their sums in threads, in different layouts.
#map = affine_map<()[s0] -> (s0 * 64)>
#map1 = affine_map<()[s0] -> (s0 * 128)>
#map2 = affine_map<()[s0] -> (s0 floordiv 128)>
#map3 = affine_map<()[s0] -> (s0 * 32)>
#map4 = affine_map<()[s0] -> (s0 * 8)>
#map5 = affine_map<()[s0] -> (s0 * 16)>
#schedule = #nm_tile.schedule<tile = [64, 128, 16], product = mma<warps = [2, 2]>, transfers = {x = gather, values = copy, index = staged}, pipeline = async_groups<stages = 2>, grid = flat>
#schedule1 = #nm_tile.schedule<tile = [64, 128, 16], product = wgmma<warps = [1, 4]>, transfers = {x = gather, values = copy, index = resident}, pipeline = async_groups<stages = 2>, grid = flat>
#sparse = #nm_sparse.encoding<8:32, block = [1, 128]>
#sparse1 = #nm_sparse.encoding<8:16, block = [1, 128]>
module {
  func.func @two(%x: memref<256x64xf16>, %v0: memref<64x128xf16> {nm_sparse.component = #nm_sparse.component<"values", weight = 0, of = #nm_sparse.packed<#sparse, [256, 128], f16>>}, %i0: memref<64x1xi8> {nm_sparse.component = #nm_sparse.component<"index", weight = 0, of = #nm_sparse.packed<#sparse, [256, 128], f16>>}, %v1: memref<128x128xf16> {nm_sparse.component = #nm_sparse.component<"values", weight = 1, of = #nm_sparse.packed<#sparse1, [256, 128], f16>>}, %i1: memref<128x1xi8> {nm_sparse.component = #nm_sparse.component<"index", weight = 1, of = #nm_sparse.packed<#sparse1, [256, 128], f16>>}) -> (memref<64x128xf32>, memref<64x128xf32>) {
    %alloc = memref.alloc() {alignment = 64 : i64} : memref<64x128xf32>
    %alloc_0 = memref.alloc() {alignment = 64 : i64} : memref<64x128xf32>
    %c1 = arith.constant 1 : index
    %c1_1 = arith.constant 1 : index
    %c1_2 = arith.constant 1 : index
    %c128 = arith.constant 128 : index
    gpu.launch blocks(%bx, %by, %arg7) in (%arg11 = %c1_1, %arg12 = %c1_2, %arg13 = %c1) threads(%arg8, %arg9, %arg10) in (%arg14 = %c128, %arg15 = %c1, %arg16 = %c1) {
      %0 = affine.apply #map()[%bx]
      %1 = affine.apply #map1()[%by]
      %alloc_7 = memref.alloc() {alignment = 64 : i64} : memref<16x128xf16, #nm_tile.shared<swizzled_rows>>
      %alloc_8 = memref.alloc() {alignment = 64 : i64} : memref<16x64xf16, #nm_tile.shared<swizzled_rows>>
      %subview = memref.subview %x[0, %0] [256, 64] [1, 1] : memref<256x64xf16> to memref<256x64xf16, strided<[64, 1], offset: ?>>
      %2 = affine.apply #map2()[%1]
      %subview_9 = memref.subview %v0[0, %1] [64, 128] [1, 1] : memref<64x128xf16> to memref<64x128xf16, strided<[128, 1], offset: ?>>
      %subview_10 = memref.subview %i0[0, %2] [64, 1] [1, 1] : memref<64x1xi8> to memref<64x1xi8, strided<[1, 1], offset: ?>>
      %subview_11 = memref.subview %alloc_0[%0, %1] [64, 128] [1, 1] : memref<64x128xf32> to memref<64x128xf32, strided<[128, 1], offset: ?>>
      %c0 = arith.constant 0 : index
      %c8 = arith.constant 8 : index
      %c2 = arith.constant 2 : index
      %cst = arith.constant dense<0.000000e+00> : vector<64x128xf32>
      %3 = nm_tile.k_loop %arg17 = %c0 to %c8 step %c2 iter_args(%arg18 = %cst) -> (vector<64x128xf32>) {
        %4 = affine.apply #map3()[%arg17]
        %subview_12 = memref.subview %subview[%4, 0] [64, 64] [1, 1] : memref<256x64xf16, strided<[64, 1], offset: ?>> to memref<64x64xf16, strided<[64, 1], offset: ?>>
        %5 = affine.apply #map4()[%arg17]
        %subview_13 = memref.subview %subview_9[%5, 0] [16, 128] [1, 1] : memref<64x128xf16, strided<[128, 1], offset: ?>> to memref<16x128xf16, strided<[128, 1], offset: ?>>
        %subview_14 = memref.subview %subview_10[%5, 0] [16, 1] [1, 1] : memref<64x1xi8, strided<[1, 1], offset: ?>> to memref<16x1xi8, strided<[1, 1], offset: ?>>
        nm_tile.async_copy ins(%subview_13 : memref<16x128xf16, strided<[128, 1], offset: ?>>) outs(%alloc_7 : memref<16x128xf16, #nm_tile.shared<swizzled_rows>>)
        nm_tile.async_gather #sparse ins(%subview_12, %subview_14 : memref<64x64xf16, strided<[64, 1], offset: ?>>, memref<16x1xi8, strided<[1, 1], offset: ?>>) outs(%alloc_8 : memref<16x64xf16, #nm_tile.shared<swizzled_rows>>)
        %6 = nm_tile.matmul #sparse schedule = #schedule condensed ins(%alloc_8, %alloc_7 : memref<16x64xf16, #nm_tile.shared<swizzled_rows>>, memref<16x128xf16, #nm_tile.shared<swizzled_rows>>) acc(%arg18 : vector<64x128xf32>) -> vector<64x128xf32>
        nm_tile.yield %6 : vector<64x128xf32>
      }
      vector.transfer_write %3, %subview_11[%c0, %c0] {in_bounds = [true, true]} : vector<64x128xf32>, memref<64x128xf32, strided<[128, 1], offset: ?>>
      %q_0 = affine.apply #map()[%bx]
      %q_1 = affine.apply #map1()[%by]
      %q_alloc_7 = memref.alloc() {alignment = 64 : i64} : memref<128x1xi8, #gpu.address_space<workgroup>>
      %q_alloc_8 = memref.alloc() {alignment = 64 : i64} : memref<16x128xf16, #nm_tile.shared<swizzled_blocks>>
      %q_alloc_9 = memref.alloc() {alignment = 64 : i64} : memref<16x64xf16, #nm_tile.shared<swizzled_blocks>>
      %q_subview = memref.subview %x[0, %q_0] [256, 64] [1, 1] : memref<256x64xf16> to memref<256x64xf16, strided<[64, 1], offset: ?>>
      %q_2 = affine.apply #map2()[%q_1]
      %q_subview_10 = memref.subview %v1[0, %q_1] [128, 128] [1, 1] : memref<128x128xf16> to memref<128x128xf16, strided<[128, 1], offset: ?>>
      %q_subview_11 = memref.subview %i1[0, %q_2] [128, 1] [1, 1] : memref<128x1xi8> to memref<128x1xi8, strided<[1, 1], offset: ?>>
      %q_subview_12 = memref.subview %alloc[%q_0, %q_1] [64, 128] [1, 1] : memref<64x128xf32> to memref<64x128xf32, strided<[128, 1], offset: ?>>
      %q_c0 = arith.constant 0 : index
      %q_c16 = arith.constant 16 : index
      %q_c2 = arith.constant 2 : index
      nm_tile.async_copy ins(%q_subview_11 : memref<128x1xi8, strided<[1, 1], offset: ?>>) outs(%q_alloc_7 : memref<128x1xi8, #gpu.address_space<workgroup>>)
      %q_cst = arith.constant dense<0.000000e+00> : vector<64x128xf32>
      %q_3 = nm_tile.k_loop %q_arg17 = %q_c0 to %q_c16 step %q_c2 iter_args(%q_arg18 = %q_cst) -> (vector<64x128xf32>) {
        %q_4 = affine.apply #map5()[%q_arg17]
        %q_subview_13 = memref.subview %q_subview[%q_4, 0] [32, 64] [1, 1] : memref<256x64xf16, strided<[64, 1], offset: ?>> to memref<32x64xf16, strided<[64, 1], offset: ?>>
        %q_5 = affine.apply #map4()[%q_arg17]
        %q_subview_14 = memref.subview %q_subview_10[%q_5, 0] [16, 128] [1, 1] : memref<128x128xf16, strided<[128, 1], offset: ?>> to memref<16x128xf16, strided<[128, 1], offset: ?>>
        nm_tile.async_copy ins(%q_subview_14 : memref<16x128xf16, strided<[128, 1], offset: ?>>) outs(%q_alloc_8 : memref<16x128xf16, #nm_tile.shared<swizzled_blocks>>)
        %q_subview_15 = memref.subview %q_alloc_7[%q_5, 0] [16, 1] [1, 1] : memref<128x1xi8, #gpu.address_space<workgroup>> to memref<16x1xi8, strided<[1, 1], offset: ?>, #gpu.address_space<workgroup>>
        nm_tile.async_gather #sparse1 ins(%q_subview_13, %q_subview_15 : memref<32x64xf16, strided<[64, 1], offset: ?>>, memref<16x1xi8, strided<[1, 1], offset: ?>, #gpu.address_space<workgroup>>) outs(%q_alloc_9 : memref<16x64xf16, #nm_tile.shared<swizzled_blocks>>)
        %q_6 = nm_tile.matmul #sparse1 schedule = #schedule1 condensed ins(%q_alloc_9, %q_alloc_8 : memref<16x64xf16, #nm_tile.shared<swizzled_blocks>>, memref<16x128xf16, #nm_tile.shared<swizzled_blocks>>) acc(%q_arg18 : vector<64x128xf32>) -> vector<64x128xf32>
        nm_tile.yield %q_6 : vector<64x128xf32>
      }
      vector.transfer_write %q_3, %q_subview_12[%q_c0, %q_c0] {in_bounds = [true, true]} : vector<64x128xf32>, memref<64x128xf32, strided<[128, 1], offset: ?>>
      gpu.terminator
    }
    return %alloc_0, %alloc : memref<64x128xf32>, memref<64x128xf32>
  }
}

