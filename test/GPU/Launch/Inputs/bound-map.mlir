// A product whose kernel copies by tensor maps.
#w = #nm_sparse.encoding<2:4>
func.func @linear(%x: tensor<?x128xf16>, %w: tensor<128x64xf16, #w>,
                  %init: tensor<?x64xf32>) -> tensor<?x64xf32> {
  %y = linalg.matmul ins(%x, %w : tensor<?x128xf16>, tensor<128x64xf16, #w>)
      outs(%init : tensor<?x64xf32>) -> tensor<?x64xf32>
  return %y : tensor<?x64xf32>
}
