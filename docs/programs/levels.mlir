// V:N:M for many tokens: docs/SparsePath.md follows it through the compiler.
#w = #nm_sparse.encoding<[4:8, block = [1, 128]], [2:4]>
#x = affine_map<(m, n, k) -> (k, m)>
#y = affine_map<(m, n, k) -> (m, n)>

func.func @levels(%x: tensor<4096x2048xf16>, %w: tensor<4096x4096xf16, #w>)
    -> tensor<2048x4096xf16> {
  %zero = arith.constant 0.0 : f16
  %empty = tensor.empty() : tensor<2048x4096xf16>
  %init = linalg.fill ins(%zero : f16) outs(%empty : tensor<2048x4096xf16>)
      -> tensor<2048x4096xf16>
  %y = linalg.matmul
      indexing_maps = [#x, affine_map<(m, n, k) -> (k, n)>, #y]
      ins(%x, %w : tensor<4096x2048xf16>, tensor<4096x4096xf16, #w>)
      outs(%init : tensor<2048x4096xf16>) -> tensor<2048x4096xf16>
  return %y : tensor<2048x4096xf16>
}
