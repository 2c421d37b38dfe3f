// RUN: nm-opt %s --split-input-file --convert-linalg-to-nm-sparse | FileCheck %s
// RUN: nm-opt %s --split-input-file --nm-sparse-stage-front | FileCheck %s --check-prefix=FRONT
// RUN: nm-opt %s --split-input-file --convert-linalg-to-nm-sparse=keep-batches=true | FileCheck %s --check-prefix=KEPT
// RUN: nm-opt %s --split-input-file --convert-linalg-to-nm-sparse=keep-batches=true --nm-sparse-move-batches | FileCheck %s --check-prefix=MOVED

// A convolution is a product with the patches of its image, whose batch is the last
// dimension. Zeros around the image are part of the patches, and the weight is a
// matrix whose contraction is in the order of its dimensions.

// CHECK-LABEL: func @nhwc
// CHECK-SAME: %[[X:.*]]: tensor<?x9x7x4xf16>, %[[W:.*]]: tensor<3x3x4x8xf16, #{{.*}}>
// CHECK: %[[FLAT:.*]] = tensor.collapse_shape %[[W]] {{\[\[}}0, 1, 2], [3]] : tensor<3x3x4x8xf16, #{{.*}}> into tensor<36x8xf16, #{{.*}}>
// CHECK: nm_sparse.pack #{{.*}} %[[FLAT]]
// CHECK: %[[IMAGE:.*]] = linalg.transpose ins(%[[X]] : tensor<?x9x7x4xf16>) outs(%{{.*}} : tensor<9x7x4x?xf16>) permutation = [1, 2, 3, 0]
// CHECK: %[[PATCHES:.*]] = nm_sparse.patches <kernel = [3, 3], strides = [2, 2], low = [1, 1], high = [0, 1], image = "hwcb", rows = "rsc"> %[[IMAGE]] : tensor<9x7x4x?xf16> -> tensor<36x?xf16>
// CHECK: %[[Y:.*]] = nm_sparse.matmul #{{.*}} ins(%[[PATCHES]],
// CHECK: %[[PLACES:.*]] = tensor.expand_shape %[[Y]] {{\[\[}}0], [1, 2, 3]] {{.*}} into tensor<8x4x4x?xf32>
// CHECK: linalg.transpose ins(%[[PLACES]] : tensor<8x4x4x?xf32>) {{.*}} permutation = [3, 1, 2, 0]

