#w = #nm_sparse.encoding<2:4, block = [1, 32]>
func.func @linear(%x: tensor<?x128xf32>, %w: tensor<128x64xf32, #w>, %init: tensor<?x64xf32>) -> tensor<?x64xf32> {
  %y = linalg.matmul ins(%x, %w : tensor<?x128xf32>, tensor<128x64xf32, #w>) outs(%init : tensor<?x64xf32>) -> tensor<?x64xf32>
  return %y : tensor<?x64xf32>
}
