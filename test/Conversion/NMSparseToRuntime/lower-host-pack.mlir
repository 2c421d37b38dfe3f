// RUN: nm-opt %s --nm-sparse-lower-host-pack --canonicalize --split-input-file -verify-diagnostics | FileCheck %s

#w = #nm_sparse.encoding<2:4, block = [1, 2], dim = 1>

// CHECK-DAG: func.func private @nmsRuntimePack(i64, !llvm.ptr, !llvm.ptr, !llvm.ptr)
// CHECK-DAG: func.func private @nmsRuntimePrune(i64, !llvm.ptr, !llvm.ptr, !llvm.ptr)
// CHECK-LABEL: func @pack
// CHECK-SAME: %[[W:.+]]: tensor<3x8xbf16>
func.func @pack(%w: tensor<3x8xbf16>) -> (tensor<4x4xbf16>, tensor<4x2xi8>) {
  // CHECK: %[[B:.+]] = bufferization.to_buffer %[[W]] read_only
  // CHECK: %[[P:.+]] = memref.extract_aligned_pointer_as_index %[[B]]
  // CHECK: %[[PI:.+]] = arith.index_cast %[[P]]
  // CHECK: %[[D:.+]] = memref.alloca() : memref<7xi64>
  // CHECK: memref.store %[[PI]], %[[D]][%c0]
  // CHECK: call @nmsRuntimePrune(%c2_i64,
  // CHECK: %[[V:.+]] = memref.alloc() : memref<4x4xbf16>
  // CHECK: %[[I:.+]] = memref.alloc() : memref<4x2xi8>
  // The descriptors of both components.
  // CHECK: %[[VA:.+]] = llvm.ptrtoint
  // CHECK: %[[IA:.+]] = llvm.ptrtoint
  // CHECK: %[[LIST:.+]] = memref.alloca() : memref<2xi64>
  // CHECK: memref.store %[[VA]], %[[LIST]][%c0]
  // CHECK: memref.store %[[IA]], %[[LIST]][%c1]
  // CHECK: %[[LISTI:.+]] = memref.extract_aligned_pointer_as_index %[[LIST]]
  // CHECK: %[[LISTX:.+]] = arith.index_cast %[[LISTI]]
  // CHECK: %[[LISTP:.+]] = llvm.inttoptr %[[LISTX]]
  // [dim, kind, levels] and [n, m, bk, bn]
  // CHECK: %[[PARAMS:.+]] = memref.alloca() : memref<7xi64>
  // CHECK: memref.store %c1_i64, %[[PARAMS]][%c0]
  // CHECK: memref.store %c2_i64, %[[PARAMS]][%c1]
  // CHECK: memref.store %c1_i64, %[[PARAMS]][%c2]
  // CHECK: memref.store %c2_i64, %[[PARAMS]][%c3]
  // CHECK: memref.store %c4_i64, %[[PARAMS]][%c4]
  // CHECK: memref.store %c1_i64, %[[PARAMS]][%c5]
  // CHECK: memref.store %c2_i64, %[[PARAMS]][%c6]
  // CHECK: call @nmsRuntimePack(%c2_i64, %{{[^,]+}}, %[[LISTP]],
  // CHECK: bufferization.to_tensor %[[V]] restrict writable
  // CHECK: bufferization.to_tensor %[[I]] restrict writable
  %0 = nm_sparse.prune #w %w : tensor<3x8xbf16> to tensor<3x8xbf16>
  %v, %i = nm_sparse.pack #w %0 : tensor<3x8xbf16> to tensor<4x4xbf16>, tensor<4x2xi8>
  return %v, %i : tensor<4x4xbf16>, tensor<4x2xi8>
}

// -----

#w = #nm_sparse.encoding<[4:10, block = [1, 2]], [2:4]>

