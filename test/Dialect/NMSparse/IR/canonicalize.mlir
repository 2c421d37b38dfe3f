// RUN: nm-opt %s --canonicalize --split-input-file | FileCheck %s

#w = #nm_sparse.encoding<2:4>
#other = #nm_sparse.encoding<1:4>

// CHECK-LABEL: func @prune_twice
func.func @prune_twice(%w: tensor<8x4xf32>) -> (tensor<8x4xf32>, tensor<8x4xf32>) {
  // CHECK: %[[P:.+]] = nm_sparse.prune
  // CHECK: %[[Q:.+]] = nm_sparse.prune #{{.*}} %[[P]]
  // CHECK: return %[[P]], %[[Q]]
  %0 = nm_sparse.prune #w %w : tensor<8x4xf32> to tensor<8x4xf32>
  %1 = nm_sparse.prune #w %0 : tensor<8x4xf32> to tensor<8x4xf32>
  %2 = nm_sparse.prune #other %1 : tensor<8x4xf32> to tensor<8x4xf32>
  return %1, %2 : tensor<8x4xf32>, tensor<8x4xf32>
}

// -----

#w = #nm_sparse.encoding<2:4>

// CHECK-LABEL: func @pack_of_unpack
// CHECK-SAME: %[[V:.+]]: tensor<4x4xf32>, %[[I:.+]]: tensor<4x4xi8>
func.func @pack_of_unpack(%v: tensor<4x4xf32>, %i: tensor<4x4xi8>)
    -> (tensor<4x4xf32>, tensor<4x4xi8>) {
  // CHECK-NEXT: return %[[V]], %[[I]]
  %0 = nm_sparse.unpack #w %v, %i : tensor<4x4xf32>, tensor<4x4xi8> to tensor<8x4xf32>
  %1, %2 = nm_sparse.pack #w %0 : tensor<8x4xf32> to tensor<4x4xf32>, tensor<4x4xi8>
  return %1, %2 : tensor<4x4xf32>, tensor<4x4xi8>
}

// -----

#w = #nm_sparse.encoding<2:4>

// CHECK-LABEL: func @unpack_of_pack
// CHECK-SAME: %[[W:.+]]: tensor<8x4xf32>, %[[I:.+]]: tensor<4x4xi8>
func.func @unpack_of_pack(%w: tensor<8x4xf32>, %i: tensor<4x4xi8>)
    -> (tensor<8x4xf32>, tensor<8x4xf32>) {
  // An index from elsewhere is another weight.
  // CHECK: %[[V:.+]], %{{.*}} = nm_sparse.pack
  // CHECK: %[[U:.+]] = nm_sparse.unpack #{{.*}} %[[V]], %[[I]]
  // CHECK: return %[[W]], %[[U]]
  %0, %1 = nm_sparse.pack #w %w : tensor<8x4xf32> to tensor<4x4xf32>, tensor<4x4xi8>
  %2 = nm_sparse.unpack #w %0, %1 : tensor<4x4xf32>, tensor<4x4xi8> to tensor<8x4xf32>
  %3 = nm_sparse.unpack #w %0, %i : tensor<4x4xf32>, tensor<4x4xi8> to tensor<8x4xf32>
  return %2, %3 : tensor<8x4xf32>, tensor<8x4xf32>
}

// -----

#w = #nm_sparse.encoding<[2:4, block = [1, 2]], [1:2]>

// All components must be those of one pack.

// CHECK-LABEL: func @two_levels
// CHECK-SAME: %[[W:.+]]: tensor<4x2xf32>, %[[OTHER:.+]]: tensor<1x2xi8>
func.func @two_levels(%w: tensor<4x2xf32>, %other: tensor<1x2xi8>)
    -> (tensor<4x2xf32>, tensor<4x2xf32>) {
  // CHECK: %[[V:.+]], %[[I:.+]], %{{.+}} = nm_sparse.pack
  // CHECK: %[[U:.+]] = nm_sparse.unpack #{{.*}} %[[V]], %[[I]], %[[OTHER]]
  // CHECK: return %[[W]], %[[U]]
  %0, %1, %2 = nm_sparse.pack #w %w : tensor<4x2xf32> to tensor<1x2xf32>, tensor<2x1xi8>, tensor<1x2xi8>
  %3 = nm_sparse.unpack #w %0, %1, %2 : tensor<1x2xf32>, tensor<2x1xi8>, tensor<1x2xi8> to tensor<4x2xf32>
  %4 = nm_sparse.unpack #w %0, %1, %other : tensor<1x2xf32>, tensor<2x1xi8>, tensor<1x2xi8> to tensor<4x2xf32>
  return %3, %4 : tensor<4x2xf32>, tensor<4x2xf32>
}

// -----

#w = #nm_sparse.encoding<2:4>
#t = #nm_sparse.encoding<2:4, dim = 1>

// The same bytes under another `dim` are another weight.

// CHECK-LABEL: func @different_encodings
func.func @different_encodings(%v: tensor<4x8xf32>, %i: tensor<4x8xi8>)
    -> (tensor<4x8xf32>, tensor<4x8xi8>) {
  // CHECK: nm_sparse.unpack
  // CHECK: nm_sparse.pack
  %0 = nm_sparse.unpack #w %v, %i : tensor<4x8xf32>, tensor<4x8xi8> to tensor<8x8xf32>
  %1, %2 = nm_sparse.pack #t %0 : tensor<8x8xf32> to tensor<4x8xf32>, tensor<4x8xi8>
  return %1, %2 : tensor<4x8xf32>, tensor<4x8xi8>
}
