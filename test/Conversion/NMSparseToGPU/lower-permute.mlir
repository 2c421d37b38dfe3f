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

// Along memory, a CTA brings some rows to shared memory, 16 bytes at a time where
// they are aligned, and takes the elements in the other order there: each batch
// entry has its own.
// CHECK-LABEL: func.func @inverse
// CHECK: gpu.launch blocks(%[[GROUP:[a-z0-9]+]], %{{[a-z0-9]+}}, %[[BATCH:[a-z0-9]+]]) in (%{{.*}} = %c2{{[_0-9]*}}, %{{.*}} = %c1
// CHECK: %[[TILE:.*]] = memref.alloc() : memref<4x64xf32, #gpu.address_space<workgroup>>
// CHECK: scf.if
// CHECK: %[[WIDE:.*]] = vector.load %{{.*}} {alignment = 16 : i64} : memref<2x8x64xf32, strided<[?, ?, 1], offset: ?>>, vector<4xf32>
// CHECK: vector.store %[[WIDE]], %[[TILE]][%{{.*}}, %[[COLUMN:[a-z0-9]+]]]
// CHECK: } else {
// CHECK: %[[ELEMENT:.*]] = memref.load %{{.*}} : memref<2x8x64xf32, strided<[?, ?, ?], offset: ?>>
// CHECK: memref.store %[[ELEMENT]], %[[TILE]]
// CHECK: gpu.barrier
// CHECK: %[[WORD:.*]] = memref.load %{{.*}}[%[[BATCH]], %[[AT:[a-z0-9]+]]] : memref<2x64xi32
// CHECK: %[[FROM:.*]] = arith.index_castui %[[WORD]]
// CHECK: memref.load %[[TILE]][%{{.*}}, %[[FROM]]]
// CHECK: vector.store %{{.*}}[%[[BATCH]], %{{.*}}, %[[AT]]] {alignment = 16 : i64} : memref<2x8x64xf32>, vector<4xf32>
func.func @inverse(%y: tensor<2x8x64xf32>, %p: tensor<2x64xi32>) -> tensor<2x8x64xf32> {
  %0 = nm_sparse.permute inverse %y, %p dim = 2 batch = 0 : tensor<2x8x64xf32>, tensor<2x64xi32>
  return %0 : tensor<2x8x64xf32>
}

// -----

// The other way round they are scattered there. Rows that are no multiple of 16 bytes
// are copied element by element, and the last CTA may have fewer of them.
// CHECK-LABEL: func.func @columns
// CHECK: gpu.launch
// CHECK: %[[TILE:.*]] = memref.alloc() : memref<4x65xf16, #gpu.address_space<workgroup>>
// CHECK-NOT: vector.load
// CHECK: %[[TO:.*]] = arith.index_castui
// CHECK: %[[ELEMENT:.*]] = memref.load
// CHECK: memref.store %[[ELEMENT]], %[[TILE]][%{{.*}}, %[[TO]]]
// CHECK: arith.cmpi ult
// CHECK: gpu.barrier
func.func @columns(%y: tensor<?x65xf16>, %p: tensor<65xi32>) -> tensor<?x65xf16> {
  %0 = nm_sparse.permute %y, %p dim = 1 : tensor<?x65xf16>, tensor<65xi32>
  return %0 : tensor<?x65xf16>
}

// -----

// Rows that shared memory does not hold are scattered in device memory.
// CHECK-LABEL: func.func @long
// CHECK: gpu.launch
// CHECK-NOT: workgroup
// CHECK: memref.store
func.func @long(%y: tensor<?x65536xf32>, %p: tensor<65536xi32>) -> tensor<?x65536xf32> {
  %0 = nm_sparse.permute %y, %p dim = 1 : tensor<?x65536xf32>, tensor<65536xi32>
  return %0 : tensor<?x65536xf32>
}

// -----

func.func @rank(%y: tensor<2x2x8x64xf32>, %p: tensor<64xi32>) -> tensor<2x2x8x64xf32> {
  // expected-error @below {{has rank 4, a kernel takes at most 3 dimensions}}
  %0 = nm_sparse.permute %y, %p dim = 3 : tensor<2x2x8x64xf32>, tensor<64xi32>
  return %0 : tensor<2x2x8x64xf32>
}