// FRONT-LABEL: func @nhwc
// FRONT-SAME: {nm_sparse.component = #nm_sparse.component<"values", weight = 0, of = #nm_sparse.packed<{{.*}}, [36, 8], f16>>}
#w = #nm_sparse.encoding<2:4, dim = 0>
func.func @nhwc(%x: tensor<?x9x7x4xf16>, %w: tensor<3x3x4x8xf16, #w>) -> tensor<?x4x4x8xf32> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f16
  %z = arith.constant 0.0 : f32
  %n = tensor.dim %x, %c0 : tensor<?x9x7x4xf16>
  %p = tensor.pad %x low[0, 1, 1, 0] high[0, 0, 1, 0] {
  ^bb0(%a: index, %b: index, %c: index, %d: index):
    tensor.yield %zero : f16
  } : tensor<?x9x7x4xf16> to tensor<?x10x9x4xf16>
  %e = tensor.empty(%n) : tensor<?x4x4x8xf32>
  %i = linalg.fill ins(%z : f32) outs(%e : tensor<?x4x4x8xf32>) -> tensor<?x4x4x8xf32>
  %y = linalg.conv_2d_nhwc_hwcf {strides = dense<2> : tensor<2xi64>}
      ins(%p, %w : tensor<?x10x9x4xf16>, tensor<3x3x4x8xf16, #w>) outs(%i : tensor<?x4x4x8xf32>) -> tensor<?x4x4x8xf32>
  return %y : tensor<?x4x4x8xf32>
}

// -----

// A 1 x 1 kernel multiplies the image itself, a batch of matrices.

// CHECK-LABEL: func @pointwise
// CHECK-NOT: linalg.transpose
// CHECK: tensor.collapse_shape %{{.*}} {{\[\[}}0], [1], [2, 3]] : tensor<2x4x5x5xf16> into tensor<2x4x25xf16>
// CHECK-NOT: nm_sparse.patches
// CHECK: nm_sparse.matmul {{.*}} -> tensor<2x8x25xf32>
// CHECK-NOT: linalg.transpose
// CHECK: return
#w = #nm_sparse.encoding<2:4, dim = 1>
func.func @pointwise(%x: tensor<2x4x5x5xf16>, %w: tensor<8x4x1x1xf16, #w>, %i: tensor<2x8x5x5xf32>) -> tensor<2x8x5x5xf32> {
  %y = linalg.conv_2d_nchw_fchw ins(%x, %w : tensor<2x4x5x5xf16>, tensor<8x4x1x1xf16, #w>)
      outs(%i : tensor<2x8x5x5xf32>) -> tensor<2x8x5x5xf32>
  return %y : tensor<2x8x5x5xf32>
}

// -----

// What the sum starts from is put in order as the result is.

// CHECK-LABEL: func @start
// CHECK-SAME: %[[INIT:[^:]*]]: tensor<2x8x3x3xf32>)
// CHECK: linalg.transpose ins(%[[INIT]] : tensor<2x8x3x3xf32>) outs(%{{.*}} : tensor<8x3x3x2xf32>) permutation = [1, 2, 3, 0]
// CHECK: nm_sparse.patches <kernel = [3, 3]> %{{.*}} : tensor<4x5x5x2xf16> -> tensor<36x18xf16>

// Or each entry of the batch has a product of its own, and nothing is transposed until
// --nm-sparse-move-batches does so, as here.

// KEPT-LABEL: func @start
// KEPT-SAME: %[[X:[^:]*]]: tensor<2x4x5x5xf16>
// KEPT-NOT: linalg.transpose
// KEPT: %[[PATCHES:.*]] = nm_sparse.patches <kernel = [3, 3], image = "bchw"> %[[X]] : tensor<2x4x5x5xf16> -> tensor<2x36x9xf16>
// KEPT: %[[START:.*]] = tensor.collapse_shape %{{.*}} {{\[\[}}0], [1], [2, 3]] : tensor<2x8x3x3xf32> into tensor<2x8x9xf32>
// KEPT: nm_sparse.matmul {{.*}} ins(%[[PATCHES]], {{.*}} outs(%[[START]] : {{.*}} -> tensor<2x8x9xf32>
// KEPT-NOT: linalg.transpose
// KEPT: return

// MOVED-LABEL: func @start
// MOVED: linalg.transpose
// MOVED: nm_sparse.patches <kernel = [3, 3]> %{{.*}} : tensor<4x5x5x2xf16> -> tensor<36x18xf16>
// MOVED: nm_sparse.matmul {{.*}} -> tensor<8x18xf32>
// MOVED: linalg.transpose ins(%{{.*}} : tensor<72x2xf32>) outs(%{{.*}} : tensor<2x72xf32>)
#w = #nm_sparse.encoding<2:4, dim = 1>
func.func @start(%x: tensor<2x4x5x5xf16>, %w: tensor<8x4x3x3xf16, #w>, %i: tensor<2x8x3x3xf32>) -> tensor<2x8x3x3xf32> {
  %y = linalg.conv_2d_nchw_fchw ins(%x, %w : tensor<2x4x5x5xf16>, tensor<8x4x3x3xf16, #w>)
      outs(%i : tensor<2x8x3x3xf32>) -> tensor<2x8x3x3xf32>
  return %y : tensor<2x8x3x3xf32>
}

// -----

// Constants are packed as matrices, and casts claim the pattern of one.

// CHECK-LABEL: func @made
// CHECK: tensor.collapse_shape %{{.*}} {{\[\[}}0], [1, 2, 3]] : tensor<8x4x1x2xf16> into tensor<8x8xf16>
// CHECK: tensor.cast %{{.*}} : tensor<8x8xf16> to tensor<8x8xf16, #{{.*}}>
// CHECK: nm_sparse.patches <kernel = [1, 2]>

// FRONT-LABEL: func @made
// FRONT-SAME: %{{[^:]*}}: tensor<2x4x5x5xf16>, %[[W:[^:]*]]: tensor<8x4x1x2xf16>
// FRONT: arith.constant dense<-1> : tensor<{{.*}}xi32>
// FRONT: %[[FLAT:.*]] = tensor.collapse_shape %[[W]]
// FRONT: nm_sparse.pack #{{.*}} %[[FLAT]]
#w = #nm_sparse.encoding<4:4, dim = 1>
func.func @made(%x: tensor<2x4x5x5xf16>, %d: tensor<8x4x1x2xf16>, %i: tensor<2x8x5x4xf32>) -> tensor<2x8x5x4xf32> {
  %w = arith.constant dense<1.0> : tensor<8x4x1x2xf16, #w>
  %v = tensor.cast %d : tensor<8x4x1x2xf16> to tensor<8x4x1x2xf16, #w>
  %y = linalg.conv_2d_nchw_fchw ins(%x, %v : tensor<2x4x5x5xf16>, tensor<8x4x1x2xf16, #w>)
      outs(%i : tensor<2x8x5x4xf32>) -> tensor<2x8x5x4xf32>
  %z = linalg.conv_2d_nchw_fchw ins(%x, %w : tensor<2x4x5x5xf16>, tensor<8x4x1x2xf16, #w>)
      outs(%y : tensor<2x8x5x4xf32>) -> tensor<2x8x5x4xf32>
  return %z : tensor<2x8x5x4xf32>
}

// -----

// A batch of one image is the last dimension as well as the first.

// CHECK-LABEL: func @single
// CHECK-NOT: linalg.transpose
// CHECK: nm_sparse.patches <kernel = [3, 3]> %{{.*}} : tensor<4x5x5x1xf16> -> tensor<36x9xf16>
// CHECK-NOT: linalg.transpose
// CHECK: return
#w = #nm_sparse.encoding<2:4, dim = 1>
func.func @single(%x: tensor<1x4x5x5xf16>, %w: tensor<8x4x3x3xf16, #w>, %i: tensor<1x8x3x3xf32>) -> tensor<1x8x3x3xf32> {
  %y = linalg.conv_2d_nchw_fchw ins(%x, %w : tensor<1x4x5x5xf16>, tensor<8x4x3x3xf16, #w>)
      outs(%i : tensor<1x8x3x3xf32>) -> tensor<1x8x3x3xf32>
  return %y : tensor<1x8x3x3xf32>
}
