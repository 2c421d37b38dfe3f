// RUN: nm-opt %s --split-input-file --convert-linalg-to-nm-sparse | FileCheck %s

// Blocks of 16 channels that are neighbours in the image are read from it: tokens are
// rows, of the patches and of the result, and nothing is transposed.

// CHECK-LABEL: func @blocks
// CHECK-SAME: %[[X:[^:]*]]: tensor<?x9x9x32xf16>
// CHECK-NOT: linalg.transpose
// CHECK: %[[P:.*]] = nm_sparse.patches <kernel = [3, 3], strides = [2, 2], image = "bhwc", rows = "rsc"> %[[X]] : tensor<?x9x9x32xf16> -> tensor<?x288xf16>
// CHECK: %[[Y:.*]] = nm_sparse.matmul {{.*}} ins(%[[P]], {{.*}} -> tensor<?x64xf32>
// CHECK: tensor.expand_shape %[[Y]] {{\[\[}}0, 1, 2], [3]]
// CHECK-NOT: linalg.transpose
// CHECK: return
#w = #nm_sparse.encoding<1:2, block = [16, 64], dim = 0>
func.func @blocks(%x: tensor<?x9x9x32xf16>, %w: tensor<3x3x32x64xf16, #w>, %i: tensor<?x4x4x64xf32>) -> tensor<?x4x4x64xf32> {
  %y = linalg.conv_2d_nhwc_hwcf {strides = dense<2> : tensor<2xi64>}
      ins(%x, %w : tensor<?x9x9x32xf16>, tensor<3x3x32x64xf16, #w>) outs(%i : tensor<?x4x4x64xf32>) -> tensor<?x4x4x64xf32>
  return %y : tensor<?x4x4x64xf32>
}

// -----

// So they are with the outputs first in the weight; not where the contraction has
// channels first, or where a chunk of 16 bytes is no part of a pixel.

// CHECK-LABEL: func @outputs_first
// CHECK-NOT: linalg.transpose
// CHECK: nm_sparse.patches <kernel = [3, 3], image = "bhwc", rows = "rsc">
// CHECK-NOT: linalg.transpose
// CHECK: return
#w = #nm_sparse.encoding<1:2, block = [16, 64], dim = 1>
func.func @outputs_first(%x: tensor<2x6x6x24xf16>, %w: tensor<64x3x3x24xf16, #w>, %i: tensor<2x4x4x64xf32>) -> tensor<2x4x4x64xf32> {
  %y = linalg.conv_2d_nhwc_fhwc
      ins(%x, %w : tensor<2x6x6x24xf16>, tensor<64x3x3x24xf16, #w>) outs(%i : tensor<2x4x4x64xf32>) -> tensor<2x4x4x64xf32>
  return %y : tensor<2x4x4x64xf32>
}

// CHECK-LABEL: func @odd_channels
// CHECK: linalg.transpose {{.*}} permutation = [3, 1, 2, 0]
// CHECK: nm_sparse.patches <kernel = [3, 3], rows = "rsc"> %{{.*}} : tensor<20x6x6x2xf16>
func.func @odd_channels(%x: tensor<2x6x6x20xf16>, %w: tensor<64x3x3x20xf16, #w>, %i: tensor<2x4x4x64xf32>) -> tensor<2x4x4x64xf32> {
  %y = linalg.conv_2d_nhwc_fhwc
      ins(%x, %w : tensor<2x6x6x20xf16>, tensor<64x3x3x20xf16, #w>) outs(%i : tensor<2x4x4x64xf32>) -> tensor<2x4x4x64xf32>
  return %y : tensor<2x4x4x64xf32>
}

// CHECK-LABEL: func @channels_first
// CHECK: linalg.transpose {{.*}} permutation = [1, 2, 3, 0]
// CHECK: nm_sparse.patches <kernel = [3, 3]> %{{.*}} : tensor<32x6x6x2xf16>
func.func @channels_first(%x: tensor<2x32x6x6xf16>, %w: tensor<64x32x3x3xf16, #w>, %i: tensor<2x64x4x4xf32>) -> tensor<2x64x4x4xf32> {
  %y = linalg.conv_2d_nchw_fchw
      ins(%x, %w : tensor<2x32x6x6xf16>, tensor<64x32x3x3xf16, #w>) outs(%i : tensor<2x64x4x4xf32>) -> tensor<2x64x4x4xf32>
  return %y : tensor<2x64x4x4xf32>
}

// -----

// A 1 x 1 convolution by itself multiplies the image as it is. Beside one that is
// computed with the batch last, which reads what it makes, it is computed so, too.

// CHECK-LABEL: func @alone
// CHECK-NOT: linalg.transpose
// CHECK: tensor.collapse_shape %{{.*}} {{\[\[}}0, 1, 2], [3]]
// CHECK-NOT: linalg.transpose
// CHECK: return
#w = #nm_sparse.encoding<2:4, dim = 0>
func.func @alone(%x: tensor<2x5x5x16xf32>, %w: tensor<1x1x16x16xf32, #w>, %i: tensor<2x5x5x16xf32>) -> tensor<2x5x5x16xf32> {
  %y = linalg.conv_2d_nhwc_hwcf ins(%x, %w : tensor<2x5x5x16xf32>, tensor<1x1x16x16xf32, #w>)
      outs(%i : tensor<2x5x5x16xf32>) -> tensor<2x5x5x16xf32>
  return %y : tensor<2x5x5x16xf32>
}

// CHECK-LABEL: func @beside
// CHECK-SAME: %[[X:[^:]*]]: tensor<2x5x5x16xf32>
// CHECK: %[[T:.*]] = linalg.transpose ins(%[[X]] : {{.*}} permutation = [3, 1, 2, 0]
// CHECK: tensor.collapse_shape %[[T]] {{\[\[}}0], [1, 2, 3]]
// CHECK: nm_sparse.matmul
// CHECK: nm_sparse.patches <kernel = [3, 3], rows = "rsc">
func.func @beside(%x: tensor<2x5x5x16xf32>, %v: tensor<1x1x16x16xf32, #w>, %w: tensor<3x3x16x16xf32, #w>,
                  %i: tensor<2x5x5x16xf32>, %j: tensor<2x3x3x16xf32>) -> tensor<2x3x3x16xf32> {
  %y = linalg.conv_2d_nhwc_hwcf ins(%x, %v : tensor<2x5x5x16xf32>, tensor<1x1x16x16xf32, #w>)
      outs(%i : tensor<2x5x5x16xf32>) -> tensor<2x5x5x16xf32>
  %z = linalg.conv_2d_nhwc_hwcf ins(%y, %w : tensor<2x5x5x16xf32>, tensor<3x3x16x16xf32, #w>)
      outs(%j : tensor<2x3x3x16xf32>) -> tensor<2x3x3x16xf32>
  return %z : tensor<2x3x3x16xf32>
}

// -----

// Kernels of 2:4 copy all channels, from the image as it lies where pieces of 16 bytes are
// some of them.

// CHECK-LABEL: func @two_of_four
// CHECK-SAME: %[[X:[^:]*]]: tensor<?x9x9x24xf16>
// CHECK-NOT: linalg.transpose
// CHECK: nm_sparse.patches <kernel = [3, 3], image = "bhwc", rows = "rsc"> %[[X]] : tensor<?x9x9x24xf16> -> tensor<?x216xf16>
// CHECK-NOT: linalg.transpose
// CHECK: return
#w = #nm_sparse.encoding<2:4, dim = 1>
func.func @two_of_four(%x: tensor<?x9x9x24xf16>, %w: tensor<40x3x3x24xf16, #w>, %i: tensor<?x7x7x40xf32>) -> tensor<?x7x7x40xf32> {
  %y = linalg.conv_2d_nhwc_fhwc
      ins(%x, %w : tensor<?x9x9x24xf16>, tensor<40x3x3x24xf16, #w>) outs(%i : tensor<?x7x7x40xf32>) -> tensor<?x7x7x40xf32>
  return %y : tensor<?x7x7x40xf32>
}

// CHECK-LABEL: func @two_of_four_odd_channels
// CHECK: linalg.transpose {{.*}} permutation = [3, 1, 2, 0]
func.func @two_of_four_odd_channels(%x: tensor<4x9x9x20xf16>, %w: tensor<40x3x3x20xf16, #w>, %i: tensor<4x7x7x40xf32>) -> tensor<4x7x7x40xf32> {
  %y = linalg.conv_2d_nhwc_fhwc
      ins(%x, %w : tensor<4x9x9x20xf16>, tensor<40x3x3x20xf16, #w>) outs(%i : tensor<4x7x7x40xf32>) -> tensor<4x7x7x40xf32>
  return %y : tensor<4x7x7x40xf32>
}
