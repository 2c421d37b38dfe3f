func.func @f(%v: tensor<4x8xf16>) -> tensor<4x8xf16> {
  %zero = arith.constant 0.0 : f16
  %empty = tensor.empty() : tensor<4x8xf16>
  %init = linalg.fill ins(%zero : f16) outs(%empty : tensor<4x8xf16>)
      -> tensor<4x8xf16>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  %r = scf.for %i = %c0 to %c4 step %c1 iter_args(%a = %init)
      -> tensor<4x8xf16> {
    %q = scf.for %j = %c0 to %c8 step %c1 iter_args(%b = %a)
        -> tensor<4x8xf16> {
      %s = tensor.extract %v[%i, %j] : tensor<4x8xf16>
      %t = tensor.insert %s into %b[%i, %j] : tensor<4x8xf16>
      scf.yield %t : tensor<4x8xf16>
    }
    scf.yield %q : tensor<4x8xf16>
  }
  return %r : tensor<4x8xf16>
}
