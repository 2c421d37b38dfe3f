// Two returns, of which each block has one.
#w = #nm_sparse.encoding<8:32, block = [1, 32]>

func.func @blocks(%x: tensor<16x64xf16>, %w: tensor<64x32xf16, #w>,
                  %i: tensor<16x32xf32>, %n: index) -> tensor<16x32xf32> {
  %c0 = arith.constant 0 : index
  %c = arith.cmpi sgt, %n, %c0 : index
  cf.cond_br %c, ^bb1, ^bb2
^bb1:
  %y = linalg.matmul ins(%x, %w : tensor<16x64xf16>, tensor<64x32xf16, #w>)
                     outs(%i : tensor<16x32xf32>) -> tensor<16x32xf32>
  return %y : tensor<16x32xf32>
^bb2:
  return %i : tensor<16x32xf32>
}
