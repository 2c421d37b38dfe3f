// More memory than any machine has, in an argument or in between.
func.func @wide(%x: tensor<?x16777216xf32>) -> tensor<?x16777216xf32> {
  return %x : tensor<?x16777216xf32>
}

func.func @inside(%x: tensor<4xf32>, %i: index) -> tensor<4xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1152921504606846976xf32>
  %large = linalg.fill ins(%zero : f32) outs(%e : tensor<1152921504606846976xf32>) -> tensor<1152921504606846976xf32>
  %a = tensor.extract %large[%i] : tensor<1152921504606846976xf32>
  %y = tensor.insert %a into %x[%i] : tensor<4xf32>
  return %y : tensor<4xf32>
}
