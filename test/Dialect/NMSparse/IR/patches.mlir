// RUN: nm-opt %s | nm-opt | FileCheck %s
// RUN: nm-opt %s --resolve-ranked-shaped-type-result-dims --canonicalize | FileCheck %s --check-prefix=SIZE

// The matrix of a convolution: defaults are left out, and sizes are those of the
// image.

// CHECK-LABEL: func.func @patches
// CHECK: nm_sparse.patches <kernel = [3, 3], low = [1, 1], high = [1, 1]> %{{.*}} : tensor<64x56x56x?xf16> -> tensor<576x?xf16>
// CHECK: nm_sparse.patches <kernel = [7, 5], strides = [2, 1], dilations = [1, 2], low = [3, 0], image = "hwcb", rows = "rsc"> %{{.*}} : tensor<20x20x3x8xi8> -> tensor<105x864xi8>
// SIZE: #[[OUTPUTS:.*]] = affine_map<()[s0] -> (s0 * 3136)>
// SIZE-LABEL: func.func @patches
// SIZE-SAME: %[[IMAGE:.*]]: tensor<64x56x56x?xf16>
// SIZE: %[[BATCH:.*]] = tensor.dim %[[IMAGE]], %c3
// SIZE: %[[TOKENS:.*]] = affine.apply #[[OUTPUTS]]()[%[[BATCH]]]
// SIZE: return %{{.*}}, %{{.*}}, %[[TOKENS]]

func.func @patches(%x: tensor<64x56x56x?xf16>, %z: tensor<20x20x3x8xi8>)
    -> (tensor<576x?xf16>, tensor<105x864xi8>, index) {
  %c1 = arith.constant 1 : index
  %a = nm_sparse.patches <kernel = [3, 3], strides = [1, 1], low = [1, 1], high = [1, 1], image = "chwb"> %x
      : tensor<64x56x56x?xf16> -> tensor<576x?xf16>
  %b = nm_sparse.patches <kernel = [7, 5], strides = [2, 1], dilations = [1, 2], low = [3, 0], image = "hwcb", rows = "rsc"> %z
      : tensor<20x20x3x8xi8> -> tensor<105x864xi8>
  %m = tensor.dim %a, %c1 : tensor<576x?xf16>
  return %a, %b, %m : tensor<576x?xf16>, tensor<105x864xi8>, index
}

// If an image has its batch first and its channels last, tokens are rows.

// CHECK-LABEL: func.func @token_major
// CHECK: nm_sparse.patches <kernel = [3, 3], image = "bhwc", rows = "rsc"> %{{.*}} : tensor<?x58x58x64xf16> -> tensor<?x576xf16>
// SIZE-LABEL: func.func @token_major
// SIZE: %[[BATCH:.*]] = tensor.dim %{{.*}}, %c0
// SIZE: %[[TOKENS:.*]] = affine.apply #[[OUTPUTS]]()[%[[BATCH]]]
// SIZE: return %{{.*}}, %[[TOKENS]]
func.func @token_major(%x: tensor<?x58x58x64xf16>) -> (tensor<?x576xf16>, index) {
  %c0 = arith.constant 0 : index
  %a = nm_sparse.patches <kernel = [3, 3], image = "bhwc", rows = "rsc"> %x
      : tensor<?x58x58x64xf16> -> tensor<?x576xf16>
  %m = tensor.dim %a, %c0 : tensor<?x576xf16>
  return %a, %m : tensor<?x576xf16>, index
}

// A batch that comes first is one of matrices.

// CHECK-LABEL: func.func @batches
// CHECK: nm_sparse.patches <kernel = [3, 3], image = "bchw"> %{{.*}} : tensor<?x64x56x56xf32> -> tensor<?x576x2916xf32>
// SIZE-LABEL: func.func @batches
// SIZE: %[[BATCH:.*]] = tensor.dim %{{.*}}, %c0
// SIZE: return %{{.*}}, %[[BATCH]]
func.func @batches(%x: tensor<?x64x56x56xf32>) -> (tensor<?x576x2916xf32>, index) {
  %c0 = arith.constant 0 : index
  %a = nm_sparse.patches <kernel = [3, 3], image = "bchw"> %x : tensor<?x64x56x56xf32> -> tensor<?x576x2916xf32>
  %n = tensor.dim %a, %c0 : tensor<?x576x2916xf32>
  return %a, %n : tensor<?x576x2916xf32>, index
}
