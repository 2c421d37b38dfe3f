// RUN: nm-opt %s --convert-linalg-to-nm-sparse --split-input-file | FileCheck %s

// What upstream's passes make of a product.

// --linalg-fuse-elementwise-ops puts what computes the activations into the
// contraction. It is taken out again: behind another product it belongs to that
// one's kernel.

// CHECK-DAG: #[[MK:.+]] = affine_map<(d0, d1) -> (d0, d1)>
// CHECK-DAG: #[[K:.+]] = affine_map<(d0, d1) -> (d1)>
#w = #nm_sparse.encoding<2:4>

// CHECK-LABEL: func @fused_activation
// CHECK-SAME: %[[X:[^:]*]]: tensor<?x64xf32>, %[[B:[^:]*]]: tensor<64xf32>
func.func @fused_activation(%x: tensor<?x64xf32>, %b: tensor<64xf32>, %w: tensor<64x96xf16, #w>, %init: tensor<?x96xf32>)
    -> tensor<?x96xf32> {
  %zero = arith.constant 0.0 : f32
  // CHECK: %[[M:.+]] = tensor.dim %[[X]], %{{.*}}
  // CHECK: %[[E:.+]] = tensor.empty(%[[M]]) : tensor<?x64xf16>
  // CHECK: %[[H:.+]] = linalg.generic {indexing_maps = [#[[MK]], #[[K]], #[[MK]]], iterator_types = ["parallel", "parallel"]}
  // CHECK-SAME: ins(%[[X]], %[[B]] : tensor<?x64xf32>, tensor<64xf32>) outs(%[[E]]
  // CHECK: arith.addf
  // CHECK-NEXT: arith.maximumf
  // CHECK-NEXT: arith.truncf
  // CHECK-NEXT: linalg.yield
  // CHECK: nm_sparse.matmul {{.*}} ins(%[[H]],
  %y = linalg.generic {
      indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k)>,
                       affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>],
      iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %b, %w : tensor<?x64xf32>, tensor<64xf32>, tensor<64x96xf16, #w>) outs(%init : tensor<?x96xf32>) {
    ^bb0(%in: f32, %bias: f32, %weight: f16, %out: f32):
      %0 = arith.addf %in, %bias : f32
      %1 = arith.maximumf %0, %zero : f32
      %2 = arith.truncf %1 : f32 to f16
      %3 = arith.extf %2 : f16 to f32
      %4 = arith.extf %weight : f16 to f32
      %5 = arith.mulf %3, %4 : f32
      %6 = arith.addf %out, %5 : f32
      linalg.yield %6 : f32
  } -> tensor<?x96xf32>
  return %y : tensor<?x96xf32>
}

// -----

// It also reshapes every operand of a product, most of them to what they are,
// and --linalg-fold-unit-extent-dims adds and drops dimensions of size 1.

#w = #nm_sparse.encoding<2:4>

// CHECK-LABEL: func @reshaped_weight
func.func @reshaped_weight(%x: tensor<8x64xf32>, %x3: tensor<1x8x64xf32>, %w: tensor<64x96xf32, #w>,
                           %init: tensor<8x96xf32>, %init3: tensor<1x8x96xf32>) -> (tensor<8x96xf32>, tensor<1x8x96xf32>) {
  // CHECK-NEXT: nm_sparse.pack
  // CHECK-NEXT: nm_sparse.matmul
  // CHECK: nm_sparse.matmul
  // CHECK-NOT: tensor.expand_shape
  %e = tensor.expand_shape %w [[0], [1]] output_shape [64, 96] : tensor<64x96xf32, #w> into tensor<64x96xf32>
  %y = linalg.matmul ins(%x, %e : tensor<8x64xf32>, tensor<64x96xf32>) outs(%init : tensor<8x96xf32>) -> tensor<8x96xf32>
  %b = tensor.expand_shape %w [[0, 1], [2]] output_shape [1, 64, 96] : tensor<64x96xf32, #w> into tensor<1x64x96xf32>
  %z = linalg.batch_matmul ins(%x3, %b : tensor<1x8x64xf32>, tensor<1x64x96xf32>) outs(%init3 : tensor<1x8x96xf32>) -> tensor<1x8x96xf32>
  return %y, %z : tensor<8x96xf32>, tensor<1x8x96xf32>
}

// -----

// --math-uplift-to-fma

#w = #nm_sparse.encoding<2:4>

// CHECK-LABEL: func @fma
func.func @fma(%x: tensor<8x64xf32>, %w: tensor<64x96xf32, #w>, %init: tensor<8x96xf32>) -> tensor<8x96xf32> {
  // CHECK: nm_sparse.matmul
  %y = linalg.generic {
      indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>,
                       affine_map<(m, n, k) -> (m, n)>],
      iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<8x64xf32>, tensor<64x96xf32, #w>) outs(%init : tensor<8x96xf32>) {
    ^bb0(%a: f32, %b: f32, %c: f32):
      %0 = math.fma %a, %b, %c : f32
      linalg.yield %0 : f32
  } -> tensor<8x96xf32>
  return %y : tensor<8x96xf32>
}
