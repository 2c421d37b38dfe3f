#w = #nm_sparse.encoding<2:4>
func.func @f(%x: tensor<8x64xf32>, %w: tensor<64x32xf32, #w> loc("/dev/zero":1:1), %i: tensor<8x32xf32>) -> tensor<8x32xf32> {
  %y = linalg.matmul ins(%x, %w : tensor<8x64xf32>, tensor<64x32xf32, #w>) outs(%i : tensor<8x32xf32>) -> tensor<8x32xf32>
  return %y : tensor<8x32xf32>
}
