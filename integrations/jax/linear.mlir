// A linear layer with a 2:4 weight, for any number of tokens.
#w = #nm_sparse.encoding<2:4>
func.func @linear(%x: tensor<?x1024xf16>, %w: tensor<1024x2048xf16, #w>)
    -> tensor<?x2048xf32> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %m = tensor.dim %x, %c0 : tensor<?x1024xf16>
  %e = tensor.empty(%m) : tensor<?x2048xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<?x2048xf32>)
      -> tensor<?x2048xf32>
  %y = linalg.matmul
      ins(%x, %w : tensor<?x1024xf16>, tensor<1024x2048xf16, #w>)
      outs(%z : tensor<?x2048xf32>) -> tensor<?x2048xf32>
  return %y : tensor<?x2048xf32>
}
