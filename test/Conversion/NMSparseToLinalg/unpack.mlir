// RUN: nm-opt %s --convert-nm-sparse-to-linalg --canonicalize --split-input-file | FileCheck %s

// CHECK-LABEL: func @vector_wise
// CHECK-SAME: %[[V:.+]]: tensor<4x4xf32>, %[[I:.+]]: tensor<4x2xi8>
func.func @vector_wise(%v: tensor<4x4xf32>, %i: tensor<4x2xi8>) -> tensor<8x3xf32> {
  // CHECK: %[[ZERO:.+]] = linalg.fill {{.*}} -> tensor<8x3xf32>
  // CHECK: scf.for %[[ROW:.+]] = %c0 to %c4 step %c1 iter_args({{.*}} = %[[ZERO]])
  // CHECK: scf.for %[[OUT:.+]] = %c0 to %c3 step %c1 iter_args(%[[ACC:.+]] =
  // CHECK: %[[P:.+]] = arith.divui %[[OUT]]
  // CHECK: %[[POS:.+]] = tensor.extract %[[I]][%[[ROW]], %[[P]]]
  // CHECK: %[[POSX:.+]] = arith.index_castui %[[POS]] : i8 to index
  // CHECK: %[[WIN:.+]] = arith.divui %[[ROW]]
  // CHECK: %[[FIRST:.+]] = arith.muli %[[WIN]]
  // CHECK: %[[K:.+]] = arith.addi %[[FIRST]], %[[POSX]]
  // CHECK: %[[E:.+]] = tensor.extract %[[V]][%[[ROW]], %[[OUT]]]
  // CHECK: tensor.insert %[[E]] into %[[ACC]][%[[K]], %[[OUT]]]
  // CHECK-NOT: scf.if
  %0 = nm_sparse.unpack #nm_sparse.encoding<2:4, block = [1, 2]> %v, %i
    : tensor<4x4xf32>, tensor<4x2xi8> to tensor<8x3xf32>
  return %0 : tensor<8x3xf32>
}

// -----

// A last window that is partial: what its fillers name is not there. N x K.

// CHECK-LABEL: func @ragged_transposed
func.func @ragged_transposed(%v: tensor<4x3xf32>, %i: tensor<4x3xi8>) -> tensor<3x6xf32> {
  // CHECK: scf.for
  // CHECK: scf.for %[[OUT:[^ ]+]] =
  // CHECK: %[[K:.+]] = arith.addi
  // CHECK: %[[IN:.+]] = arith.cmpi ult, %[[K]], %c6
  // CHECK: scf.if %[[IN]]
  // CHECK: tensor.insert %{{.*}} into %{{.*}}[%[[OUT]], %[[K]]]
  %0 = nm_sparse.unpack #nm_sparse.encoding<2:4, dim = 1> %v, %i
    : tensor<4x3xf32>, tensor<4x3xi8> to tensor<3x6xf32>
  return %0 : tensor<3x6xf32>
}

// -----

// Blocks of two rows, in a batch.

// CHECK-LABEL: func @block_wise
func.func @block_wise(%v: tensor<5x2x4xi8>, %i: tensor<5x1x2xi8>) -> tensor<5x8x4xi8> {
  // CHECK: scf.for %[[B:[^ ]+]] = %{{.*}} to %c5
  // CHECK: scf.for %[[ROW:[^ ]+]] = %{{.*}} to %c2
  // CHECK: scf.for
  // CHECK: %[[SLOT:.+]] = arith.divui %[[ROW]]
  // CHECK: tensor.extract %{{.*}}[%[[B]], %[[SLOT]],
  // CHECK: %[[K0:.+]] = arith.muli %{{.*}}, %c2
  // CHECK: %[[I:.+]] = arith.remui %[[ROW]], %c2
  // CHECK: arith.addi %[[K0]], %[[I]]
  %0 = nm_sparse.unpack #nm_sparse.encoding<1:4, block = [2, 2], dim = 1> %v, %i
    : tensor<5x2x4xi8>, tensor<5x1x2xi8> to tensor<5x8x4xi8>
  return %0 : tensor<5x8x4xi8>
}

// -----

// Two levels: the inner one names a row of the outer one's values, and that one
// the row of the weight.

// CHECK-LABEL: func @two_levels
// CHECK-SAME: %[[V:.+]]: tensor<4x4xf32>, %[[I:.+]]: tensor<8x1xi8>, %[[II:.+]]: tensor<4x4xi8>
func.func @two_levels(%v: tensor<4x4xf32>, %i: tensor<8x1xi8>, %ii: tensor<4x4xi8>) -> tensor<17x3xf32> {
  // CHECK: scf.for %[[ROW:[^ ]+]] = %{{.*}} to %c4 step
  // CHECK: scf.for %[[OUT:[^ ]+]] = %{{.*}} to %c3 step
  // CHECK: %[[INNER:.+]] = tensor.extract %[[II]][%[[ROW]], %[[OUT]]]
  // CHECK: %[[INNERX:.+]] = arith.index_castui %[[INNER]]
  // CHECK: %[[IW:.+]] = arith.divui %[[ROW]], %c2
  // CHECK: %[[I0:.+]] = arith.muli %[[IW]], %c4
  // CHECK: %[[KEPT:.+]] = arith.addi %[[I0]], %[[INNERX]]
  // CHECK: %[[P:.+]] = arith.divui %[[OUT]], %c4
  // CHECK: %[[POS:.+]] = tensor.extract %[[I]][%[[KEPT]], %[[P]]]
  // CHECK: %[[POSX:.+]] = arith.index_castui %[[POS]]
  // CHECK: %[[WIN:.+]] = arith.divui %[[KEPT]], %c4
  // CHECK: %[[K0:.+]] = arith.muli %[[WIN]], %c10
  // CHECK: %[[K:.+]] = arith.addi %[[K0]], %[[POSX]]
  // CHECK: %[[E:.+]] = tensor.extract %[[V]][%[[ROW]], %[[OUT]]]
  // CHECK: arith.cmpi ult, %[[K]], %c17
  // CHECK: tensor.insert %[[E]] into %{{.*}}[%[[K]], %[[OUT]]]
  %0 = nm_sparse.unpack #nm_sparse.encoding<[4:10, block = [1, 4]], [2:4]> %v, %i, %ii
    : tensor<4x4xf32>, tensor<8x1xi8>, tensor<4x4xi8> to tensor<17x3xf32>
  return %0 : tensor<17x3xf32>
}

// -----

// pack and prune stay, and unpack(pack) is not folded: the oracle shows what
// pack does.

// CHECK-LABEL: func @kept
func.func @kept(%w: tensor<8x4xf32>) -> tensor<8x4xf32> {
  // CHECK: nm_sparse.prune
  // CHECK: %[[V:.+]], %{{.*}} = nm_sparse.pack
  // CHECK: tensor.extract %[[V]]
  %0 = nm_sparse.prune #nm_sparse.encoding<2:4> %w : tensor<8x4xf32> to tensor<8x4xf32>
  %v, %i = nm_sparse.pack #nm_sparse.encoding<2:4> %0 : tensor<8x4xf32> to tensor<4x4xf32>, tensor<4x4xi8>
  %1 = nm_sparse.unpack #nm_sparse.encoding<2:4> %v, %i : tensor<4x4xf32>, tensor<4x4xi8> to tensor<8x4xf32>
  return %1 : tensor<8x4xf32>
}
