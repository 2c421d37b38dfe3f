// RUN: nm-opt %s --nm-sparse-materialize-encodings --nm-sparse-verify-materialized \
// RUN:   --split-input-file -verify-diagnostics | FileCheck %s

// Arguments, results and calls; attributes stay, on the values.

#w = #nm_sparse.encoding<2:4, block = [1, 2]>

// CHECK: #[[$P:.+]] = #nm_sparse.packed<#{{.*}}, [8, 4], f32>
// CHECK: func private @callee(tensor<4x4xf32> {nm_sparse.component = #nm_sparse.component<"values", weight = 0, of = #[[$P]]>}, tensor<4x2xi8> {nm_sparse.component = #nm_sparse.component<"index", weight = 0, of = #[[$P]]>})
// CHECK-SAME: -> (tensor<4x4xf32> {nm_sparse.component = #nm_sparse.component<"values", weight = 0, of = #[[$P]]>}, tensor<4x2xi8> {nm_sparse.component = #nm_sparse.component<"index", weight = 0, of = #[[$P]]>})
func.func private @callee(tensor<8x4xf32, #w>) -> tensor<8x4xf32, #w>

// CHECK-LABEL: func @calls(
// CHECK-SAME: %[[X:.+]]: tensor<2xf32> {test.x},
// CHECK-SAME: %[[V:.+]]: tensor<4x4xf32> {nm_sparse.component = #nm_sparse.component<"values", weight = 0, of = #[[$P]]>, test.name = "w"},
// CHECK-SAME: %[[I:.+]]: tensor<4x2xi8> {nm_sparse.component = #nm_sparse.component<"index", weight = 0, of = #[[$P]]>})
func.func @calls(%x: tensor<2xf32> {test.x}, %w: tensor<8x4xf32, #w> {test.name = "w"})
    -> (tensor<2xf32>, tensor<8x4xf32, #w>) {
  // CHECK: %[[C:.+]]:2 = call @callee(%[[V]], %[[I]])
  %0 = func.call @callee(%w) : (tensor<8x4xf32, #w>) -> tensor<8x4xf32, #w>
  // CHECK: return %[[X]], %[[C]]#0, %[[C]]#1
  return %x, %0 : tensor<2xf32>, tensor<8x4xf32, #w>
}

// Weights are numbered, after those that are packed already.
// CHECK-LABEL: func private @several(
// CHECK-SAME: <"index", weight = 1, {{.*}}<"values", weight = 1,
// CHECK-SAME: <"values", weight = 2, {{.*}}<"index", weight = 2, {{.*}}<"values", weight = 3, {{.*}}<"index", weight = 3,
func.func private @several(
    tensor<4x2xi8> {nm_sparse.component = #nm_sparse.component<"index", weight = 1, of = #nm_sparse.packed<#w, [8, 4], f32>>},
    tensor<4x4xf32> {nm_sparse.component = #nm_sparse.component<"values", weight = 1, of = #nm_sparse.packed<#w, [8, 4], f32>>},
    tensor<8x4xf32, #w>, tensor<8x4xf32, #w>)

// CHECK-LABEL: func @pack_argument(
// CHECK-SAME: %[[V:.+]]: tensor<4x4xf32> {{.*}}, %[[I:.+]]: tensor<4x2xi8>
func.func @pack_argument(%w: tensor<8x4xf32, #w>) -> (tensor<4x4xf32>, tensor<4x2xi8>) {
  // CHECK-NEXT: return %[[V]], %[[I]]
  %v, %i = nm_sparse.pack #w %w : tensor<8x4xf32, #w> to tensor<4x4xf32>, tensor<4x2xi8>
  return %v, %i : tensor<4x4xf32>, tensor<4x2xi8>
}

// -----

// The example of docs/Encoding.md: constants are packed.

#w = #nm_sparse.encoding<2:4, block = [1, 2]>

// CHECK-LABEL: func @constant
func.func @constant() -> (tensor<6x3xf32, #w>, tensor<4x4xf32>, tensor<4x2xi8>) {
  // CHECK-DAG: arith.constant dense<{{\[}}[1.000000e+00, 2.000000e+00, 5.000000e+00, 0.000000e+00], [0.000000e+00, 3.000000e+00, 6.000000e+00, 0.000000e+00], [0.000000e+00, 0.000000e+00, -0.000000e+00, 0.000000e+00], [0.000000e+00, 4.000000e+00, 0.000000e+00, 0.000000e+00]]> : tensor<4x4xf32>
  // CHECK-DAG: arith.constant dense<{{\[}}[0, 2], [3, 3], [0, 0], [1, 1]]> : tensor<4x2xi8>
  %0 = arith.constant dense<[[1., 2., 0.], [0., 0., 0.], [0., 0., 5.],
                             [0., 3., 6.], [0., 0., -0.0], [0., 4., 0.]]> : tensor<6x3xf32, #w>
  // CHECK-NOT: nm_sparse.pack #
  %1 = arith.constant dense<0.0> : tensor<6x3xf32>
  %v, %i = nm_sparse.pack #w %1 : tensor<6x3xf32> to tensor<4x4xf32>, tensor<4x2xi8>
  return %0, %v, %i : tensor<6x3xf32, #w>, tensor<4x4xf32>, tensor<4x2xi8>
}

// -----

// Block-wise, the second example of docs/Encoding.md, in the N x K layout.

#w = #nm_sparse.encoding<1:4, block = [2, 2], dim = 1>

// CHECK-LABEL: func @blocks
func.func @blocks() -> tensor<4x8xf16, #w> {
  // CHECK-DAG: dense<{{\[}}[1.000000e+00, 2.000000e+00, 5.000000e+00, 6.000000e+00], [3.000000e+00, 4.000000e+00, 7.000000e+00, 8.000000e+00]]> : tensor<2x4xf16>
  // CHECK-DAG: dense<{{\[}}[1, 2]]> : tensor<1x2xi8>
  %0 = arith.constant dense<[[0., 0., 1., 3., 0., 0., 0., 0.], [0., 0., 2., 4., 0., 0., 0., 0.],
                             [0., 0., 0., 0., 5., 7., 0., 0.], [0., 0., 0., 0., 6., 8., 0., 0.]]>
    : tensor<4x8xf16, #w>
  return %0 : tensor<4x8xf16, #w>
}

// -----

// A batch of i8 weights, and a splat of NaN, which is not zero.

#b = #nm_sparse.encoding<1:2, dim = 1>
#n = #nm_sparse.encoding<2:2>

// CHECK-LABEL: func @batch
func.func @batch() -> (tensor<2x2x2xi8, #b>, tensor<2x2xbf16, #n>) {
  // CHECK-DAG: dense<{{\[}}{{\[}}[1, -128]], {{\[}}[3, 0]]]> : tensor<2x1x2xi8>
  // CHECK-DAG: dense<{{\[}}{{\[}}[0, 1]], {{\[}}[1, 0]]]> : tensor<2x1x2xi8>
  %0 = arith.constant dense<[[[1, 0], [0, -128]], [[0, 0], [3, 0]]]> : tensor<2x2x2xi8, #b>
  // CHECK-DAG: dense<0x7FC1> : tensor<2x2xbf16>
  %1 = arith.constant dense<0x7FC1> : tensor<2x2xbf16, #n>
  return %0, %1 : tensor<2x2x2xi8, #b>, tensor<2x2xbf16, #n>
}

// -----

// prune keeps the largest blocks, of equals the smaller position.

#w = #nm_sparse.encoding<2:4>

// CHECK-LABEL: func @prune_constant
func.func @prune_constant() -> (tensor<4x2xf32>, tensor<4x2xf32, #w>) {
  // CHECK-DAG: dense<{{\[}}[0.000000e+00, 1.000000e+00], [-5.000000e+00, 1.000000e+00], [0.000000e+00, 0.000000e+00], [3.000000e+00, 0.000000e+00]]> : tensor<4x2xf32>
  // CHECK-DAG: dense<{{\[}}[-5.000000e+00, 1.000000e+00], [3.000000e+00, 1.000000e+00]]> : tensor<2x2xf32>
  // CHECK-DAG: dense<{{\[}}[1, 0], [3, 1]]> : tensor<2x2xi8>
  %0 = arith.constant dense<[[1., 1.], [-5., 1.], [2., 1.], [3., 1.]]> : tensor<4x2xf32>
  %1 = nm_sparse.prune #w %0 : tensor<4x2xf32> to tensor<4x2xf32>
  %2 = nm_sparse.prune #w %0 : tensor<4x2xf32> to tensor<4x2xf32, #w>
  return %1, %2 : tensor<4x2xf32>, tensor<4x2xf32, #w>
}

// -----

// Data of unknown content is pruned and packed when the program runs.

#w = #nm_sparse.encoding<2:4>

// CHECK-LABEL: func @runtime
// CHECK-SAME: %[[D:.+]]: tensor<4x2xf32>, %[[V:.+]]: tensor<2x2xf32> {{.*}}, %[[I:.+]]: tensor<2x2xi8> {{.*}})
func.func @runtime(%d: tensor<4x2xf32>, %w: tensor<4x2xf32, #w>)
    -> (tensor<4x2xf32, #w>, tensor<4x2xf32, #w>, tensor<4x2xf32>, tensor<4x2xf32, #w>) {
  // CHECK: %[[P:.+]] = nm_sparse.prune #{{.*}} %[[D]] : tensor<4x2xf32> to tensor<4x2xf32>
  // CHECK: %[[PV:.+]], %[[PI:.+]] = nm_sparse.pack #{{.*}} %[[P]]
  %0 = nm_sparse.prune #w %d : tensor<4x2xf32> to tensor<4x2xf32, #w>
  // CHECK: %[[CV:.+]], %[[CI:.+]] = nm_sparse.pack #{{.*}} %[[D]]
  %1 = tensor.cast %d : tensor<4x2xf32> to tensor<4x2xf32, #w>
  // CHECK: %[[U:.+]] = nm_sparse.unpack #{{.*}} %[[V]], %[[I]] : {{.*}} to tensor<4x2xf32>
  %2 = tensor.cast %w : tensor<4x2xf32, #w> to tensor<4x2xf32>
  %3 = nm_sparse.prune #w %w : tensor<4x2xf32, #w> to tensor<4x2xf32, #w>
  // CHECK: return %[[PV]], %[[PI]], %[[CV]], %[[CI]], %[[U]], %[[V]], %[[I]]
  return %0, %1, %2, %3 : tensor<4x2xf32, #w>, tensor<4x2xf32, #w>, tensor<4x2xf32>, tensor<4x2xf32, #w>
}

// CHECK-LABEL: func @dense_use
func.func @dense_use(%w: tensor<4x2xf32, #w>, %a: index) -> f32 {
  // CHECK: %[[U:.+]] = nm_sparse.unpack
  // CHECK: tensor.extract %[[U]]
  %0 = tensor.extract %w[%a, %a] : tensor<4x2xf32, #w>
  return %0 : f32
}

// -----

// The second example: two levels, pruned and packed.

#w = #nm_sparse.encoding<[2:3, block = [1, 2]], [1:2]>

// CHECK-LABEL: func @two_levels
// CHECK-SAME: "values", weight = 0, {{.*}}"index", weight = 0, {{.*}}"inner_index", weight = 0,
func.func @two_levels(%w: tensor<3x2xf32, #w>) -> tensor<3x2xf32, #w> {
  // CHECK-DAG: arith.constant dense<{{\[\[}}5.000000e+00, -5.000000e+00]]> : tensor<1x2xf32>
  // CHECK-DAG: arith.constant dense<{{\[\[}}1], [2]]> : tensor<2x1xi8>
  // CHECK-DAG: arith.constant dense<{{\[\[}}0, 1]]> : tensor<1x2xi8>
  %0 = arith.constant dense<[[4., 4.], [5., 0.], [1., -5.]]> : tensor<3x2xf32>
  %1 = nm_sparse.prune #w %0 : tensor<3x2xf32> to tensor<3x2xf32, #w>
  return %1 : tensor<3x2xf32, #w>
}

// -----

#w = #nm_sparse.encoding<[2:3, block = [1, 2]], [1:2]>

func.func @broken_inner() -> tensor<3x2xf32, #w> {
  // expected-error @below {{weight is not 1:2 in what 2:3 keeps: window 0 of inner panel 1 has 2 nonzero blocks, legal is at most 1; prune the weight or use a larger n}}
  %0 = arith.constant dense<[[0., 0.], [5., 1.], [0., 5.]]> : tensor<3x2xf32, #w>
  return %0 : tensor<3x2xf32, #w>
}

// -----

#w = #nm_sparse.encoding<1:4, block = [1, 2]>

func.func @broken() -> tensor<8x3xf32, #w> {
  // expected-error @below {{weight is not 1:4: window 1 of panel 1 has 2 nonzero blocks, legal is at most 1; prune the weight or use a larger n}}
  %0 = arith.constant dense<[[1., 0., 0.], [0., 0., 0.], [0., 0., 5.], [0., 0., 0.],
                             [0., 0., 1.], [0., 0., 0.], [0., 0., 5.], [0., 0., 0.]]>
    : tensor<8x3xf32, #w>
  return %0 : tensor<8x3xf32, #w>
}

// -----

#w = #nm_sparse.encoding<1:2, dim = 1>

func.func @broken_batch() -> (tensor<2x2x1xf32>, tensor<2x1x1xf32>, tensor<2x1x1xi8>) {
  // expected-error @below {{weight is not 1:2: window 0 of panel 0 of batch 1 has 2 nonzero blocks}}
  %0 = arith.constant dense<[[[1.], [0.]], [[2.], [3.]]]> : tensor<2x2x1xf32>
  %v, %i = nm_sparse.pack #w %0 : tensor<2x2x1xf32> to tensor<2x1x1xf32>, tensor<2x1x1xi8>
  return %0, %v, %i : tensor<2x2x1xf32>, tensor<2x1x1xf32>, tensor<2x1x1xi8>
}

// -----

// expected-error @below {{whose shape must be static to be packed}}
func.func private @dynamic(tensor<?x8xf32, #nm_sparse.encoding<2:4>>)
