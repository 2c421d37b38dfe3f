#w = #nm_sparse.encoding<2:4, dim = 1>
#id = affine_map<(b, s, n) -> (b, s, n)>
#bias = affine_map<(b, s, n) -> (n)>
func.func @f(%x: tensor<?x?x64xf16>, %w: tensor<96x64xf16, #w>, %w2: tensor<64x96xf16, #w>, %bias: tensor<96xf16>) -> tensor<?x?x64xf16> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f16
  %b = tensor.dim %x, %c0 : tensor<?x?x64xf16>
  %s = tensor.dim %x, %c1 : tensor<?x?x64xf16>
  %e = tensor.empty() : tensor<64x96xf16>
  %t = linalg.transpose ins(%w : tensor<96x64xf16, #w>) outs(%e : tensor<64x96xf16>) permutation = [1, 0]
  %x2 = tensor.collapse_shape %x [[0, 1], [2]] : tensor<?x?x64xf16> into tensor<?x64xf16>
  %m = arith.muli %b, %s : index
  %e2 = tensor.empty(%m) : tensor<?x96xf16>
  %z = linalg.fill ins(%zero : f16) outs(%e2 : tensor<?x96xf16>) -> tensor<?x96xf16>
  %p = linalg.matmul ins(%x2, %t : tensor<?x64xf16>, tensor<64x96xf16>) outs(%z : tensor<?x96xf16>) -> tensor<?x96xf16>
  %p3 = tensor.expand_shape %p [[0, 1], [2]] output_shape [%b, %s, 96] : tensor<?x96xf16> into tensor<?x?x96xf16>
  %e3 = tensor.empty(%b, %s) : tensor<?x?x96xf16>
  %a = linalg.generic {indexing_maps = [#bias, #id, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%bias, %p3 : tensor<96xf16>, tensor<?x?x96xf16>) outs(%e3 : tensor<?x?x96xf16>) {
  ^bb0(%1: f16, %0: f16, %o: f16):
    %2 = arith.addf %0, %1 : f16
    linalg.yield %2 : f16
  } -> tensor<?x?x96xf16>
  %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%a : tensor<?x?x96xf16>) outs(%e3 : tensor<?x?x96xf16>) {
  ^bb0(%0: f16, %o: f16):
    %1 = arith.maximumf %0, %zero : f16
    linalg.yield %1 : f16
  } -> tensor<?x?x96xf16>
  %f = tensor.empty() : tensor<96x64xf16>
  %t2 = linalg.transpose ins(%w2 : tensor<64x96xf16, #w>) outs(%f : tensor<96x64xf16>) permutation = [1, 0]
  %y2 = tensor.collapse_shape %y [[0, 1], [2]] : tensor<?x?x96xf16> into tensor<?x96xf16>
  %g2 = tensor.empty(%m) : tensor<?x64xf16>
  %gz = linalg.fill ins(%zero : f16) outs(%g2 : tensor<?x64xf16>) -> tensor<?x64xf16>
  %q = linalg.matmul ins(%y2, %t2 : tensor<?x96xf16>, tensor<96x64xf16>) outs(%gz : tensor<?x64xf16>) -> tensor<?x64xf16>
  %q3 = tensor.expand_shape %q [[0, 1], [2]] output_shape [%b, %s, 64] : tensor<?x64xf16> into tensor<?x?x64xf16>
  %h3 = tensor.empty(%b, %s) : tensor<?x?x64xf16>
  %r = linalg.add ins(%q3, %x : tensor<?x?x64xf16>, tensor<?x?x64xf16>) outs(%h3 : tensor<?x?x64xf16>) -> tensor<?x?x64xf16>
  return %r : tensor<?x?x64xf16>
}
