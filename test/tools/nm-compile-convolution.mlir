// Transpositions around a convolution of NCHW images are named, with what they take; so is a product
// that takes longer than the dense one with the one in front of it.
//
// RUN: nm-compile %s -o /dev/null --gpu h200 --explain 2>&1 | FileCheck %s
// CHECK: warning: @conv, 1152 tokens: {{[0-9.]+}} us predicted with the transposition; the dense product takes {{[0-9.]+}} us, which is faster
// CHECK: @conv: tensor<8x12544xf16> is transposed for 1 product, {{[0-9.]+}} us predicted
// CHECK: @conv: tensor<9216x8xf16> is transposed behind a product, {{[0-9.]+}} us predicted
// CHECK: kernel conv_transpose:
// CHECK: kernel conv_kernel:
// CHECK: kernel conv_transpose_0:

#w = #nm_sparse.encoding<8:32, block = [1, 64], dim = 1>

func.func @conv(%x: tensor<8x64x14x14xf16>, %w: tensor<64x64x3x3xf16, #w>)
    -> tensor<8x64x12x12xf16> {
  %zero = arith.constant 0.0 : f16
  %empty = tensor.empty() : tensor<8x64x12x12xf16>
  %init = linalg.fill ins(%zero : f16) outs(%empty : tensor<8x64x12x12xf16>)
      -> tensor<8x64x12x12xf16>
  %y = linalg.conv_2d_nchw_fchw
      ins(%x, %w : tensor<8x64x14x14xf16>, tensor<64x64x3x3xf16, #w>)
      outs(%init : tensor<8x64x12x12xf16>) -> tensor<8x64x12x12xf16>
  return %y : tensor<8x64x12x12xf16>
}
