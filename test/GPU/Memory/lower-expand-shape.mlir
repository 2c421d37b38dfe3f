// RUN: nm-opt %s --nm-sparse-lower-expand-shape | FileCheck %s

// CHECK: #[[MAP:.+]] = affine_map<()[s0] -> (s0 * 96)>
// CHECK-LABEL: func @batch_sequence
// CHECK-SAME: %[[X:.+]]: memref<?x96xf32>, %[[B:.+]]: index, %[[S:.+]]: index
func.func @batch_sequence(%x: memref<?x96xf32>, %b: index, %s: index) -> memref<?x?x96xf32> {
  // CHECK: %[[BASE:.+]], %{{.+}}, %{{.+}}:2, %{{.+}}:2 = memref.extract_strided_metadata %[[X]]
  // CHECK: %[[STRIDE:.+]] = affine.apply #[[MAP]]()[%[[S]]]
  // CHECK: memref.reinterpret_cast %[[BASE]] to offset: [0], sizes: [%[[B]], %[[S]], 96], strides: [%[[STRIDE]], 96, 1]
  %0 = memref.expand_shape %x [[0, 1], [2]] output_shape [%b, %s, 96] : memref<?x96xf32> into memref<?x?x96xf32>
  return %0 : memref<?x?x96xf32>
}

// One dynamic size in each group is left to upstream.

// CHECK-LABEL: func @one_each
func.func @one_each(%x: memref<?x?xf32>, %b: index, %s: index) -> memref<?x2x?x4xf32> {
  // CHECK: memref.expand_shape
  %0 = memref.expand_shape %x [[0, 1], [2, 3]] output_shape [%b, 2, %s, 4] : memref<?x?xf32> into memref<?x2x?x4xf32>
  return %0 : memref<?x2x?x4xf32>
}
