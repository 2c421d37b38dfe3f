// Activations as tokens by features: the product alone is faster than a dense
// one at 512 tokens, but not with the transposition that it needs.
#w = #nm_sparse.encoding<16:32, block = [1, 128]>
func.func @f(%x: tensor<?x2048xf16>, %w: tensor<2048x2048xf16, #w>,
             %init: tensor<?x2048xf32>) -> tensor<?x2048xf32> {
  %y = linalg.matmul
      ins(%x, %w : tensor<?x2048xf16>, tensor<2048x2048xf16, #w>)
      outs(%init : tensor<?x2048xf32>) -> tensor<?x2048xf32>
  return %y : tensor<?x2048xf32>
}
