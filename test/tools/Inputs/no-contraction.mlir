// A product that sums over nothing.
#w = #nm_sparse.encoding<8:32, block = [1, 128]>

func.func @empty(%x: tensor<?x0xf16>, %w: tensor<0x256xf16, #w>,
                 %init: tensor<?x256xf32>) -> tensor<?x256xf32> {
  %y = linalg.matmul ins(%x, %w : tensor<?x0xf16>, tensor<0x256xf16, #w>)
                     outs(%init : tensor<?x256xf32>) -> tensor<?x256xf32>
  return %y : tensor<?x256xf32>
}
