// x + y, without a sparse weight: the compiler leaves it on the host.
func.func @add(%x: tensor<?xf32>, %y: tensor<?xf32>, %init: tensor<?xf32>) -> tensor<?xf32> {
  %sum = linalg.add ins(%x, %y : tensor<?xf32>, tensor<?xf32>)
                    outs(%init : tensor<?xf32>) -> tensor<?xf32>
  return %sum : tensor<?xf32>
}
