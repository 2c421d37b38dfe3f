// RUN: nm-opt %s --allow-unregistered-dialect --convert-linalg-to-nm-sparse --nm-sparse-materialize-encodings --convert-nm-sparse-to-linalg=structured | FileCheck %s --check-prefix=KEPT
// RUN: nm-opt %s --allow-unregistered-dialect --convert-linalg-to-nm-sparse --nm-sparse-materialize-encodings --convert-nm-sparse-to-linalg="structured drop-attributes" | FileCheck %s --implicit-check-not=nm_sparse --implicit-check-not=nm_tile

// Another compiler cannot parse attributes of ours. Those of others stay.

#w = #nm_sparse.encoding<2:4>

// KEPT-LABEL: func @f
// KEPT-SAME: %{{.+}}: tensor<4x4xf32> {nm_sparse.component = #nm_sparse.component<"values"
// KEPT-SAME: -> ({{.*}}, tensor<4x4xf32> {nm_sparse.component = #nm_sparse.component<"values"
// KEPT-SAME: nm_sparse.tokens
// CHECK-LABEL: func @f
// CHECK-SAME: %{{.+}}: tensor<?x8xf32> {other.name = "x"}, %{{.+}}: tensor<4x4xf32>, %{{.+}}: tensor<4x4xi8>
// CHECK-SAME: -> (tensor<?x4xf32> {other.name = "y"}, tensor<4x4xf32>, tensor<4x4xi8>) attributes {other.of = 1 : i64}
func.func @f(%x: tensor<?x8xf32> {other.name = "x"}, %w: tensor<8x4xf32, #w>, %init: tensor<?x4xf32>)
    -> (tensor<?x4xf32> {other.name = "y"}, tensor<8x4xf32, #w>) attributes {nm_sparse.tokens = 1 : i64, other.of = 1 : i64} {
  // CHECK: linalg.exp {other.step = 1 : i64} ins
  %e = linalg.exp {other.step = 1 : i64}
    ins(%x : tensor<?x8xf32>) outs(%x : tensor<?x8xf32>) -> tensor<?x8xf32>
  %y = linalg.matmul ins(%e, %w : tensor<?x8xf32>, tensor<8x4xf32, #w>) outs(%init : tensor<?x4xf32>) -> tensor<?x4xf32>
  return %y, %w : tensor<?x4xf32>, tensor<8x4xf32, #w>
}
