#w = #nm_sparse.encoding<8:16>

func.func @decode(%x: tensor<1x4096xf16>, %w: tensor<4096x4096xf16, #w>)
    -> tensor<1x4096xf16> {
  %zero = arith.constant 0.0 : f16
  %empty = tensor.empty() : tensor<1x4096xf16>
  %init = linalg.fill ins(%zero : f16) outs(%empty : tensor<1x4096xf16>)
      -> tensor<1x4096xf16>
  %y = linalg.matmul
      ins(%x, %w : tensor<1x4096xf16>, tensor<4096x4096xf16, #w>)
      outs(%init : tensor<1x4096xf16>) -> tensor<1x4096xf16>
  return %y : tensor<1x4096xf16>
}
