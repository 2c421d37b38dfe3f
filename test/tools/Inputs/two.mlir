func.func @a(%x: tensor<4xf32>) { return }
func.func @b(%x: memref<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> { return %y : tensor<4xf32> }
