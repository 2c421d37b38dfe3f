// RUN: nm-opt %s --nm-sparse-lower-permute --split-input-file -verify-diagnostics | FileCheck %s

// A CTA copies a piece of a row to the row that the permutation names.
// CHECK-LABEL: func.func @rows
// CHECK: %[[SOURCE:[a-z0-9]+]] = bufferization.to_buffer %{{.*}} read_only
// CHECK: %[[PERM:[a-z0-9]+]] = bufferization.to_buffer %{{.*}} read_only
// CHECK: %[[TARGET:.*]] = memref.alloc(%{{.*}}) : memref<64x?xf16>
// CHECK: gpu.launch blocks(%[[ROW:[a-z0-9]+]], %{{[a-z0-9]+}}, %{{.*}}) in
// CHECK: %[[WORD:.*]] = memref.load %[[PERM]][%[[ROW]]]
// CHECK: %[[TO:.*]] = arith.index_castui %[[WORD]]
// CHECK: %[[ELEMENT:.*]] = memref.load %[[SOURCE]][%[[ROW]], %[[COLUMN:[a-z0-9]+]]]
// CHECK: memref.store %[[ELEMENT]], %[[TARGET]][%[[TO]], %[[COLUMN]]]
func.func @rows(%y: tensor<64x?xf16>, %p: tensor<64xi32>) -> tensor<64x?xf16> {
  %0 = nm_sparse.permute %y, %p dim = 0 : tensor<64x?xf16>, tensor<64xi32>
  return %0 : tensor<64x?xf16>
}

// -----

// The other way round, it reads there; each batch entry has an order of its own.
// CHECK-LABEL: func.func @inverse
// CHECK: gpu.launch blocks(%[[ROW:[a-z0-9]+]], %{{[a-z0-9]+}}, %[[BATCH:[a-z0-9]+]]) in
// CHECK: memref.load %{{.*}}[%[[BATCH]], %[[COLUMN:[a-z0-9]+]]] : memref<2x64xi32
// CHECK: %[[ELEMENT:.*]] = memref.load %{{.*}}[%[[BATCH]], %[[ROW]], %[[FROM:[a-z0-9]+]]] : memref<2x8x64xf32
// CHECK: memref.store %[[ELEMENT]], %{{.*}}[%[[BATCH]], %[[ROW]], %[[COLUMN]]]
func.func @inverse(%y: tensor<2x8x64xf32>, %p: tensor<2x64xi32>) -> tensor<2x8x64xf32> {
  %0 = nm_sparse.permute inverse %y, %p dim = 2 batch = 0 : tensor<2x8x64xf32>, tensor<2x64xi32>
  return %0 : tensor<2x8x64xf32>
}

// -----

func.func @rank(%y: tensor<2x2x8x64xf32>, %p: tensor<64xi32>) -> tensor<2x2x8x64xf32> {
  // expected-error @below {{has rank 4, a kernel takes at most 3 dimensions}}
  %0 = nm_sparse.permute %y, %p dim = 3 : tensor<2x2x8x64xf32>, tensor<64xi32>
  return %0 : tensor<2x2x8x64xf32>
}
