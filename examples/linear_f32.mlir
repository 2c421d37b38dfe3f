// Linear layer, 16:32 vector-wise (50 % sparse), f32 throughout
// nm-run: --size m=64
//
// The setting of the NM-SpMM paper: panels of 32 outputs, CUDA cores only, so
// the result is exact f32.

#w = #nm_sparse.encoding<16:32, block = [1, 32]>

func.func @linear_f32(%x: tensor<?x1024xf32>, %w: tensor<1024x1024xf32, #w>,
                      %init: tensor<?x1024xf32>) -> tensor<?x1024xf32> {
  %y = linalg.matmul
      ins(%x, %w : tensor<?x1024xf32>, tensor<1024x1024xf32, #w>)
      outs(%init : tensor<?x1024xf32>) -> tensor<?x1024xf32>
  return %y : tensor<?x1024xf32>
}
