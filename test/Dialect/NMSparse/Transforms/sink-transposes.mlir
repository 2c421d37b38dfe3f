// RUN: nm-opt %s --nm-sparse-sink-transposes --split-input-file | FileCheck %s

// What is added to the transposed result of a convolution, and applied to it, is
// computed before the transposition: a bias is read by another loop, a residual is
// transposed back.

// CHECK: #[[ID:.*]] = affine_map<(d0, d1, d2, d3) -> (d3, d1, d2, d0)>
// CHECK: #[[BIAS:.*]] = affine_map<(d0, d1, d2, d3) -> (d3)>
// CHECK-LABEL: func @epilogue
// CHECK-SAME: %[[X:[^:]*]]: tensor<16x6x6x2xf16>, {{.*}} %[[B:[^:]*]]: tensor<8xf32>, %[[R:[^:]*]]: tensor<2x4x4x8xf32>
// CHECK: %[[Y:.*]] = tensor.expand_shape
// CHECK: %[[T:.*]] = linalg.transpose ins(%[[R]] : {{.*}} permutation = [3, 1, 2, 0]
// CHECK: %[[Z:.*]] = linalg.generic {indexing_maps = [#[[ID]], #[[BIAS]], #[[ID]], #[[ID]]]
// CHECK-SAME: ins(%[[Y]], %[[B]], %[[T]] : {{.*}} outs(%{{.*}} : tensor<8x4x4x2xf16>)
// CHECK: %[[BACK:.*]] = linalg.transpose ins(%[[Z]] : tensor<8x4x4x2xf16>) {{.*}} permutation = [3, 1, 2, 0]
// CHECK: return %[[BACK]]
#w = #nm_sparse.encoding<2:4>
#x = affine_map<(m, n, k) -> (k, m)>
#k = affine_map<(m, n, k) -> (k, n)>
#y = affine_map<(m, n, k) -> (n, m)>
#id = affine_map<(b, p, q, f) -> (b, p, q, f)>
#bias = affine_map<(b, p, q, f) -> (f)>
func.func @epilogue(%x: tensor<16x6x6x2xf16>, %v: tensor<72x8xf16>, %i: tensor<72x8xi8>, %init: tensor<8x32xf32>,
                    %bias: tensor<8xf32>, %other: tensor<2x4x4x8xf32>) -> tensor<2x4x4x8xf16> {
  %p = nm_sparse.patches <kernel = [3, 3]> %x : tensor<16x6x6x2xf16> -> tensor<144x32xf16>
  %y = nm_sparse.matmul #w indexing_maps = [#x, #k, #y]
      ins(%p, %v, %i : tensor<144x32xf16>, tensor<72x8xf16>, tensor<72x8xi8>)
      outs(%init : tensor<8x32xf32>) -> tensor<8x32xf32>
  %e = tensor.expand_shape %y [[0], [1, 2, 3]] output_shape [8, 4, 4, 2] : tensor<8x32xf32> into tensor<8x4x4x2xf32>
  %te = tensor.empty() : tensor<2x4x4x8xf32>
  %t = linalg.transpose ins(%e : tensor<8x4x4x2xf32>) outs(%te : tensor<2x4x4x8xf32>) permutation = [3, 1, 2, 0]
  %ze = tensor.empty() : tensor<2x4x4x8xf16>
  %z = linalg.generic {indexing_maps = [#id, #bias, #id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%t, %bias, %other : tensor<2x4x4x8xf32>, tensor<8xf32>, tensor<2x4x4x8xf32>) outs(%ze : tensor<2x4x4x8xf16>) {
  ^bb0(%a: f32, %b: f32, %c: f32, %o: f16):
    %s = arith.addf %a, %b : f32
    %r = arith.addf %s, %c : f32
    %h = arith.truncf %r : f32 to f16
    linalg.yield %h : f16
  } -> tensor<2x4x4x8xf16>
  return %z : tensor<2x4x4x8xf16>
}

// -----

// Named operations, splats and broadcast biases: nothing but the result is transposed.

// CHECK-LABEL: func @named
// CHECK-NOT: linalg.transpose
// CHECK: linalg.generic {{.*}} ins(%{{.*}}, %{{.*}} : tensor<8x4x4x2xf32>, tensor<8xf32>)
// CHECK-NOT: linalg.transpose
// CHECK: linalg.generic {{.*}} ins(%{{.*}}, %{{.*}} : tensor<8x4x4x2xf32>, f32)
// CHECK: %[[BACK:.*]] = linalg.transpose {{.*}} permutation = [3, 0, 1, 2]
// CHECK-NOT: linalg.transpose
// CHECK: return %[[BACK]]
#w = #nm_sparse.encoding<2:4>
#x = affine_map<(m, n, k) -> (k, m)>
#k = affine_map<(m, n, k) -> (k, n)>
#y = affine_map<(m, n, k) -> (n, m)>
func.func @named(%x: tensor<16x6x6x2xf16>, %v: tensor<72x8xf16>, %i: tensor<72x8xi8>, %init: tensor<8x32xf32>,
                 %bias: tensor<8xf32>) -> tensor<2x8x4x4xf32> {
  %zero = arith.constant 0.0 : f32
  %p = nm_sparse.patches <kernel = [3, 3]> %x : tensor<16x6x6x2xf16> -> tensor<144x32xf16>
  %y = nm_sparse.matmul #w indexing_maps = [#x, #k, #y]
      ins(%p, %v, %i : tensor<144x32xf16>, tensor<72x8xf16>, tensor<72x8xi8>)
      outs(%init : tensor<8x32xf32>) -> tensor<8x32xf32>
  %e = tensor.expand_shape %y [[0], [1, 2, 3]] output_shape [8, 4, 4, 2] : tensor<8x32xf32> into tensor<8x4x4x2xf32>
  %te = tensor.empty() : tensor<2x8x4x4xf32>
  %t = linalg.transpose ins(%e : tensor<8x4x4x2xf32>) outs(%te : tensor<2x8x4x4xf32>) permutation = [3, 0, 1, 2]
  %wide = linalg.broadcast ins(%bias : tensor<8xf32>) outs(%te : tensor<2x8x4x4xf32>) dimensions = [0, 2, 3]
  %a = linalg.add ins(%t, %wide : tensor<2x8x4x4xf32>, tensor<2x8x4x4xf32>) outs(%te : tensor<2x8x4x4xf32>) -> tensor<2x8x4x4xf32>
  %none = linalg.fill ins(%zero : f32) outs(%te : tensor<2x8x4x4xf32>) -> tensor<2x8x4x4xf32>
  %z = linalg.max ins(%a, %none : tensor<2x8x4x4xf32>, tensor<2x8x4x4xf32>) outs(%te : tensor<2x8x4x4xf32>) -> tensor<2x8x4x4xf32>
  return %z : tensor<2x8x4x4xf32>
}

// -----

// Patches of a transposed image read it as it was, in any order with the batch last, and
// readers in one other layout share a transposition.

// CHECK-LABEL: func @images
// CHECK-SAME: %[[Y:[^:]*]]: tensor<16x6x6x2xf16>, %[[X:[^:]*]]: tensor<2x6x6x16xf16>
// CHECK: %[[A:.*]] = nm_sparse.patches <kernel = [3, 3], rows = "rsc"> %[[Y]]
// CHECK: %[[T:.*]] = linalg.transpose ins(%[[X]]
// CHECK: %[[B:.*]] = nm_sparse.patches <kernel = [3, 3]> %[[T]]
// CHECK-NOT: linalg.transpose
// CHECK: %[[C:.*]] = nm_sparse.patches <kernel = [1, 1], strides = [2, 2]> %[[T]]
// CHECK: return %[[A]], %[[B]], %[[C]]
func.func @images(%y: tensor<16x6x6x2xf16>, %x: tensor<2x6x6x16xf16>) -> (tensor<144x32xf16>, tensor<144x32xf16>, tensor<16x18xf16>) {
  %ae = tensor.empty() : tensor<2x6x6x16xf16>
  %a = linalg.transpose ins(%y : tensor<16x6x6x2xf16>) outs(%ae : tensor<2x6x6x16xf16>) permutation = [3, 1, 2, 0]
  %be = tensor.empty() : tensor<6x6x16x2xf16>
  %b = linalg.transpose ins(%a : tensor<2x6x6x16xf16>) outs(%be : tensor<6x6x16x2xf16>) permutation = [1, 2, 3, 0]
  %p = nm_sparse.patches <kernel = [3, 3], image = "hwcb", rows = "rsc"> %b : tensor<6x6x16x2xf16> -> tensor<144x32xf16>
  %ce = tensor.empty() : tensor<16x6x6x2xf16>
  %c = linalg.transpose ins(%x : tensor<2x6x6x16xf16>) outs(%ce : tensor<16x6x6x2xf16>) permutation = [3, 1, 2, 0]
  %q = nm_sparse.patches <kernel = [3, 3]> %c : tensor<16x6x6x2xf16> -> tensor<144x32xf16>
  %d = linalg.transpose ins(%x : tensor<2x6x6x16xf16>) outs(%ce : tensor<16x6x6x2xf16>) permutation = [3, 1, 2, 0]
  %r = nm_sparse.patches <kernel = [1, 1], strides = [2, 2]> %d : tensor<16x6x6x2xf16> -> tensor<16x18xf16>
  return %p, %q, %r : tensor<144x32xf16>, tensor<144x32xf16>, tensor<16x18xf16>
}
