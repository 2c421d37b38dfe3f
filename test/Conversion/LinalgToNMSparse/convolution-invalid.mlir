// RUN: nm-opt %s --split-input-file --verify-diagnostics --convert-linalg-to-nm-sparse

// Convolutions that are refused, each with its reason.

#w = #nm_sparse.encoding<2:4, dim = 1>

func.func @order(%x: tensor<2x8x8x4xf16>, %w: tensor<3x3x4x8xf16, #w>, %i: tensor<2x6x6x8xf32>) -> tensor<2x6x6x8xf32> {
  // expected-error @below {{not covered because its outputs are the last dimension of the weight, which is dim = 0}}
  %y = linalg.conv_2d_nhwc_hwcf ins(%x, %w : tensor<2x8x8x4xf16>, tensor<3x3x4x8xf16, #w>)
      outs(%i : tensor<2x6x6x8xf32>) -> tensor<2x6x6x8xf32>
  return %y : tensor<2x6x6x8xf32>
}

// -----

#w = #nm_sparse.encoding<2:4, dim = 0>

func.func @depthwise(%x: tensor<2x8x8x4xf16>, %w: tensor<3x3x4x2xf16, #w>, %i: tensor<2x6x6x4x2xf16>) -> tensor<2x6x6x4x2xf16> {
  // expected-error @below {{not covered because it is depthwise or grouped, or does not have two spatial dimensions: supported are an image, a weight and a result of rank 4}}
  %y = linalg.depthwise_conv_2d_nhwc_hwcm ins(%x, %w : tensor<2x8x8x4xf16>, tensor<3x3x4x2xf16, #w>)
      outs(%i : tensor<2x6x6x4x2xf16>) -> tensor<2x6x6x4x2xf16>
  return %y : tensor<2x6x6x4x2xf16>
}

// -----

#w = #nm_sparse.encoding<2:4, dim = 1>

func.func @depthwiseOfMatrices(%x: tensor<2x8x8x4xf16>, %w: tensor<3x3x4xf16, #w>, %i: tensor<2x6x6x4xf16>) -> tensor<2x6x6x4xf16> {
  // expected-error @below {{not covered because it is depthwise or grouped}}
  %y = linalg.depthwise_conv_2d_nhwc_hwc ins(%x, %w : tensor<2x8x8x4xf16>, tensor<3x3x4xf16, #w>)
      outs(%i : tensor<2x6x6x4xf16>) -> tensor<2x6x6x4xf16>
  return %y : tensor<2x6x6x4xf16>
}

// -----

#w = #nm_sparse.encoding<2:4, dim = 1>

func.func @image(%x: tensor<2x4x8x8xf16, #w>, %w: tensor<8x4x3x3xf16>, %i: tensor<2x8x6x6xf16>) -> tensor<2x8x6x6xf16> {
  // expected-error @below {{not covered because the image is encoded, and not the weight}}
  %y = linalg.conv_2d_nchw_fchw ins(%x, %w : tensor<2x4x8x8xf16, #w>, tensor<8x4x3x3xf16>)
      outs(%i : tensor<2x8x6x6xf16>) -> tensor<2x8x6x6xf16>
  return %y : tensor<2x8x6x6xf16>
}

// -----

#w = #nm_sparse.encoding<2:4, dim = 1>

func.func @height(%x: tensor<2x4x?x8xf16>, %w: tensor<8x4x3x3xf16, #w>, %i: tensor<2x8x?x6xf16>) -> tensor<2x8x?x6xf16> {
  // expected-error @below {{not covered because the image is 'tensor<2x4x?x8xf16>', only its batch may be dynamic}}
  %y = linalg.conv_2d_nchw_fchw ins(%x, %w : tensor<2x4x?x8xf16>, tensor<8x4x3x3xf16, #w>)
      outs(%i : tensor<2x8x?x6xf16>) -> tensor<2x8x?x6xf16>
  return %y : tensor<2x8x?x6xf16>
}

// -----

#w = #nm_sparse.encoding<2:4, dim = 1>

func.func @sum(%x: tensor<2x4x8x8xi8>, %w: tensor<8x4x3x3xi8, #w>, %i: tensor<2x8x6x6xf32>) -> tensor<2x8x6x6xf32> {
  // expected-error @below {{not covered because image, weight and result have element types 'i8', 'i8' and 'f32': the first two must be the same, and the result i32}}
  %y = linalg.conv_2d_nchw_fchw ins(%x, %w : tensor<2x4x8x8xi8>, tensor<8x4x3x3xi8, #w>)
      outs(%i : tensor<2x8x6x6xf32>) -> tensor<2x8x6x6xf32>
  return %y : tensor<2x8x6x6xf32>
}

// -----

#w = #nm_sparse.encoding<2:4, dim = 1>
#x = affine_map<(f, p, q, b, c, r, s) -> (c, b, p + r, q + s)>
#f = affine_map<(f, p, q, b, c, r, s) -> (f, c, r, s)>
#y = affine_map<(f, p, q, b, c, r, s) -> (f, p, q, b)>

func.func @batchInside(%x: tensor<4x2x8x8xf32>, %w: tensor<8x4x3x3xf32, #w>, %i: tensor<8x6x6x2xf32>) -> tensor<8x6x6x2xf32> {
  // expected-error @below {{not covered because the batch is neither the first nor the last dimension of the image}}
  %y = linalg.generic {indexing_maps = [#x, #f, #y], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]}
      ins(%x, %w : tensor<4x2x8x8xf32>, tensor<8x4x3x3xf32, #w>) outs(%i : tensor<8x6x6x2xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %m = arith.mulf %a, %b : f32
    %s = arith.addf %c, %m : f32
    linalg.yield %s : f32
  } -> tensor<8x6x6x2xf32>
  return %y : tensor<8x6x6x2xf32>
}

// -----

#w = #nm_sparse.encoding<2:4, dim = 1>

func.func @kernel(%x: tensor<2x4x8x8xf16>, %w: tensor<8x4x9x3xf16, #w>, %i: tensor<2x8x0x6xf32>) -> tensor<2x8x0x6xf32> {
  // expected-error @below {{not covered because a kernel of 9 x 3 does not fit into 'tensor<2x4x8x8xf16>' with the zeros around it}}
  %y = linalg.conv_2d_nchw_fchw ins(%x, %w : tensor<2x4x8x8xf16>, tensor<8x4x9x3xf16, #w>)
      outs(%i : tensor<2x8x0x6xf32>) -> tensor<2x8x0x6xf32>
  return %y : tensor<2x8x0x6xf32>
}

// -----

#w = #nm_sparse.encoding<2:4, dim = 1>

func.func @result(%x: tensor<2x4x8x8xf16>, %w: tensor<8x4x3x3xf16, #w>, %i: tensor<2x8x5x6xf32>) -> tensor<2x8x5x6xf32> {
  // expected-error @below {{not covered because its result is 'tensor<2x8x5x6xf32>', and must have 6 x 6 pixels}}
  %y = linalg.conv_2d_nchw_fchw ins(%x, %w : tensor<2x4x8x8xf16>, tensor<8x4x3x3xf16, #w>)
      outs(%i : tensor<2x8x5x6xf32>) -> tensor<2x8x5x6xf32>
  return %y : tensor<2x8x5x6xf32>
}

// -----

#w = #nm_sparse.encoding<2:4, dim = 1>

func.func @far(%x: tensor<2x4x40000x8xf16>, %w: tensor<8x4x2x3xf16, #w>, %i: tensor<2x8x1x6xf16>) -> tensor<2x8x1x6xf16> {
  // expected-error @below {{not covered because dilations = [39999, 1]: legal are two numbers from 1 to 32767}}
  %y = linalg.conv_2d_nchw_fchw {dilations = dense<[39999, 1]> : tensor<2xi64>}
      ins(%x, %w : tensor<2x4x40000x8xf16>, tensor<8x4x2x3xf16, #w>)
      outs(%i : tensor<2x8x1x6xf16>) -> tensor<2x8x1x6xf16>
  return %y : tensor<2x8x1x6xf16>
}

// -----

#w = #nm_sparse.encoding<2:4, dim = 1>

func.func @noBatch(%x: tensor<0x4x8x8xf16>, %w: tensor<8x4x3x3xf16, #w>, %i: tensor<0x8x6x6xf16>) -> tensor<0x8x6x6xf16> {
  // expected-error @below {{not covered because the image is 'tensor<0x4x8x8xf16>': sizes must be at least 1}}
  %y = linalg.conv_2d_nchw_fchw ins(%x, %w : tensor<0x4x8x8xf16>, tensor<8x4x3x3xf16, #w>)
      outs(%i : tensor<0x8x6x6xf16>) -> tensor<0x8x6x6xf16>
  return %y : tensor<0x8x6x6xf16>
}

// -----

#w = #nm_sparse.encoding<2:4, dim = 1>

func.func @noOutputs(%x: tensor<2x4x8x8xf16>, %w: tensor<0x4x3x3xf16, #w>, %i: tensor<2x0x6x6xf16>) -> tensor<2x0x6x6xf16> {
  // expected-error @below {{sizes must be at least 1}}
  %y = linalg.conv_2d_nchw_fchw ins(%x, %w : tensor<2x4x8x8xf16>, tensor<0x4x3x3xf16, #w>)
      outs(%i : tensor<2x0x6x6xf16>) -> tensor<2x0x6x6xf16>
  return %y : tensor<2x0x6x6xf16>
}

// -----

#w = #nm_sparse.encoding<2:4, dim = 0>

func.func @cropped(%x: tensor<2x9x7x4xf16>, %w: tensor<3x3x4x8xf16, #w>, %i: tensor<2x8x5x8xf32>) -> tensor<2x8x5x8xf32> {
  %zero = arith.constant 0.0 : f16
  %p = tensor.pad %x low[0, 1, -1, 0] high[0, 0, 1, 0] {
  ^bb0(%a: index, %b: index, %c: index, %d: index):
    tensor.yield %zero : f16
  } : tensor<2x9x7x4xf16> to tensor<2x10x7x4xf16>
  // expected-error @below {{not covered because the tensor.pad before it takes pixels away (low -1, high 1): use a tensor.extract_slice}}
  %y = linalg.conv_2d_nhwc_hwcf ins(%p, %w : tensor<2x10x7x4xf16>, tensor<3x3x4x8xf16, #w>)
      outs(%i : tensor<2x8x5x8xf32>) -> tensor<2x8x5x8xf32>
  return %y : tensor<2x8x5x8xf32>
}

// -----

// More zeros than a convolution has stay a tensor.pad.

#w = #nm_sparse.encoding<2:4, dim = 0>

func.func @wide(%x: tensor<2x9x7x4xf16>, %w: tensor<3x3x4x8xf16, #w>, %i: tensor<2x7x32773x8xf32>) -> tensor<2x7x32773x8xf32> {
  %zero = arith.constant 0.0 : f16
  %p = tensor.pad %x low[0, 0, 0, 0] high[0, 0, 32768, 0] {
  ^bb0(%a: index, %b: index, %c: index, %d: index):
    tensor.yield %zero : f16
  } : tensor<2x9x7x4xf16> to tensor<2x9x32775x4xf16>
  %y = linalg.conv_2d_nhwc_hwcf ins(%p, %w : tensor<2x9x32775x4xf16>, tensor<3x3x4x8xf16, #w>)
      outs(%i : tensor<2x7x32773x8xf32>) -> tensor<2x7x32773x8xf32>
  return %y : tensor<2x7x32773x8xf32>
}

// -----

#w = #nm_sparse.encoding<2:4, dim = 0>

func.func @resultOrder(%x: tensor<2x8x8x4xf32>, %w: tensor<3x3x4x8xf32, #w>, %i: tensor<6x2x6x8xf32>) -> tensor<6x2x6x8xf32> {
  // expected-error @below {{not covered because the dimensions of its result are in the order pbqf (b: batch, f: outputs, p and q: pixels), supported are fpqb, bpqf and bfpq}}
  %y = linalg.generic {
      indexing_maps = [affine_map<(b, p, q, f, r, s, c) -> (b, p + r, q + s, c)>,
                       affine_map<(b, p, q, f, r, s, c) -> (r, s, c, f)>,
                       affine_map<(b, p, q, f, r, s, c) -> (p, b, q, f)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]}
      ins(%x, %w : tensor<2x8x8x4xf32>, tensor<3x3x4x8xf32, #w>) outs(%i : tensor<6x2x6x8xf32>) {
  ^bb0(%a: f32, %v: f32, %o: f32):
    %m = arith.mulf %a, %v : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<6x2x6x8xf32>
  return %y : tensor<6x2x6x8xf32>
}
