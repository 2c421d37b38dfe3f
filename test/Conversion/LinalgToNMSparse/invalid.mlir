// RUN: nm-opt %s --convert-linalg-to-nm-sparse --split-input-file -verify-diagnostics

#w = #nm_sparse.encoding<2:4>

func.func @dim(%x: tensor<8x64xf16>, %w: tensor<64x96xf16, #nm_sparse.encoding<2:4, dim = 1>>,
               %init: tensor<8x96xf32>) -> tensor<8x96xf32> {
  // expected-error @below {{'linalg.matmul' op contracts dimension 0 of its weight, but encoding #nm_sparse.encoding<2:4, dim = 1> says dim = 1; the two must be the same}}
  %y = linalg.matmul ins(%x, %w : tensor<8x64xf16>, tensor<64x96xf16, #nm_sparse.encoding<2:4, dim = 1>>)
                     outs(%init : tensor<8x96xf32>) -> tensor<8x96xf32>
  return %y : tensor<8x96xf32>
}

// -----

#w = #nm_sparse.encoding<2:4>
#v = #nm_sparse.encoding<2:4, dim = 1>

func.func @both(%x: tensor<96x64xf16, #v>, %w: tensor<64x96xf16, #w>,
                %init: tensor<96x96xf32>) -> tensor<96x96xf32> {
  // expected-error @below {{'linalg.matmul' op takes a weight with encoding #nm_sparse.encoding<2:4, dim = 1>: not covered because both operands are encoded, the other one with #nm_sparse.encoding<2:4>; one of them must be dense}}
  %y = linalg.matmul ins(%x, %w : tensor<96x64xf16, #v>, tensor<64x96xf16, #w>)
                     outs(%init : tensor<96x96xf32>) -> tensor<96x96xf32>
  return %y : tensor<96x96xf32>
}

// -----

#w = #nm_sparse.encoding<2:4>

func.func @sparse_result(%x: tensor<8x64xf16>, %w: tensor<64x96xf16>,
                         %init: tensor<8x96xf16, #w>) {
  // expected-error @below {{'linalg.matmul' op takes a weight with encoding #nm_sparse.encoding<2:4>: not covered because its result would be sparse}}
  %y = linalg.matmul ins(%x, %w : tensor<8x64xf16>, tensor<64x96xf16>)
                     outs(%init : tensor<8x96xf16, #w>) -> tensor<8x96xf16, #w>
  return
}

// -----

#w = #nm_sparse.encoding<2:4>

func.func @add(%a: tensor<64x96xf16, #w>, %b: tensor<64x96xf16>) -> tensor<64x96xf16> {
  // expected-error @below {{'linalg.add' op takes a weight with encoding #nm_sparse.encoding<2:4>: not covered because its body is not 'out + x * w'}}
  %y = linalg.add ins(%a, %b : tensor<64x96xf16, #w>, tensor<64x96xf16>)
                  outs(%b : tensor<64x96xf16>) -> tensor<64x96xf16>
  return %y : tensor<64x96xf16>
}

// -----

#w = #nm_sparse.encoding<2:4>

func.func @transpose(%a: tensor<64x96xf16, #w>, %b: tensor<96x64xf16>) -> tensor<96x64xf16> {
  // expected-error @below {{'linalg.transpose' op takes a weight with encoding #nm_sparse.encoding<2:4>: not covered because its result is used by 'func.return', and a rearranged weight may only be multiplied with}}
  %y = linalg.transpose ins(%a : tensor<64x96xf16, #w>) outs(%b : tensor<96x64xf16>) permutation = [1, 0]
  return %y : tensor<96x64xf16>
}

// -----

// The pattern of a transposed weight is along its other dimension.

#w = #nm_sparse.encoding<2:4>

func.func @transpose_encoded(%x: tensor<8x64xf16>, %a: tensor<96x64xf16, #nm_sparse.encoding<2:4, dim = 1>>,
                             %init: tensor<8x96xf32>) -> tensor<8x96xf32> {
  %e = tensor.empty() : tensor<64x96xf16, #nm_sparse.encoding<1:4>>
  // expected-error @below {{'linalg.transpose' op takes a weight with encoding #nm_sparse.encoding<2:4, dim = 1>: not covered because its result has encoding #nm_sparse.encoding<1:4>, which is not the pattern of the rearranged weight}}
  %t = linalg.transpose ins(%a : tensor<96x64xf16, #nm_sparse.encoding<2:4, dim = 1>>) outs(%e : tensor<64x96xf16, #nm_sparse.encoding<1:4>>) permutation = [1, 0]
  %y = linalg.matmul ins(%x, %t : tensor<8x64xf16>, tensor<64x96xf16, #nm_sparse.encoding<1:4>>)
                     outs(%init : tensor<8x96xf32>) -> tensor<8x96xf32>
  return %y : tensor<8x96xf32>
}

// -----

// A product through a transposition is checked like any other.

func.func @transpose_dim(%x: tensor<8x64xf16>, %a: tensor<96x64xf16, #nm_sparse.encoding<2:4>>,
                         %init: tensor<8x96xf32>) -> tensor<8x96xf32> {
  %e = tensor.empty() : tensor<64x96xf16>
  %t = linalg.transpose ins(%a : tensor<96x64xf16, #nm_sparse.encoding<2:4>>) outs(%e : tensor<64x96xf16>) permutation = [1, 0]
  // expected-error @below {{'linalg.matmul' op contracts dimension 1 of its weight, but encoding #nm_sparse.encoding<2:4> says dim = 0; the two must be the same}}
  %y = linalg.matmul ins(%x, %t : tensor<8x64xf16>, tensor<64x96xf16>) outs(%init : tensor<8x96xf32>) -> tensor<8x96xf32>
  return %y : tensor<8x96xf32>
}

// -----

// Unary operations other than extensions change the weight. (On x, they are
// computed before the product.)

#w = #nm_sparse.encoding<2:4>

func.func @negated(%x: tensor<8x64xf32>, %w: tensor<64x96xf32, #w>,
                   %init: tensor<8x96xf32>) -> tensor<8x96xf32> {
  // expected-error @below {{'linalg.generic' op takes a weight with encoding #nm_sparse.encoding<2:4>: not covered because its body is not 'out + x * w'}}
  %y = linalg.generic {
      indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>,
                       affine_map<(m, n, k) -> (m, n)>],
      iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<8x64xf32>, tensor<64x96xf32, #w>) outs(%init : tensor<8x96xf32>) {
    ^bb0(%a: f32, %b: f32, %c: f32):
      %0 = arith.negf %b : f32
      %1 = arith.mulf %a, %0 : f32
      %2 = arith.addf %c, %1 : f32
      linalg.yield %2 : f32
  } -> tensor<8x96xf32>
  return %y : tensor<8x96xf32>
}

// -----

#w = #nm_sparse.encoding<2:4>

func.func @conv(%x: tensor<1x64x10xf32>, %w: tensor<3x64xf32, #w>, %init: tensor<1x64x8xf32>) -> tensor<1x64x8xf32> {
  // expected-error @below {{'linalg.generic' op takes a weight with encoding #nm_sparse.encoding<2:4>: not covered because its indexing maps are not projected permutations}}
  %y = linalg.generic {
      indexing_maps = [affine_map<(b, c, t, k) -> (b, c, t + k)>, affine_map<(b, c, t, k) -> (k, c)>,
                       affine_map<(b, c, t, k) -> (b, c, t)>],
      iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<1x64x10xf32>, tensor<3x64xf32, #w>) outs(%init : tensor<1x64x8xf32>) {
    ^bb0(%a: f32, %b: f32, %c: f32):
      %1 = arith.mulf %a, %b : f32
      %2 = arith.addf %c, %1 : f32
      linalg.yield %2 : f32
  } -> tensor<1x64x8xf32>
  return %y : tensor<1x64x8xf32>
}

// -----

#w = #nm_sparse.encoding<2:4>

func.func @reduced_x(%x: tensor<8x64x3xf32>, %w: tensor<64x96xf32, #w>, %init: tensor<8x96xf32>) -> tensor<8x96xf32> {
  // expected-error @below {{not covered because loop 3 indexes neither both inputs nor one input and the output}}
  %y = linalg.generic {
      indexing_maps = [affine_map<(m, n, k, j) -> (m, k, j)>, affine_map<(m, n, k, j) -> (k, n)>,
                       affine_map<(m, n, k, j) -> (m, n)>],
      iterator_types = ["parallel", "parallel", "reduction", "reduction"]}
      ins(%x, %w : tensor<8x64x3xf32>, tensor<64x96xf32, #w>) outs(%init : tensor<8x96xf32>) {
    ^bb0(%a: f32, %b: f32, %c: f32):
      %1 = arith.mulf %a, %b : f32
      %2 = arith.addf %c, %1 : f32
      linalg.yield %2 : f32
  } -> tensor<8x96xf32>
  return %y : tensor<8x96xf32>
}

// -----

#w = #nm_sparse.encoding<2:4, dim = 1>

func.func @two_reductions(%x: tensor<2x8x64xf32>, %w: tensor<2x64x96xf32, #w>, %init: tensor<8x96xf32>) -> tensor<8x96xf32> {
  // expected-error @below {{'linalg.batch_reduce_matmul' op takes a weight with encoding #nm_sparse.encoding<2:4, dim = 1>: not covered because it sums over 2 loops, supported is one}}
  %y = linalg.batch_reduce_matmul ins(%x, %w : tensor<2x8x64xf32>, tensor<2x64x96xf32, #w>)
                                  outs(%init : tensor<8x96xf32>) -> tensor<8x96xf32>
  return %y : tensor<8x96xf32>
}

// -----

#w = #nm_sparse.encoding<2:4, dim = 2>
#xm = affine_map<(m, n, o, k) -> (m, k)>
#wm = affine_map<(m, n, o, k) -> (n, o, k)>
#ym = affine_map<(m, n, o, k) -> (m, n, o)>

func.func @two_outputs(%x: tensor<8x64xf32>, %w: tensor<2x96x64xf32, #w>, %init: tensor<8x2x96xf32>) -> tensor<8x2x96xf32> {
  // expected-error @below {{not covered because its weight has 2 output dimensions, supported is one}}
  %y = linalg.contract indexing_maps = [#xm, #wm, #ym]
    ins(%x, %w : tensor<8x64xf32>, tensor<2x96x64xf32, #w>) outs(%init : tensor<8x2x96xf32>) -> tensor<8x2x96xf32>
  return %y : tensor<8x2x96xf32>
}

// -----

#w = #nm_sparse.encoding<2:4>
#xm = affine_map<(a, b, m, n, k) -> (a, b, m, k)>
#wm = affine_map<(a, b, m, n, k) -> (k, n)>
#ym = affine_map<(a, b, m, n, k) -> (a, b, m, n)>

func.func @three_token_loops(%x: tensor<2x3x8x64xf32>, %w: tensor<64x96xf32, #w>, %init: tensor<2x3x8x96xf32>) -> tensor<2x3x8x96xf32> {
  // expected-error @below {{not covered because it has 3 token loops and 0 batch loops, supported are two in all; collapse them}}
  %y = linalg.contract indexing_maps = [#xm, #wm, #ym]
    ins(%x, %w : tensor<2x3x8x64xf32>, tensor<64x96xf32, #w>) outs(%init : tensor<2x3x8x96xf32>) -> tensor<2x3x8x96xf32>
  return %y : tensor<2x3x8x96xf32>
}

// -----

#w = #nm_sparse.encoding<2:4, dim = 1>
#xm = affine_map<(b, m, n, k) -> (b, m, k)>
#wm = affine_map<(b, m, n, k) -> (n, k, b)>
#ym = affine_map<(b, m, n, k) -> (b, m, n)>

func.func @trailing_batch(%x: tensor<2x8x64xf32>, %w: tensor<96x64x2xf32, #w>, %init: tensor<2x8x96xf32>) -> tensor<2x8x96xf32> {
  // expected-error @below {{not covered because the batch must be the weight's leading dimension, got affine_map<(d0, d1, d2, d3) -> (d2, d3, d0)>}}
  %y = linalg.contract indexing_maps = [#xm, #wm, #ym]
    ins(%x, %w : tensor<2x8x64xf32>, tensor<96x64x2xf32, #w>) outs(%init : tensor<2x8x96xf32>) -> tensor<2x8x96xf32>
  return %y : tensor<2x8x96xf32>
}

// -----

#w = #nm_sparse.encoding<2:4>

func.func @dynamic(%x: tensor<8x?xf32>, %w: tensor<?x96xf32, #w>, %init: tensor<8x96xf32>) -> tensor<8x96xf32> {
  // expected-error @below {{not covered because the weight has a dynamic shape, 'tensor<?x96xf32, #nm_sparse.encoding<2:4>>'; the size of the packed form must be known}}
  %y = linalg.matmul ins(%x, %w : tensor<8x?xf32>, tensor<?x96xf32, #w>) outs(%init : tensor<8x96xf32>) -> tensor<8x96xf32>
  return %y : tensor<8x96xf32>
}

// -----

#w = #nm_sparse.encoding<2:4>

func.func @element_types(%x: tensor<8x64xf32>, %w: tensor<64x96xf16, #w>, %init: tensor<8x96xf32>) -> tensor<8x96xf32> {
  // expected-error @below {{not covered because activations and weight must have one element type, got 'f32' and 'f16'}}
  %y = linalg.matmul ins(%x, %w : tensor<8x64xf32>, tensor<64x96xf16, #w>) outs(%init : tensor<8x96xf32>) -> tensor<8x96xf32>
  return %y : tensor<8x96xf32>
}

// -----

#w = #nm_sparse.encoding<2:4>

func.func @accumulator(%x: tensor<8x64xf32>, %w: tensor<64x96xf32, #w>, %init: tensor<8x96xf64>) -> tensor<8x96xf64> {
  // expected-error @below {{not covered because a product of 'f32' must be accumulated in f32 or the same type, got 'f64'}}
  %y = linalg.matmul ins(%x, %w : tensor<8x64xf32>, tensor<64x96xf32, #w>) outs(%init : tensor<8x96xf64>) -> tensor<8x96xf64>
  return %y : tensor<8x96xf64>
}

// -----

// No loop is empty; only a dynamic number of tokens may turn out to be 0.

#w = #nm_sparse.encoding<2:4>

func.func @no_contraction(%x: tensor<8x0xf32>, %w: tensor<0x96xf32, #w>, %init: tensor<8x96xf32>) -> tensor<8x96xf32> {
  // expected-error @below {{'linalg.matmul' op takes a weight with encoding #nm_sparse.encoding<2:4>: not covered because the size of the contraction (K) is 0 in 'tensor<8x0xf32>', legal is at least 1}}
  %y = linalg.matmul ins(%x, %w : tensor<8x0xf32>, tensor<0x96xf32, #w>) outs(%init : tensor<8x96xf32>) -> tensor<8x96xf32>
  return %y : tensor<8x96xf32>
}

// -----

#w = #nm_sparse.encoding<2:4>

func.func @no_contraction_dynamic(%x: tensor<?x0xf32>, %w: tensor<0x96xf32, #w>, %init: tensor<?x96xf32>) -> tensor<?x96xf32> {
  // expected-error @below {{'linalg.matmul' op takes a weight with encoding #nm_sparse.encoding<2:4>: not covered because the size of the contraction (K) is 0 in 'tensor<?x0xf32>', legal is at least 1}}
  %y = linalg.matmul ins(%x, %w : tensor<?x0xf32>, tensor<0x96xf32, #w>) outs(%init : tensor<?x96xf32>) -> tensor<?x96xf32>
  return %y : tensor<?x96xf32>
}

// -----

#w = #nm_sparse.encoding<2:4>

func.func @no_outputs(%x: tensor<8x64xf32>, %w: tensor<64x0xf32, #w>, %init: tensor<8x0xf32>) -> tensor<8x0xf32> {
  // expected-error @below {{'linalg.matmul' op takes a weight with encoding #nm_sparse.encoding<2:4>: not covered because the size of outputs (N) is 0 in 'tensor<64x0xf32, #nm_sparse.encoding<2:4>>', legal is at least 1}}
  %y = linalg.matmul ins(%x, %w : tensor<8x64xf32>, tensor<64x0xf32, #w>) outs(%init : tensor<8x0xf32>) -> tensor<8x0xf32>
  return %y : tensor<8x0xf32>
}

// -----

#w = #nm_sparse.encoding<2:4>

func.func @no_tokens(%x: tensor<0x64xf32>, %w: tensor<64x96xf32, #w>, %init: tensor<0x96xf32>) -> tensor<0x96xf32> {
  // expected-error @below {{'linalg.matmul' op takes a weight with encoding #nm_sparse.encoding<2:4>: not covered because the size of tokens (M) is 0 in 'tensor<0x64xf32>', legal is at least 1, or a dynamic size}}
  %y = linalg.matmul ins(%x, %w : tensor<0x64xf32>, tensor<64x96xf32, #w>) outs(%init : tensor<0x96xf32>) -> tensor<0x96xf32>
  return %y : tensor<0x96xf32>
}

// -----

#w = #nm_sparse.encoding<2:4, dim = 1>

func.func @no_batch(%x: tensor<0x8x64xf32>, %w: tensor<0x64x96xf32, #w>, %init: tensor<0x8x96xf32>) -> tensor<0x8x96xf32> {
  // expected-error @below {{not covered because the size of the batch is 0 in 'tensor<0x8x64xf32>', legal is at least 1}}
  %y = linalg.batch_matmul ins(%x, %w : tensor<0x8x64xf32>, tensor<0x64x96xf32, #w>)
                           outs(%init : tensor<0x8x96xf32>) -> tensor<0x8x96xf32>
  return %y : tensor<0x8x96xf32>
}

// -----

#w = #nm_sparse.encoding<2:4>

func.func @other(%w: tensor<64x96xf16, #w>, %i: index) -> f16 {
  // expected-error @below {{'tensor.extract' op takes a weight with encoding #nm_sparse.encoding<2:4>: not covered because a weight may only be used by linalg contractions, nm_sparse operations, tensor.cast, func.call and func.return}}
  %0 = tensor.extract %w[%i, %i] : tensor<64x96xf16, #w>
  return %0 : f16
}

// -----

#w = #nm_sparse.encoding<2:4>

func.func @source() {
  // expected-error @below {{'tensor.empty' op yields a weight with encoding #nm_sparse.encoding<2:4>: not covered because a weight may only come from a function argument, arith.constant, an nm_sparse operation, tensor.cast or func.call}}
  %0 = tensor.empty() : tensor<64x96xf16, #w>
  %1 = nm_sparse.prune #w %0 : tensor<64x96xf16, #w> to tensor<64x96xf16, #w>
  return
}

// -----

// An encoding that is no n:m pattern: nothing runs dense in silence.

#s = #sparse_tensor.encoding<{ map = (i, j) -> (i : dense, j : compressed) }>

// expected-error @below {{'func.func' op has a tensor of type 'tensor<64x96xf16, #sparse_tensor.encoding<}}
func.func @csr(%w: tensor<64x96xf16, #s>) -> tensor<64x96xf16, #s> {
  return %w : tensor<64x96xf16, #s>
}
