// RUN: nm-compile %s -o - --emit ptx | FileCheck %s

// Warps transpose words of a result for whole tiles and, in pairs of outputs, at
// edges: 32 words of a thread each. Lanes of a warp part where its outputs end, and
// LLVM must not copy the instruction, which all execute together, to either side.

// CHECK-COUNT-64: movmatrix.sync
// CHECK-NOT: movmatrix.sync
#w = #nm_sparse.encoding<2:4>
#s = #nm_tile.schedule<tile = [128, 128, 32], product = wgmma_sp<warps = 8, ahead = true>, transfers = {x = bulk, values = bulk, index = bulk}, pipeline = ring<stages = 3, producers = 4>, grid = persistent>
func.func @f(%x: tensor<256x256xf16>, %w: tensor<256x136xf16, #w>) -> tensor<256x136xf16> {
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<256x136xf32>
  %i = linalg.fill ins(%z : f32) outs(%e : tensor<256x136xf32>) -> tensor<256x136xf32>
  %y = linalg.matmul {nm_sparse.config = #s} ins(%x, %w : tensor<256x256xf16>, tensor<256x136xf16, #w>) outs(%i : tensor<256x136xf32>) -> tensor<256x136xf32>
  %o = tensor.empty() : tensor<256x136xf16>
  %g = linalg.generic {indexing_maps = [affine_map<(m,n)->(m,n)>, affine_map<(m,n)->(m,n)>], iterator_types = ["parallel","parallel"]} ins(%y : tensor<256x136xf32>) outs(%o : tensor<256x136xf16>) {
  ^bb0(%p: f32, %u: f16):
    %5 = arith.truncf %p : f32 to f16
    linalg.yield %5 : f16
  } -> tensor<256x136xf16>
  return %g : tensor<256x136xf16>
}
