// The extents of integers are derived, too: their reference makes results of
// its own, whose shape is that of the weight.
//
// RUN: nm-run %s --size m=7 --check --device cpu | FileCheck %s --check-prefix=INTEGERS
// INTEGERS: (i32, tolerance 0.0e+00): PASS
#i = #nm_sparse.encoding<2:4>
func.func @integers(%x: tensor<?x?xi8>, %w: tensor<64x32xi8, #i>, %init: tensor<?x?xi32>) -> tensor<?x?xi32> {
  %y = linalg.matmul ins(%x, %w : tensor<?x?xi8>, tensor<64x32xi8, #i>) outs(%init : tensor<?x?xi32>) -> tensor<?x?xi32>
  return %y : tensor<?x?xi32>
}
