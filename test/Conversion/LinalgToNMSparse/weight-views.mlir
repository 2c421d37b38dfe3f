// RUN: nm-opt %s --convert-linalg-to-nm-sparse --split-input-file | FileCheck %s

// What only rearranges a weight on its way to a product is part of how the
// product reads it: exporters of PyTorch transpose the weight of every layer.

// CHECK: #[[$W:.+]] = #nm_sparse.encoding<2:4, dim = 1>
#w = #nm_sparse.encoding<2:4, dim = 1>

// CHECK-LABEL: func @transposed
// CHECK-SAME: %{{[^:]*}}: tensor<8x64xf16>, %[[W:[^:]*]]: tensor<96x64xf16, #[[$W]]>
func.func @transposed(%x: tensor<8x64xf16>, %w: tensor<96x64xf16, #w>, %init: tensor<8x96xf32>) -> tensor<8x96xf32> {
  // CHECK-NEXT: nm_sparse.pack #[[$W]] %[[W]]
  // CHECK-NEXT: %[[Y:.+]] = nm_sparse.matmul #[[$W]]
  // CHECK: return %[[Y]]
  %e = tensor.empty() : tensor<64x96xf16>
  %t = linalg.transpose ins(%w : tensor<96x64xf16, #w>) outs(%e : tensor<64x96xf16>) permutation = [1, 0]
  %y = linalg.matmul ins(%x, %t : tensor<8x64xf16>, tensor<64x96xf16>) outs(%init : tensor<8x96xf32>) -> tensor<8x96xf32>
  return %y : tensor<8x96xf32>
}

// -----

// The type of the result may say the pattern, too, and the transposition be a
// generic one. One pack serves all products that read a weight.

#w = #nm_sparse.encoding<2:4, dim = 1>
#t = #nm_sparse.encoding<2:4>

// CHECK-LABEL: func @encoded_result
func.func @encoded_result(%x: tensor<8x64xf16>, %w: tensor<96x64xf16, #w>, %init: tensor<8x96xf32>) -> tensor<8x96xf32> {
  // CHECK-NEXT: nm_sparse.pack
  // CHECK-NEXT: nm_sparse.matmul
  // CHECK: nm_sparse.matmul
  // CHECK-NOT: linalg
  %e = tensor.empty() : tensor<64x96xf16, #t>
  %t = linalg.transpose ins(%w : tensor<96x64xf16, #w>) outs(%e : tensor<64x96xf16, #t>) permutation = [1, 0]
  %y = linalg.matmul ins(%x, %t : tensor<8x64xf16>, tensor<64x96xf16, #t>) outs(%init : tensor<8x96xf32>) -> tensor<8x96xf32>
  %d = tensor.empty() : tensor<64x96xf16>
  %g = linalg.generic {
      indexing_maps = [affine_map<(i, j) -> (j, i)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]}
      ins(%w : tensor<96x64xf16, #w>) outs(%d : tensor<64x96xf16>) {
    ^bb0(%a: f16, %o: f16):
      linalg.yield %a : f16
  } -> tensor<64x96xf16>
  %z = linalg.matmul ins(%x, %g : tensor<8x64xf16>, tensor<64x96xf16>) outs(%y : tensor<8x96xf32>) -> tensor<8x96xf32>
  return %z : tensor<8x96xf32>
}

// -----

// A weight that is repeated for each batch is shared by them.

#w = #nm_sparse.encoding<2:4, dim = 1>

// CHECK-DAG: affine_map<(d0, d1, d2, d3) -> (d0, d1, d3)>
// CHECK-DAG: affine_map<(d0, d1, d2, d3) -> (d3, d2)>
// CHECK-DAG: affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>
// CHECK-LABEL: func @broadcast
func.func @broadcast(%x: tensor<2x8x64xf16>, %w: tensor<96x64xf16, #w>, %init: tensor<2x8x96xf32>) -> tensor<2x8x96xf32> {
  // CHECK-NEXT: nm_sparse.pack
  // CHECK-NEXT: nm_sparse.matmul
  // CHECK-NOT: linalg
  %e = tensor.empty() : tensor<64x96xf16>
  %t = linalg.transpose ins(%w : tensor<96x64xf16, #w>) outs(%e : tensor<64x96xf16>) permutation = [1, 0]
  %f = tensor.empty() : tensor<2x64x96xf16>
  %b = linalg.broadcast ins(%t : tensor<64x96xf16>) outs(%f : tensor<2x64x96xf16>) dimensions = [0]
  %y = linalg.batch_matmul ins(%x, %b : tensor<2x8x64xf16>, tensor<2x64x96xf16>) outs(%init : tensor<2x8x96xf32>) -> tensor<2x8x96xf32>
  return %y : tensor<2x8x96xf32>
}

// -----

// A cast that takes the encoding off, or puts it back, changes no number.

#w = #nm_sparse.encoding<2:4>

// CHECK: #[[$W:.+]] = #nm_sparse.encoding<2:4>
// CHECK-LABEL: func @casts
// CHECK-SAME: %[[W:[^:]*]]: tensor<64x96xf16, #[[$W]]>
func.func @casts(%w: tensor<64x96xf16, #w>, %x: tensor<8x64xf16>, %init: tensor<8x96xf32>) -> tensor<8x96xf32> {
  // CHECK-NEXT: nm_sparse.pack #[[$W]] %[[W]]
  // CHECK-NEXT: nm_sparse.matmul
  // CHECK: nm_sparse.matmul
  // CHECK-NOT: tensor.cast
  %d = tensor.cast %w : tensor<64x96xf16, #w> to tensor<64x96xf16>
  %y = linalg.matmul ins(%x, %d : tensor<8x64xf16>, tensor<64x96xf16>) outs(%init : tensor<8x96xf32>) -> tensor<8x96xf32>
  %u = tensor.cast %w : tensor<64x96xf16, #w> to tensor<?x?xf16>
  %b = tensor.cast %u : tensor<?x?xf16> to tensor<64x96xf16, #w>
  %z = linalg.matmul ins(%x, %b : tensor<8x64xf16>, tensor<64x96xf16, #w>) outs(%y : tensor<8x96xf32>) -> tensor<8x96xf32>
  return %z : tensor<8x96xf32>
}

// -----

// A cast to another pattern says that the data has that one: it is the weight.

#w = #nm_sparse.encoding<2:4>
#v = #nm_sparse.encoding<4:8>

// CHECK: #[[$V:.+]] = #nm_sparse.encoding<4:8>
// CHECK-LABEL: func @other_pattern
func.func @other_pattern(%w: tensor<64x96xf16, #w>, %x: tensor<8x64xf16>, %init: tensor<8x96xf32>) -> tensor<8x96xf32> {
  // CHECK: %[[V:.+]] = tensor.cast
  // CHECK: nm_sparse.pack #[[$V]] %[[V]]
  // CHECK: nm_sparse.matmul #[[$V]]
  %v = tensor.cast %w : tensor<64x96xf16, #w> to tensor<64x96xf16, #v>
  %y = linalg.matmul ins(%x, %v : tensor<8x64xf16>, tensor<64x96xf16, #v>) outs(%init : tensor<8x96xf32>) -> tensor<8x96xf32>
  return %y : tensor<8x96xf32>
}
