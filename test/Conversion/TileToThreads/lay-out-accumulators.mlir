// RUN: nm-opt %s --nm-sparse-lay-out-accumulators | FileCheck %s

#w = #nm_sparse.encoding<8:32, block = [1, 128]>
#mma = #nm_tile.schedule<tile = [64, 128, 16], product = mma<warps = [2, 2]>, transfers = {x = gather, values = copy, index = resident}, pipeline = async_groups<stages = 2>, grid = flat>
#wgmma = #nm_tile.schedule<tile = [64, 128, 16], product = wgmma<warps = [1, 4]>, transfers = {x = gather, values = copy, index = resident}, pipeline = async_groups<stages = 2>, grid = flat>
#simt = #nm_tile.schedule<tile = [64, 128, 8], product = simt<warps = [2, 2]>, transfers = {x = gather, values = copy, index = resident}, pipeline = async_groups<stages = 2>, grid = flat>
#own = #nm_tile.accumulator<unit = [tokens 32 by 2], units = [outputs 4 by 32], elements = [tokens 2 by 1, outputs 32 by 1]>

!x = memref<16x64xf16, #nm_tile.shared<swizzled_rows>>
!v = memref<16x128xf16, #nm_tile.shared<swizzled_rows>>
!xb = memref<16x64xf16, #nm_tile.shared<swizzled_blocks>>
!vb = memref<16x128xf16, #nm_tile.shared<swizzled_blocks>>
!xf = memref<8x64xf32, #gpu.address_space<workgroup>>
!vf = memref<8x128xf32, #gpu.address_space<workgroup>>

// A row of a fragment lies in 4 lanes of 2 neighbours each: of outputs, or of
// tokens where the result has these contiguous.
// CHECK-DAG: #[[OUTPUTS:.*]] = #nm_tile.accumulator<unit = [outputs 4 by 2, tokens 8 by 1], units = [outputs 2 by 64, tokens 2 by 32], elements = [outputs 2 by 1, tokens 2 by 8, outputs 8 by 8, tokens 2 by 16]>
// CHECK-DAG: #[[TOKENS:.*]] = #nm_tile.accumulator<unit = [tokens 4 by 2, outputs 8 by 1], units = [outputs 2 by 64, tokens 2 by 32], elements = [tokens 2 by 1, outputs 2 by 8, tokens 4 by 8, outputs 4 by 16]>
// The four warps of a warpgroup have 16 rows each.
// CHECK-DAG: #[[GROUP:.*]] = #nm_tile.accumulator<unit = [outputs 4 by 2, tokens 8 by 1, tokens 4 by 16], units = [outputs 1 by 128, tokens 1 by 64], elements = [outputs 2 by 1, tokens 2 by 8, outputs 16 by 8]>
// CHECK-DAG: #[[CHUNKS:.*]] = #nm_tile.accumulator<unit = [outputs 2 by 4, tokens 8 by 4, outputs 2 by 8], units = [outputs 2 by 64, tokens 2 by 32], elements = [outputs 4 by 1, outputs 4 by 16, tokens 4 by 1]>
// CHECK-DAG: #[[OWN:.*]] = #nm_tile.accumulator<unit = [tokens 32 by 2], units = [outputs 4 by 32], elements = [tokens 2 by 1, outputs 32 by 1]>

// CHECK-LABEL: func @products
func.func @products(%x: !x, %v: !v, %xb: !xb, %vb: !vb, %xf: !xf, %vf: !vf,
                    %a: vector<64x128xf32>) {
  // CHECK: nm_tile.matmul {{.*}} acc({{.*}} in #[[OUTPUTS]])
  %0 = nm_tile.matmul #w schedule = #mma condensed ins(%x, %v : !x, !v)
    acc(%a : vector<64x128xf32>) -> vector<64x128xf32>
  // CHECK: nm_tile.matmul {{.*}} tokens_contiguous {{.*}} acc({{.*}} in #[[TOKENS]])
  %1 = nm_tile.matmul #w schedule = #mma condensed tokens_contiguous ins(%x, %v : !x, !v)
    acc(%a : vector<64x128xf32>) -> vector<64x128xf32>
  // CHECK: nm_tile.matmul {{.*}} acc({{.*}} in #[[GROUP]])
  %2 = nm_tile.matmul #w schedule = #wgmma condensed ins(%xb, %vb : !xb, !vb)
    acc(%a : vector<64x128xf32>) -> vector<64x128xf32>
  // CHECK: nm_tile.matmul {{.*}} acc({{.*}} in #[[CHUNKS]])
  %3 = nm_tile.matmul #w schedule = #simt condensed ins(%xf, %vf : !xf, !vf)
    acc(%a : vector<64x128xf32>) -> vector<64x128xf32>
  // A layout that is there stays.
  // CHECK: nm_tile.matmul {{.*}} acc({{.*}} in #[[OWN]])
  %4 = nm_tile.matmul #w schedule = #simt condensed ins(%xf, %vf : !xf, !vf)
    acc(%a : vector<64x128xf32> in #own) -> vector<64x128xf32>
  return
}
