#w = #nm_sparse.encoding<2:4>

func.func private @product(%x: tensor<8x64xf32>, %d: tensor<64x32xf32>) -> tensor<8x32xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<8x32xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<8x32xf32>) -> tensor<8x32xf32>
  %w = nm_sparse.prune #w %d : tensor<64x32xf32> to tensor<64x32xf32, #w>
  %y = linalg.matmul ins(%x, %w : tensor<8x64xf32>, tensor<64x32xf32, #w>) outs(%init : tensor<8x32xf32>) -> tensor<8x32xf32>
  return %y : tensor<8x32xf32>
}

func.func @main(%x: tensor<8x64xf32>, %d: tensor<64x32xf32>) -> tensor<8x32xf32> {
  %y = func.call @product(%x, %d) : (tensor<8x64xf32>, tensor<64x32xf32>) -> tensor<8x32xf32>
  return %y : tensor<8x32xf32>
}
