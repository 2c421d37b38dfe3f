// The image of a convolution between NHWC ones is transposed where layouts are kept;
// its result is written as it is, without a kernel behind the product.
//
// RUN: nm-compile %s -o /dev/null --gpu h200 --layout keep --explain 2>&1 | FileCheck %s
// CHECK: warning: @conv, 1152 tokens: {{[0-9.]+}} us predicted with the transposition; the dense product takes {{[0-9.]+}} us, which is faster
// CHECK: @conv: tensor<8x196x64xf16> is transposed for 1 product, {{[0-9.]+}} us predicted
// CHECK-NOT: is transposed behind
// CHECK: kernel conv_transpose:
// CHECK: kernel conv_kernel:
// CHECK-NOT: kernel conv_transpose_0:

#w = #nm_sparse.encoding<8:32, block = [1, 64], dim = 1>

func.func @conv(%x: tensor<8x14x14x64xf16>, %w: tensor<64x3x3x64xf16, #w>)
    -> tensor<8x12x12x64xf16> {
  %zero = arith.constant 0.0 : f16
  %empty = tensor.empty() : tensor<8x12x12x64xf16>
  %init = linalg.fill ins(%zero : f16) outs(%empty : tensor<8x12x12x64xf16>)
      -> tensor<8x12x12x64xf16>
  %y = linalg.conv_2d_nhwc_fhwc
      ins(%x, %w : tensor<8x14x14x64xf16>, tensor<64x3x3x64xf16, #w>)
      outs(%init : tensor<8x12x12x64xf16>) -> tensor<8x12x12x64xf16>
  return %y : tensor<8x12x12x64xf16>
}