// CHECK-LABEL: func @two_levels
func.func @two_levels(%w: tensor<17x3xf32>) -> tensor<4x4xi8> {
  // CHECK: memref.alloc() : memref<4x4xf32>
  // CHECK: memref.alloc() : memref<8x2xi8>
  // CHECK: memref.alloc() : memref<4x4xi8>
  // CHECK: memref.alloca() : memref<3xi64>
  // CHECK: %[[PARAMS:.+]] = memref.alloca() : memref<11xi64>
  // CHECK: memref.store %c2_i64, %[[PARAMS]][%c2]
  // CHECK: memref.store %c4_i64, %[[PARAMS]][%c3]
  // CHECK: memref.store %c10_i64, %[[PARAMS]][%c4]
  // CHECK: memref.store %c1_i64, %[[PARAMS]][%c5]
  // CHECK: memref.store %c2_i64, %[[PARAMS]][%c6]
  // CHECK: memref.store %c2_i64, %[[PARAMS]][%c7]
  // CHECK: memref.store %c4_i64, %[[PARAMS]][%c8]
  // CHECK: memref.store %c1_i64, %[[PARAMS]][%c9]
  // CHECK: memref.store %c1_i64, %[[PARAMS]][%c10]
  // CHECK: call @nmsRuntimePack
  %v, %i, %ii = nm_sparse.pack #w %w : tensor<17x3xf32> to tensor<4x4xf32>, tensor<8x2xi8>, tensor<4x4xi8>
  return %ii : tensor<4x4xi8>
}

// -----

// The runtime's number of the element type.

// CHECK-LABEL: func @f8
func.func @f8(%w: tensor<8x4xf8E4M3FN>) -> tensor<8x4xf8E4M3FN> {
  // CHECK: memref.store %c6_i64, %{{.*}}[%c1]
  // CHECK: call @nmsRuntimePrune
  %0 = nm_sparse.prune #nm_sparse.encoding<2:4> %w : tensor<8x4xf8E4M3FN> to tensor<8x4xf8E4M3FN>
  return %0 : tensor<8x4xf8E4M3FN>
}

// -----

#w = #nm_sparse.encoding<2:4>

func.func @encoded(%w: tensor<8x4xf32>) -> tensor<8x4xf32, #w> {
  // expected-error @below {{has a type with an encoding; run --nm-sparse-materialize-encodings first}}
  %0 = nm_sparse.prune #w %w : tensor<8x4xf32> to tensor<8x4xf32, #w>
  return %0 : tensor<8x4xf32, #w>
}

// -----

// What is not multiplied with becomes dense on the host.

// CHECK-LABEL: func @unpack
// CHECK-SAME: %[[V:.+]]: tensor<4x4xbf16>, %[[I:.+]]: tensor<4x4xi8>
func.func @unpack(%v: tensor<4x4xbf16>, %i: tensor<4x4xi8>) -> tensor<8x4xbf16> {
  // CHECK: bufferization.to_buffer %[[V]] read_only
  // CHECK: bufferization.to_buffer %[[I]] read_only
  // CHECK: %[[D:.+]] = memref.alloc() : memref<8x4xbf16>
  // The descriptors of both components.
  // CHECK: memref.alloca() : memref<2xi64>
  // CHECK: call @nmsRuntimeUnpack(%c2_i64,
  // CHECK: bufferization.to_tensor %[[D]] restrict writable
  %0 = nm_sparse.unpack #nm_sparse.encoding<2:4> %v, %i : tensor<4x4xbf16>, tensor<4x4xi8> to tensor<8x4xbf16>
  return %0 : tensor<8x4xbf16>
}

// -----

// CHECK: func.func private @nmsRuntimePackDenseBitmap(i64, !llvm.ptr, !llvm.ptr, !llvm.ptr)
// CHECK-LABEL: func @bitmaps
func.func @bitmaps(%w: tensor<33x40xf16>) -> (tensor<2x2x512xf16>, tensor<2x2x32xi32>) {
  // CHECK: %[[V:.+]] = memref.alloc() : memref<2x2x512xf16>
  // CHECK: %[[B:.+]] = memref.alloc() : memref<2x2x32xi32>
  // CHECK: call @nmsRuntimePackDenseBitmap(%c2_i64,
  // CHECK: bufferization.to_tensor %[[V]] restrict writable
  // CHECK: bufferization.to_tensor %[[B]] restrict writable
  %v, %b = nm_sparse.pack #nm_sparse.encoding<8:16> storage = #nm_sparse.bitmap<#nm_sparse.encoding<8:16>> %w
    : tensor<33x40xf16> to tensor<2x2x512xf16>, tensor<2x2x32xi32>
  return %v, %b : tensor<2x2x512xf16>, tensor<2x2x32xi32>
}
