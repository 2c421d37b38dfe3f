// RUN: nm-opt %s --nm-sparse-to-nvvm="chip=sm_90a" | FileCheck %s
// RUN: nm-opt %s --nm-sparse-to-nvvm="chip=sm_90a layout=keep" | FileCheck %s --check-prefix=TOKENS

#w = #nm_sparse.encoding<8:32, block = [1, 128]>
#xm = affine_map<(n, m, k) -> (k, m)>
#wm = affine_map<(n, m, k) -> (k, n)>
#ym = affine_map<(n, m, k) -> (n, m)>

// Index, x and values are asked for before the wait for the kernel ahead.
// CHECK: llvm.func @layer_kernel
// CHECK: griddepcontrol.launch_dependents
// CHECK-COUNT-3: cp.async.bulk.prefetch.L2
// CHECK-NOT: cp.async.bulk.prefetch.L2
// CHECK: griddepcontrol.wait
func.func @layer(%x: tensor<1024x256xf16>, %w: tensor<1024x1024xf16, #w>,
                 %init: tensor<1024x256xf32>) -> tensor<1024x256xf32> {
  %y = linalg.generic {indexing_maps = [#xm, #wm, #ym],
                       iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<1024x256xf16>, tensor<1024x1024xf16, #w>)
      outs(%init : tensor<1024x256xf32>)
      attrs = {nm_sparse.config = #nm_tile.schedule<tile = [64, 64, 128], product = wgmma<warps = [1, 4]>, transfers = {x = gather, values = bulk, index = resident}, pipeline = ring<stages = 6, producers = 4>, grid = flat>} {
  ^bb0(%a: f16, %b: f16, %c: f32):
    %ae = arith.extf %a : f16 to f32
    %be = arith.extf %b : f16 to f32
    %p = arith.mulf %ae, %be : f32
    %s = arith.addf %c, %p : f32
    linalg.yield %s : f32
  } -> tensor<1024x256xf32>
  return %y : tensor<1024x256xf32>
}

// Index and values alone: an x in a memory space is left out.
// CHECK: llvm.func @space_kernel
// CHECK: griddepcontrol.launch_dependents
// CHECK-COUNT-2: cp.async.bulk.prefetch.L2
// CHECK-NOT: cp.async.bulk.prefetch.L2
// CHECK: griddepcontrol.wait
func.func @space(%buffer: memref<1024x256xf16, 1>, %w: tensor<1024x1024xf16, #w>,
                 %init: tensor<1024x256xf32>) -> tensor<1024x256xf32> {
  %x = bufferization.to_tensor %buffer restrict
    : memref<1024x256xf16, 1> to tensor<1024x256xf16>
  %y = linalg.generic {indexing_maps = [#xm, #wm, #ym],
                       iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<1024x256xf16>, tensor<1024x1024xf16, #w>)
      outs(%init : tensor<1024x256xf32>)
      attrs = {nm_sparse.config = #nm_tile.schedule<tile = [64, 64, 128], product = wgmma<warps = [1, 4]>, transfers = {x = gather, values = bulk, index = resident}, pipeline = ring<stages = 6, producers = 4>, grid = flat>} {
  ^bb0(%a: f16, %b: f16, %c: f32):
    %ae = arith.extf %a : f16 to f32
    %be = arith.extf %b : f16 to f32
    %p = arith.mulf %ae, %be : f32
    %s = arith.addf %c, %p : f32
    linalg.yield %s : f32
  } -> tensor<1024x256xf32>
  return %y : tensor<1024x256xf32>
}

// Index and values alone: the front of an x with tokens as rows is all of the
// contraction, of a few tokens, also where their number is known.
// TOKENS: llvm.func @tokens_kernel
// TOKENS: griddepcontrol.launch_dependents
// TOKENS-COUNT-2: cp.async.bulk.prefetch.L2
// TOKENS-NOT: cp.async.bulk.prefetch.L2
// TOKENS: griddepcontrol.wait
#tm = affine_map<(n, m, k) -> (m, k)>
#rm = affine_map<(n, m, k) -> (m, n)>
func.func @tokens(%x: tensor<256x4096xf16>, %w: tensor<4096x4096xf16, #w>,
                  %init: tensor<256x4096xf32>) -> tensor<256x4096xf32> {
  %y = linalg.generic {indexing_maps = [#tm, #wm, #rm],
                       iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<256x4096xf16>, tensor<4096x4096xf16, #w>)
      outs(%init : tensor<256x4096xf32>)
      attrs = {nm_sparse.config = #nm_tile.schedule<tile = [128, 128, 32], product = mma<warps = [2, 4]>, transfers = {x = copy, values = copy, index = resident}, pipeline = async_groups<stages = 4>, grid = flat>} {
  ^bb0(%a: f16, %b: f16, %c: f32):
    %ae = arith.extf %a : f16 to f32
    %be = arith.extf %b : f16 to f32
    %p = arith.mulf %ae, %be : f32
    %s = arith.addf %c, %p : f32
    linalg.yield %s : f32
  } -> tensor<256x4096xf32>
  return %y : tensor<256x4096xf32>
}
