#w = #nm_sparse.encoding<2:4>
func.func @f(%x: tensor<?x64xf16>, %a: tensor<64x64xf16, #w>) -> tensor<?x64xf32> {
  %c5 = arith.constant 5 : index
  %z = arith.constant 0.0 : f32
  %d = tensor.dim %x, %c5 : tensor<?x64xf16>
  %e = tensor.empty(%d) : tensor<?x64xf32>
  %i = linalg.fill ins(%z : f32) outs(%e : tensor<?x64xf32>) -> tensor<?x64xf32>
  %y = linalg.matmul ins(%x, %a : tensor<?x64xf16>, tensor<64x64xf16, #w>) outs(%i : tensor<?x64xf32>) -> tensor<?x64xf32>
  return %y : tensor<?x64xf32>
}
