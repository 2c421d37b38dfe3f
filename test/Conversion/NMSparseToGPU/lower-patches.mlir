// RUN: nm-opt %s --nm-sparse-lower-patches | FileCheck %s

// A CTA writes a piece of a row: what it reads lies in the image, or is zero.

// CHECK: #[[OUTPUTS:.*]] = affine_map<()[s0] -> (s0 * 25)>
// CHECK-LABEL: func.func @patches
// CHECK-SAME: %[[X:.*]]: tensor<4x5x5x?xf16>
// CHECK: %[[BATCH:.*]] = tensor.dim %[[X]], %c3
// CHECK: %[[TOKENS:.*]] = affine.apply #[[OUTPUTS]]()[%[[BATCH]]]
// CHECK: %[[IMAGE:.*]] = bufferization.to_buffer %[[X]] read_only
// CHECK: %[[MATRIX:.*]] = memref.alloc(%[[TOKENS]]) : memref<36x?xf16>
// CHECK: gpu.launch blocks(%[[ROW:[a-z0-9]+]], %{{.*}}) in (%{{.*}} = %c36,
// CHECK-SAME: function(@patches_patches)
// CHECK: %[[TOKEN:.*]] = arith.addi
// CHECK: arith.cmpi ult, %[[TOKEN]], %[[TOKENS]]
// CHECK: %[[ELEMENT:.*]] = scf.if
// CHECK: memref.load
// CHECK: else
// CHECK: arith.constant 0.000000e+00 : f16
// CHECK: memref.store %[[ELEMENT]], %[[MATRIX]][%[[ROW]], %[[TOKEN]]]
func.func @patches(%x: tensor<4x5x5x?xf16>) -> tensor<36x?xf16> {
  %y = nm_sparse.patches <kernel = [3, 3], low = [1, 1], high = [1, 1]> %x : tensor<4x5x5x?xf16> -> tensor<36x?xf16>
  return %y : tensor<36x?xf16>
}

// Without zeros around the image all elements exist.

// CHECK-LABEL: func.func @inside
// CHECK: gpu.launch
// CHECK: scf.if
// CHECK-NOT: scf.if
// CHECK: gpu.terminator
func.func @inside(%x: tensor<4x5x5x8xf16>) -> tensor<36x72xf16> {
  %y = nm_sparse.patches <kernel = [3, 3]> %x : tensor<4x5x5x8xf16> -> tensor<36x72xf16>
  return %y : tensor<36x72xf16>
}

// If tokens are rows, a CTA writes a piece of a token, whose channels are neighbours.

// CHECK-LABEL: func.func @token_major
// CHECK: %[[TOKENS:.*]] = affine.apply #[[OUTPUTS]]
// CHECK: memref.alloc(%[[TOKENS]]) : memref<?x36xf16>
// CHECK: gpu.launch blocks(%[[TOKEN:[a-z0-9]+]], %{{.*}}) in (%{{.*}} = %[[TOKENS]],
// CHECK: %[[ROW:.*]] = arith.addi
// CHECK: arith.cmpi ult, %[[ROW]], %c36
// CHECK: memref.store %{{.*}}, %{{.*}}[%[[TOKEN]], %[[ROW]]]
func.func @token_major(%x: tensor<?x5x5x4xf16>) -> tensor<?x36xf16> {
  %y = nm_sparse.patches <kernel = [3, 3], low = [1, 1], high = [1, 1], image = "bhwc", rows = "rsc"> %x : tensor<?x5x5x4xf16> -> tensor<?x36xf16>
  return %y : tensor<?x36xf16>
}

// CHECK-LABEL: func.func @unused
// CHECK-NOT: gpu.launch
// CHECK: return
func.func @unused(%x: tensor<4x5x5x8xf16>) {
  %y = nm_sparse.patches <kernel = [3, 3]> %x : tensor<4x5x5x8xf16> -> tensor<36x72xf16>
  return
}

// Entries of a batch that comes first are planes of the grid.

// CHECK-LABEL: func.func @batches
// CHECK: %[[BATCH:.*]] = tensor.dim %{{.*}}, %c0
// CHECK: %[[MATRIX:.*]] = memref.alloc(%[[BATCH]]) : memref<?x36x9xf16>
// CHECK: gpu.launch blocks(%[[ROW:[a-z0-9]+]], %{{[a-z0-9]+}}, %[[ENTRY:[a-z0-9]+]]) in ({{.*}} = %c36{{[_0-9]*}}, {{.*}}, {{.*}} = %[[BATCH]])
// CHECK: memref.store %{{.*}}, %[[MATRIX]][%[[ENTRY]], %[[ROW]], %{{.*}}]
func.func @batches(%x: tensor<?x4x5x5xf16>) -> tensor<?x36x9xf16> {
  %y = nm_sparse.patches <kernel = [3, 3], image = "bchw"> %x : tensor<?x4x5x5xf16> -> tensor<?x36x9xf16>
  return %y : tensor<?x36x9xf16>
}
