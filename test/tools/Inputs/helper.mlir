// What is called rounds to f16.
func.func private @narrow(%x: tensor<?x32xf32>, %h: tensor<?x32xf16>) -> tensor<?x32xf16> {
  %y = linalg.map { arith.truncf } ins(%x : tensor<?x32xf32>)
                                   outs(%h : tensor<?x32xf16>)
  return %y : tensor<?x32xf16>
}

func.func @helper(%x: tensor<?x32xf32>, %h: tensor<?x32xf16>, %i: tensor<?x32xf32>)
    -> tensor<?x32xf32> {
  %r = func.call @narrow(%x, %h) : (tensor<?x32xf32>, tensor<?x32xf16>) -> tensor<?x32xf16>
  %y = linalg.map { arith.extf } ins(%r : tensor<?x32xf16>)
                                 outs(%i : tensor<?x32xf32>)
  return %y : tensor<?x32xf32>
}
