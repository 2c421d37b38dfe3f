// Two products of one x, each with a pattern and a schedule of its own.
#w1 = #nm_sparse.encoding<8:32, block = [1, 128]>
#w2 = #nm_sparse.encoding<8:16, block = [1, 128]>
#mma = #nm_tile.schedule<tile = [64, 128, 16], product = mma<warps = [2, 2]>, transfers = {x = gather, values = copy, index = staged}, pipeline = async_groups<stages = 2>, grid = flat>
#wgmma = #nm_tile.schedule<tile = [64, 128, 16], product = wgmma<warps = [1, 4]>, transfers = {x = gather, values = copy, index = resident}, pipeline = async_groups<stages = 2>, grid = flat>
func.func @two(%x: tensor<256x64xf16>, %a: tensor<256x128xf16, #w1>, %b: tensor<256x128xf16, #w2>) -> (tensor<64x128xf32>, tensor<64x128xf32>) {
  %zero = arith.constant 0.0 : f32
  %e0 = tensor.empty() : tensor<64x128xf32>
  %i0 = linalg.fill ins(%zero : f32) outs(%e0 : tensor<64x128xf32>) -> tensor<64x128xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]}
    ins(%x, %a : tensor<256x64xf16>, tensor<256x128xf16, #w1>) outs(%i0 : tensor<64x128xf32>) attrs = {nm_sparse.config = #mma} {
  ^bb0(%p: f16, %q: f16, %r: f32):
    %1 = arith.extf %p : f16 to f32
    %2 = arith.extf %q : f16 to f32
    %3 = arith.mulf %1, %2 : f32
    %4 = arith.addf %r, %3 : f32
    linalg.yield %4 : f32
  } -> tensor<64x128xf32>
  %z = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]}
    ins(%x, %b : tensor<256x64xf16>, tensor<256x128xf16, #w2>) outs(%i0 : tensor<64x128xf32>) attrs = {nm_sparse.config = #wgmma} {
  ^bb0(%p: f16, %q: f16, %r: f32):
    %1 = arith.extf %p : f16 to f32
    %2 = arith.extf %q : f16 to f32
    %3 = arith.mulf %1, %2 : f32
    %4 = arith.addf %r, %3 : f32
    linalg.yield %4 : f32
  } -> tensor<64x128xf32>
  return %y, %z : tensor<64x128xf32>, tensor<64x128xf32>
}
