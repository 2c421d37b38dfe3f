// RUN: nm-opt %s --split-input-file | nm-opt --split-input-file | FileCheck %s
// RUN: nm-opt %s --split-input-file --canonicalize | FileCheck %s --check-prefix=FOLD
// RUN: nm-opt %s --split-input-file --convert-nm-sparse-to-linalg | FileCheck %s --check-prefix=LOOPS

// CHECK-LABEL: func @forms
// FOLD-LABEL: func @forms
// LOOPS-LABEL: func @forms
// LOOPS-SAME: %[[Y:.+]]: tensor<?x3xf16>, %[[P:.+]]: tensor<3xi32>, %[[Z:.+]]: tensor<3x?x2xf32>, %[[Q:.+]]: tensor<2x3xi32>
func.func @forms(%y: tensor<?x3xf16>, %p: tensor<3xi32>, %z: tensor<3x?x2xf32>, %q: tensor<2x3xi32>)
    -> (tensor<?x3xf16>, tensor<3x?x2xf32>) {
  // CHECK: nm_sparse.permute %{{.+}}, %{{.+}} dim = 1 : tensor<?x3xf16>, tensor<3xi32>
  // FOLD: nm_sparse.permute %{{.+}}, %{{.+}} dim = 1 :
  // LOOPS: %[[INV:.+]] = scf.for %[[J:.+]] = %c0{{.*}} to %c3{{.*}} -> (tensor<3xi32>) {
  // LOOPS: %[[AT:.+]] = tensor.extract %[[P]][%[[J]]]
  // LOOPS: %[[TO:.+]] = arith.index_castui %[[AT]]
  // LOOPS: %[[PLACE:.+]] = arith.index_castui %[[J]]
  // LOOPS: tensor.insert %[[PLACE]] into %{{.+}}[%[[TO]]]
  // LOOPS: linalg.generic
  // LOOPS: %[[T:.+]] = linalg.index 0
  // LOOPS: %[[O:.+]] = linalg.index 1
  // LOOPS: %[[AT:.+]] = tensor.extract %[[INV]][%[[O]]]
  // LOOPS: %[[FROM:.+]] = arith.index_castui %[[AT]]
  // LOOPS: tensor.extract %[[Y]][%[[T]], %[[FROM]]]
  %0 = nm_sparse.permute %y, %p dim = 1 : tensor<?x3xf16>, tensor<3xi32>
  // CHECK: nm_sparse.permute inverse %{{.+}}, %{{.+}} dim = 0 batch = 2 : tensor<3x?x2xf32>, tensor<2x3xi32>
  // FOLD: nm_sparse.permute inverse %{{.+}}, %{{.+}} dim = 0 batch = 2 :
  // LOOPS-NOT: scf.for
  // LOOPS: linalg.generic
  // LOOPS: %[[O:.+]] = linalg.index 0
  // LOOPS: %[[T:.+]] = linalg.index 1
  // LOOPS: %[[B:.+]] = linalg.index 2
  // LOOPS: %[[AT:.+]] = tensor.extract %[[Q]][%[[B]], %[[O]]]
  // LOOPS: %[[FROM:.+]] = arith.index_castui %[[AT]]
  // LOOPS: tensor.extract %[[Z]][%[[FROM]], %[[T]], %[[B]]]
  %1 = nm_sparse.permute inverse %z, %q dim = 0 batch = 2 : tensor<3x?x2xf32>, tensor<2x3xi32>
  return %0, %1 : tensor<?x3xf16>, tensor<3x?x2xf32>
}

// -----

// What is the same everywhere has no order.

// FOLD-LABEL: func @uniform
// FOLD-NOT: nm_sparse.permute
func.func @uniform(%p: tensor<3xi32>, %c: f32, %n: index)
    -> (tensor<?x3xf32>, tensor<?x3xf32>, tensor<?x3xf32>, tensor<2x3xf32>) {
  %empty = tensor.empty(%n) : tensor<?x3xf32>
  %fill = linalg.fill ins(%c : f32) outs(%empty : tensor<?x3xf32>) -> tensor<?x3xf32>
  %splat = tensor.splat %c[%n] : tensor<?x3xf32>
  %constant = arith.constant dense<2.0> : tensor<2x3xf32>
  %0 = nm_sparse.permute %empty, %p dim = 1 : tensor<?x3xf32>, tensor<3xi32>
  %1 = nm_sparse.permute inverse %fill, %p dim = 1 : tensor<?x3xf32>, tensor<3xi32>
  %2 = nm_sparse.permute %splat, %p dim = 1 : tensor<?x3xf32>, tensor<3xi32>
  %3 = nm_sparse.permute %constant, %p dim = 1 : tensor<2x3xf32>, tensor<3xi32>
  return %0, %1, %2, %3 : tensor<?x3xf32>, tensor<?x3xf32>, tensor<?x3xf32>, tensor<2x3xf32>
}

// -----

// FOLD-LABEL: func @inverse
// FOLD-SAME: %[[Y:.+]]: tensor<3x3xf32>
// FOLD: %[[THERE:.+]] = nm_sparse.permute %[[Y]], %{{.+}} dim = 0
// FOLD: %[[OTHER:.+]] = nm_sparse.permute inverse %[[THERE]], %{{.+}} dim = 0
// FOLD: %[[SIDE:.+]] = nm_sparse.permute inverse %[[THERE]], %{{.+}} dim = 1
// FOLD: %[[TWICE:.+]] = nm_sparse.permute %[[THERE]], %{{.+}} dim = 0
// FOLD: return %[[Y]], %[[Y]], %[[OTHER]], %[[SIDE]], %[[TWICE]]
func.func @inverse(%y: tensor<3x3xf32>, %p: tensor<3xi32>, %q: tensor<3xi32>)
    -> (tensor<3x3xf32>, tensor<3x3xf32>, tensor<3x3xf32>, tensor<3x3xf32>, tensor<3x3xf32>) {
  %there = nm_sparse.permute %y, %p dim = 0 : tensor<3x3xf32>, tensor<3xi32>
  %0 = nm_sparse.permute inverse %there, %p dim = 0 : tensor<3x3xf32>, tensor<3xi32>
  %back = nm_sparse.permute inverse %y, %p dim = 1 : tensor<3x3xf32>, tensor<3xi32>
  %1 = nm_sparse.permute %back, %p dim = 1 : tensor<3x3xf32>, tensor<3xi32>
  // Other permutations, dimensions and directions stay.
  %2 = nm_sparse.permute inverse %there, %q dim = 0 : tensor<3x3xf32>, tensor<3xi32>
  %3 = nm_sparse.permute inverse %there, %p dim = 1 : tensor<3x3xf32>, tensor<3xi32>
  %4 = nm_sparse.permute %there, %p dim = 0 : tensor<3x3xf32>, tensor<3xi32>
  return %0, %1, %2, %3, %4 : tensor<3x3xf32>, tensor<3x3xf32>, tensor<3x3xf32>, tensor<3x3xf32>, tensor<3x3xf32>
}
