// The hidden layer is rounded to f16, the result is not.
#w = #nm_sparse.encoding<2:4, block = [1, 8]>

func.func @narrow(%x: tensor<?x64xf16>, %w0: tensor<64x32xf16, #w>,
                  %i0: tensor<?x32xf32>, %h0: tensor<?x32xf16>,
                  %w1: tensor<32x16xf16, #w>, %i1: tensor<?x16xf32>)
    -> (tensor<?x16xf32>, tensor<?x32xf32>) {
  %a = linalg.matmul ins(%x, %w0 : tensor<?x64xf16>, tensor<64x32xf16, #w>)
                     outs(%i0 : tensor<?x32xf32>) -> tensor<?x32xf32>
  %h = linalg.map { arith.truncf } ins(%a : tensor<?x32xf32>)
                                   outs(%h0 : tensor<?x32xf16>)
  %y = linalg.matmul ins(%h, %w1 : tensor<?x32xf16>, tensor<32x16xf16, #w>)
                     outs(%i1 : tensor<?x16xf32>) -> tensor<?x16xf32>
  return %y, %a : tensor<?x16xf32>, tensor<?x32xf32>
}
