// RUN: nm-opt %s --nm-sparse-flatten-transposes | FileCheck %s

// An image is transposed as a matrix, or a batch of matrices, of what stays together.

// CHECK-LABEL: func @result
// CHECK: %[[C:.*]] = tensor.collapse_shape %{{.*}} {{\[\[}}0], [1, 2], [3]] : tensor<8x4x5x?xf16> into tensor<8x20x?xf16>
// CHECK: %[[T:.*]] = linalg.transpose ins(%[[C]] : tensor<8x20x?xf16>) {{.*}} permutation = [2, 1, 0]
// CHECK: tensor.expand_shape %[[T]] {{\[\[}}0], [1, 2], [3]] {{.*}} into tensor<?x4x5x8xf16>
func.func @result(%y: tensor<8x4x5x?xf16>, %e: tensor<?x4x5x8xf16>, %x: tensor<4x9x9x?xf16>) -> (tensor<?x4x5x8xf16>, tensor<36x?xf16>) {
  %t = linalg.transpose ins(%y : tensor<8x4x5x?xf16>) outs(%e : tensor<?x4x5x8xf16>) permutation = [3, 1, 2, 0]
  %p = nm_sparse.patches <kernel = [3, 3]> %x : tensor<4x9x9x?xf16> -> tensor<36x?xf16>
  return %t, %p : tensor<?x4x5x8xf16>, tensor<36x?xf16>
}

// CHECK-LABEL: func @image
// CHECK: tensor.collapse_shape %{{.*}} {{\[\[}}0], [1, 2, 3]] : tensor<2x4x9x9xf16> into tensor<2x324xf16>
// CHECK: linalg.transpose {{.*}} permutation = [1, 0]
// CHECK: tensor.expand_shape %{{.*}} {{\[\[}}0, 1, 2], [3]]
// CHECK: nm_sparse.patches
func.func @image(%x: tensor<2x4x9x9xf16>, %e: tensor<4x9x9x2xf16>) -> tensor<36x98xf16> {
  %t = linalg.transpose ins(%x : tensor<2x4x9x9xf16>) outs(%e : tensor<4x9x9x2xf16>) permutation = [1, 2, 3, 0]
  %p = nm_sparse.patches <kernel = [3, 3]> %t : tensor<4x9x9x2xf16> -> tensor<36x98xf16>
  return %p : tensor<36x98xf16>
}

// One image has its batch anywhere.

// CHECK-LABEL: func @one
// CHECK-NOT: linalg.transpose
// CHECK: tensor.expand_shape %{{.*}} into tensor<4x9x9x1xf16>
// CHECK-NOT: linalg.transpose
// CHECK: return
func.func @one(%x: tensor<1x4x9x9xf16>, %e: tensor<4x9x9x1xf16>) -> tensor<36x49xf16> {
  %t = linalg.transpose ins(%x : tensor<1x4x9x9xf16>) outs(%e : tensor<4x9x9x1xf16>) permutation = [1, 2, 3, 0]
  %p = nm_sparse.patches <kernel = [3, 3]> %t : tensor<4x9x9x1xf16> -> tensor<36x49xf16>
  return %p : tensor<36x49xf16>
}

// What no kernel does, and functions without convolutions, stay as they are.

// CHECK-LABEL: func @other
// CHECK: linalg.transpose {{.*}} permutation = [1, 3, 0, 2]
func.func @other(%y: tensor<8x4x5x3xf16>, %e: tensor<4x3x8x5xf16>, %x: tensor<4x9x9x8xf16>) -> (tensor<4x3x8x5xf16>, tensor<36x392xf16>) {
  %t = linalg.transpose ins(%y : tensor<8x4x5x3xf16>) outs(%e : tensor<4x3x8x5xf16>) permutation = [1, 3, 0, 2]
  %p = nm_sparse.patches <kernel = [3, 3]> %x : tensor<4x9x9x8xf16> -> tensor<36x392xf16>
  return %t, %p : tensor<4x3x8x5xf16>, tensor<36x392xf16>
}

// CHECK-LABEL: func @without
// CHECK: linalg.transpose {{.*}} permutation = [3, 1, 2, 0]
func.func @without(%y: tensor<8x4x5x3xf16>, %e: tensor<3x4x5x8xf16>) -> tensor<3x4x5x8xf16> {
  %t = linalg.transpose ins(%y : tensor<8x4x5x3xf16>) outs(%e : tensor<3x4x5x8xf16>) permutation = [3, 1, 2, 0]
  return %t : tensor<3x4x5x8xf16>
}
