#w = #nm_sparse.encoding<[4:10, block = [1, 32]], [2:4]>
func.func @linear(%x: tensor<?x77xf16>, %w: tensor<77x40xf16, #w>, %i: tensor<?x40xf32>) -> tensor<?x40xf32> {
  %y = linalg.matmul ins(%x, %w : tensor<?x77xf16>, tensor<77x40xf16, #w>) outs(%i : tensor<?x40xf32>) -> tensor<?x40xf32>
  return %y : tensor<?x40xf32>
}
