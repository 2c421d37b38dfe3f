// Activations as features by tokens, and panels of 128 outputs: products of
// warpgroups can take them.
#w = #nm_sparse.encoding<8:32, block = [1, 128]>
func.func @f(%x: tensor<4096x?xf16>, %w: tensor<4096x4096xf16, #w>,
             %init: tensor<4096x?xf32>) -> tensor<4096x?xf32> {
  %y = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (k, m)>,
                                      affine_map<(m, n, k) -> (k, n)>,
                                      affine_map<(m, n, k) -> (n, m)>]
      ins(%x, %w : tensor<4096x?xf16>, tensor<4096x4096xf16, #w>)
      outs(%init : tensor<4096x?xf32>) -> tensor<4096x?xf32>
  return %y : tensor<4096x?xf32>
}
