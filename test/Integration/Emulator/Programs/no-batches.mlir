// No batches of activations that share a weight: nothing may be read or written,
// by one kernel, with a transposition before it and split-K behind it, or by CTAs
// that stay and share tiles.
// RUN: nm-run %s --device emulate --check --size 0 | FileCheck %s
// RUN: nm-run %s --device emulate --check --size 0 \
// RUN:   --schedule "#nm_tile.schedule<tile = [64, 128, 32], product = mma<warps = [2, 2]>, transfers = {x = gather, values = copy, index = resident}, pipeline = async_groups<stages = 3>, grid = flat<split_k = 2>>" | FileCheck %s
// RUN: nm-run %s --device emulate --check --size 0 \
// RUN:   --schedule "#nm_tile.schedule<tile = [128, 128, 32], product = wgmma<warps = [2, 4]>, transfers = {x = gather, values = bulk, index = resident}, pipeline = ring<stages = 3, producers = 4>, grid = persistent<stream_k = true>>" | FileCheck %s
// RUN: nm-run %s --device emulate --check --size 2 | FileCheck %s
// CHECK: result #0: {{.*}} PASS

#w = #nm_sparse.encoding<8:32, block = [1, 128]>
#x = affine_map<(b, m, n, k) -> (b, m, k)>
#wm = affine_map<(b, m, n, k) -> (k, n)>
#y = affine_map<(b, m, n, k) -> (b, m, n)>
func.func @f(%x: tensor<?x64x256xf16>, %w: tensor<256x256xf16, #w>) -> tensor<?x64x256xf32> {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %b = tensor.dim %x, %c0 : tensor<?x64x256xf16>
  %empty = tensor.empty(%b) : tensor<?x64x256xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<?x64x256xf32>) -> tensor<?x64x256xf32>
  %y = linalg.generic {indexing_maps = [#x, #wm, #y], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<?x64x256xf16>, tensor<256x256xf16, #w>) outs(%init : tensor<?x64x256xf32>) {
  ^bb0(%a: f16, %bb: f16, %c: f32):
    %a32 = arith.extf %a : f16 to f32
    %b32 = arith.extf %bb : f16 to f32
    %p = arith.mulf %a32, %b32 : f32
    %s = arith.addf %c, %p : f32
    linalg.yield %s : f32
  } -> tensor<?x64x256xf32>
  return %y : tensor<?x64x256xf32>
}
