// RUN: nm-opt %s --nm-sparse-permute-weights --split-input-file -verify-diagnostics | FileCheck %s

#x = affine_map<(m, n, k) -> (m, k)>
#v = affine_map<(m, n, k) -> (k, n)>
#y = affine_map<(m, n, k) -> (m, n)>
#free = #nm_sparse.encoding<free, block = [1, 2]>

// The rows of a weight that comes dense, or is pruned here, go into the order of y.
// CHECK-LABEL: func.func @dense
// CHECK-SAME: %[[Y:[a-z0-9]+]]: tensor<?x4xf32>, %[[P:[a-z0-9]+]]: tensor<4xi32>, %[[D:[a-z0-9]+]]: tensor<4x4xf32>
// CHECK: %[[PRUNED:.*]] = nm_sparse.prune {{.*}} density = 5.000000e-01 %[[D]] : tensor<4x4xf32> to tensor<4x4xf32>
// CHECK: %[[O:.*]] = nm_sparse.permute inverse %[[PRUNED]], %[[P]] dim = 0 : tensor<4x4xf32>, tensor<4xi32>
// CHECK: %[[W:.*]] = tensor.cast %[[O]]
// CHECK: %[[V:.*]], %[[I:.*]], %[[PANELS:.*]] = nm_sparse.pack {{.*}} %[[W]]
// CHECK-NOT: nm_sparse.permute
// CHECK: nm_sparse.matmul {{.*}} ins(%[[Y]], %[[V]], %[[I]]
func.func @dense(%y: tensor<?x4xf32>, %p: tensor<4xi32>, %d: tensor<4x4xf32>, %init: tensor<?x4xf32>) -> tensor<?x4xf32> {
  %0 = nm_sparse.permute %y, %p dim = 1 : tensor<?x4xf32>, tensor<4xi32>
  %w = nm_sparse.prune #free density = 0.5 %d : tensor<4x4xf32> to tensor<4x4xf32, #free>
  %v, %i, %n = nm_sparse.pack #free %w : tensor<4x4xf32, #free> to tensor<?x2xf32>, tensor<?x1xi32>, tensor<2x4xi32>
  %1 = nm_sparse.matmul #free storage = #nm_sparse.ragged<#free> indexing_maps = [#x, #v, #y]
    ins(%0, %v, %i, %n : tensor<?x4xf32>, tensor<?x2xf32>, tensor<?x1xi32>, tensor<2x4xi32>) outs(%init : tensor<?x4xf32>) -> tensor<?x4xf32>
  return %1 : tensor<?x4xf32>
}

// -----

// If both weights are constants, the rows are put into order now. The outputs 0 and 2
// share their rows, and so do 1 and 3: place 1 has output 2.
#x = affine_map<(m, n, k) -> (m, k)>
#v = affine_map<(m, n, k) -> (k, n)>
#y = affine_map<(m, n, k) -> (m, n)>
#free = #nm_sparse.encoding<free, block = [1, 2]>
#woven = #nm_sparse.encoding<free, block = [1, 2], order = shuffled>
// CHECK-LABEL: func.func @constants
// CHECK-SAME: %[[Y:[a-z0-9]+]]: tensor<?x4xf32>
// CHECK: arith.constant dense<{{\[\[}}1.000000e+00, 1.000000e+00], [3.000000e+00, 3.000000e+00], [2.000000e+00, 2.000000e+00], [4.000000e+00, 4.000000e+00]]> : tensor<4x2xf32>
// CHECK-NOT: nm_sparse.permute
// CHECK: nm_sparse.matmul {{.*}} ins(%[[Y]],
func.func @constants(%y: tensor<?x4xf32>, %init: tensor<?x2xf32>) -> tensor<?x2xf32> {
  %a = arith.constant dense<[[1.0, 0.0, 2.0, 0.0], [0.0, 3.0, 0.0, 4.0], [5.0, 0.0, 6.0, 0.0]]> : tensor<3x4xf32, #woven>
  %av, %ai, %an, %p = nm_sparse.pack #woven %a : tensor<3x4xf32, #woven> to tensor<?x2xf32>, tensor<?x1xi32>, tensor<2x4xi32>, tensor<4xi32>
  %b = arith.constant dense<[[1.0, 1.0], [2.0, 2.0], [3.0, 3.0], [4.0, 4.0]]> : tensor<4x2xf32, #free>
  %v, %i, %n = nm_sparse.pack #free %b : tensor<4x2xf32, #free> to tensor<?x2xf32>, tensor<?x1xi32>, tensor<1x4xi32>
  %0 = nm_sparse.permute %y, %p dim = 1 : tensor<?x4xf32>, tensor<4xi32>
  %1 = nm_sparse.matmul #free storage = #nm_sparse.ragged<#free> indexing_maps = [#x, #v, #y]
    ins(%0, %v, %i, %n : tensor<?x4xf32>, tensor<?x2xf32>, tensor<?x1xi32>, tensor<1x4xi32>) outs(%init : tensor<?x2xf32>) -> tensor<?x2xf32>
  return %1 : tensor<?x2xf32>
}

// -----

// Windows are rows in their order, and what comes packed stays as it is.
#x = affine_map<(m, n, k) -> (m, k)>
#v = affine_map<(m, n, k) -> (k, n)>
#y = affine_map<(m, n, k) -> (m, n)>
#free = #nm_sparse.encoding<free, block = [1, 2]>
// CHECK-LABEL: func.func @stay
// CHECK-COUNT-2: nm_sparse.permute
func.func @stay(%y: tensor<?x4xf32>, %p: tensor<4xi32>, %d: tensor<4x4xf32>, %w: tensor<4x4xf32, #free>, %init: tensor<?x4xf32>) -> (tensor<?x4xf32>, tensor<?x4xf32>) {
  %0 = nm_sparse.permute %y, %p dim = 1 : tensor<?x4xf32>, tensor<4xi32>
  %v, %i = nm_sparse.pack <2:4, block = [1, 2]> %d : tensor<4x4xf32> to tensor<2x4xf32>, tensor<2x2xi8>
  // expected-remark @below {{reads activations that are put into order before: the windows of its weight are rows in their order; legal is a `free` weight}}
  %1 = nm_sparse.matmul <2:4, block = [1, 2]> indexing_maps = [#x, #v, #y]
    ins(%0, %v, %i : tensor<?x4xf32>, tensor<2x4xf32>, tensor<2x2xi8>) outs(%init : tensor<?x4xf32>) -> tensor<?x4xf32>
  %2 = nm_sparse.permute %1, %p dim = 1 : tensor<?x4xf32>, tensor<4xi32>
  %fv, %fi, %n = nm_sparse.pack #free %w : tensor<4x4xf32, #free> to tensor<?x2xf32>, tensor<?x1xi32>, tensor<2x4xi32>
  // expected-remark @below {{its weight comes packed; legal is one that the program packs}}
  %3 = nm_sparse.matmul #free storage = #nm_sparse.ragged<#free> indexing_maps = [#x, #v, #y]
    ins(%2, %fv, %fi, %n : tensor<?x4xf32>, tensor<?x2xf32>, tensor<?x1xi32>, tensor<2x4xi32>) outs(%init : tensor<?x4xf32>) -> tensor<?x4xf32>
  return %1, %3 : tensor<?x4xf32>, tensor<?x4xf32>
}
