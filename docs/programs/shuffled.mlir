// Ragged panels of shuffled outputs: docs/ShuffledPath.md follows them through the
// compiler.
#w = #nm_sparse.encoding<free, block = [1, 128], dim = 1, order = shuffled>

func.func @shuffled(%x: tensor<4096x2048xf16>, %w: tensor<4096x4096xf16, #w>,
    %b: tensor<4096xf32>) -> tensor<4096x2048xf16> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<4096x2048xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<4096x2048xf32>)
      -> tensor<4096x2048xf32>
  %y = linalg.matmul
      indexing_maps = [affine_map<(m, n, k) -> (k, m)>,
                       affine_map<(m, n, k) -> (n, k)>,
                       affine_map<(m, n, k) -> (n, m)>]
      ins(%x, %w : tensor<4096x2048xf16>, tensor<4096x4096xf16, #w>)
      outs(%init : tensor<4096x2048xf32>) -> tensor<4096x2048xf32>
  %out = tensor.empty() : tensor<4096x2048xf16>
  %r = linalg.generic
      {indexing_maps = [affine_map<(n, m) -> (n, m)>, affine_map<(n, m) -> (n)>,
                        affine_map<(n, m) -> (n, m)>],
       iterator_types = ["parallel", "parallel"]}
      ins(%y, %b : tensor<4096x2048xf32>, tensor<4096xf32>)
      outs(%out : tensor<4096x2048xf16>) {
  ^bb0(%sum: f32, %bias: f32, %o: f16):
    %biased = arith.addf %sum, %bias : f32
    %positive = arith.maximumf %biased, %zero : f32
    %narrow = arith.truncf %positive : f32 to f16
    linalg.yield %narrow : f16
  } -> tensor<4096x2048xf16>
  return %r : tensor<4096x2048xf16>
}
