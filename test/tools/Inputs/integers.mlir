// Integers alone, and integers that a float of f16 was truncated to.
#row = affine_map<(i, j) -> (i, j)>
#w = #nm_sparse.encoding<2:4, block = [1, 8]>

func.func @integers(%x: tensor<?x64xi8>, %w: tensor<64x32xi8, #w>,
                    %i: tensor<?x32xi32>, %f: tensor<?x32xf16>)
    -> (tensor<?x32xi32>, tensor<?x32xi32>) {
  %y = linalg.matmul ins(%x, %w : tensor<?x64xi8>, tensor<64x32xi8, #w>)
                     outs(%i : tensor<?x32xi32>) -> tensor<?x32xi32>
  %t = linalg.generic {indexing_maps = [#row, #row],
                       iterator_types = ["parallel", "parallel"]}
                      ins(%f : tensor<?x32xf16>) outs(%i : tensor<?x32xi32>) {
  ^bb0(%a: f16, %b: i32):
    %thousand = arith.constant 1000.0 : f16
    %c = arith.mulf %a, %thousand : f16
    %d = arith.fptosi %c : f16 to i32
    linalg.yield %d : i32
  } -> tensor<?x32xi32>
  return %y, %t : tensor<?x32xi32>, tensor<?x32xi32>
}
