// RUN: nm-compile %s -o - --emit layout --gpu h200 | FileCheck %s
// RUN: nm-compile %s -o - --emit layout --gpu h200 --layout keep | FileCheck %s --check-prefix=KEEP

#w = #nm_sparse.encoding<8:32, block = [1, 64], dim = 0>
#id = affine_map<(a, b, c, d) -> (a, b, c, d)>

// A small convolution reads its image and its residual as they are, and so is its
// result.
// CHECK-LABEL: func.func @small
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<8x9x9x64xf16>
// CHECK-SAME: %[[OTHER:[a-z0-9]+]]: tensor<8x7x7x64xf16>
// CHECK-NOT: linalg.transpose
// CHECK: %[[P:.*]] = nm_sparse.patches <kernel = [3, 3], image = "bhwc", rows = "rsc"> %[[X]] : tensor<8x9x9x64xf16> -> tensor<392x576xf16>
// CHECK: %[[Y:.*]] = nm_sparse.matmul {{.*}} ins(%[[P]], {{.*}} -> tensor<392x64xf32>
// CHECK: %[[FLAT:.*]] = tensor.collapse_shape %[[OTHER]]
// CHECK: %[[R:.*]] = tensor.collapse_shape %[[FLAT]] {{\[\[}}0, 1], [2]] : tensor<8x49x64xf16> into tensor<392x64xf16>
// CHECK: linalg.generic {{.*}} ins(%[[Y]], %[[R]] :
// CHECK: tensor.expand_shape {{.*}} output_shape [8, 49, 64]
// CHECK-NOT: linalg.transpose
// CHECK: return

// KEEP-LABEL: func.func @small
// KEEP: linalg.transpose {{.*}} permutation = [2, 1, 0]
// KEEP: nm_sparse.patches {{.*}} -> tensor<576x392xf16>
func.func @small(%x: tensor<8x9x9x64xf16>, %w: tensor<3x3x64x64xf16, #w>, %other: tensor<8x7x7x64xf16>) -> tensor<8x7x7x64xf16> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8x7x7x64xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<8x7x7x64xf32>) -> tensor<8x7x7x64xf32>
  %y = linalg.conv_2d_nhwc_hwcf ins(%x, %w : tensor<8x9x9x64xf16>, tensor<3x3x64x64xf16, #w>) outs(%i : tensor<8x7x7x64xf32>) -> tensor<8x7x7x64xf32>
  %oe = tensor.empty() : tensor<8x7x7x64xf16>
  %o = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
    ins(%y, %other : tensor<8x7x7x64xf32>, tensor<8x7x7x64xf16>) outs(%oe : tensor<8x7x7x64xf16>) {
  ^bb0(%p: f32, %r: f16, %old: f16):
    %0 = arith.extf %r : f16 to f32
    %1 = arith.addf %p, %0 : f32
    %2 = arith.truncf %1 : f32 to f16
    linalg.yield %2 : f16
  } -> tensor<8x7x7x64xf16>
  return %o : tensor<8x7x7x64xf16>
}

// Some pixels of an image are read in steps.
// CHECK-LABEL: func.func @steps
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<8x9x11x64xf16>
// CHECK-NOT: linalg.transpose
// CHECK: nm_sparse.patches <kernel = [1, 1], strides = [2, 3], image = "bhwc", rows = "rsc"> %[[X]] : tensor<8x9x11x64xf16> -> tensor<160x64xf16>
// CHECK-NOT: linalg.transpose
// CHECK: return
func.func @steps(%x: tensor<8x9x11x64xf16>, %w: tensor<1x1x64x64xf16, #w>) -> tensor<8x5x4x64xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8x5x4x64xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<8x5x4x64xf32>) -> tensor<8x5x4x64xf32>
  %y = linalg.conv_2d_nhwc_hwcf {strides = dense<[2, 3]> : tensor<2xi64>} ins(%x, %w : tensor<8x9x11x64xf16>, tensor<1x1x64x64xf16, #w>) outs(%i : tensor<8x5x4x64xf32>) -> tensor<8x5x4x64xf32>
  return %y : tensor<8x5x4x64xf32>
}

// A large one gains more from rows of tokens than a transposition takes.
// CHECK-LABEL: func.func @large
// CHECK: linalg.transpose {{.*}} permutation = [2, 1, 0]
// CHECK: nm_sparse.patches {{.*}} -> tensor<4608x200704xf16>
func.func @large(%x: tensor<64x58x58x512xf16>, %w: tensor<3x3x512x512xf16, #w>) -> tensor<64x56x56x512xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64x56x56x512xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<64x56x56x512xf32>) -> tensor<64x56x56x512xf32>
  %y = linalg.conv_2d_nhwc_hwcf ins(%x, %w : tensor<64x58x58x512xf16>, tensor<3x3x512x512xf16, #w>) outs(%i : tensor<64x56x56x512xf32>) -> tensor<64x56x56x512xf32>
  return %y : tensor<64x56x56x512xf32>
}
