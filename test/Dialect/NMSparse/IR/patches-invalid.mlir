// RUN: nm-opt %s --split-input-file --verify-diagnostics

// expected-error @below {{kernel = [3]: legal are two numbers from 1 to 32767}}
#p = #nm_sparse.patches<kernel = [3]>

// -----

// expected-error @below {{kernel = []: legal are two numbers from 1 to 32767}}
#p = #nm_sparse.patches<low = [0, 0]>

// -----

// expected-error @below {{strides = [0, 1]: legal are two numbers from 1 to 32767}}
#p = #nm_sparse.patches<kernel = [3, 3], strides = [0, 1]>

// -----

// expected-error @below {{dilations = [1, 40000]: legal are two numbers from 1 to 32767}}
#p = #nm_sparse.patches<kernel = [3, 3], dilations = [1, 40000]>

// -----

// expected-error @below {{low = [-1, 0]: legal are two numbers from 0 to 32767}}
#p = #nm_sparse.patches<kernel = [3, 3], low = [-1, 0]>

// -----

// expected-error @below {{high = [1, 1, 1]: legal are two numbers from 0 to 32767}}
#p = #nm_sparse.patches<kernel = [3, 3], high = [1, 1, 1]>

// -----

// expected-error @below {{image = "hbwc": legal are 'c', 'h' and 'w' in any order, and 'b' last or first}}
#p = #nm_sparse.patches<kernel = [3, 3], image = "hbwc">

// -----

// expected-error @below {{rows = "ccs": legal are 'c', 'r' and 's' in any order}}
#p = #nm_sparse.patches<kernel = [3, 3], rows = "ccs">

// -----

// expected-error @below {{unknown key 'stride', expected 'kernel', 'strides', 'dilations', 'low', 'high', 'image' or 'rows'}}
#p = #nm_sparse.patches<kernel = [3, 3], stride = [1, 1]>

// -----

func.func @rank(%x: tensor<4x8x8xf16>) -> tensor<36x36xf16> {
  // expected-error @below {{image must have rank 4, static sizes but for its batch, and be no smaller than the kernel of #nm_sparse.patches<kernel = [3, 3]>, got 'tensor<4x8x8xf16>'}}
  %y = nm_sparse.patches <kernel = [3, 3]> %x : tensor<4x8x8xf16> -> tensor<36x36xf16>
  return %y : tensor<36x36xf16>
}

// -----

func.func @dynamic(%x: tensor<4x8x?x2xf16>) -> tensor<36x?xf16> {
  // expected-error @below {{static sizes but for its batch}}
  %y = nm_sparse.patches <kernel = [3, 3]> %x : tensor<4x8x?x2xf16> -> tensor<36x?xf16>
  return %y : tensor<36x?xf16>
}

// -----

func.func @small(%x: tensor<4x2x8x2xf16>) -> tensor<36x?xf16> {
  // expected-error @below {{no smaller than the kernel}}
  %y = nm_sparse.patches <kernel = [3, 3]> %x : tensor<4x2x8x2xf16> -> tensor<36x?xf16>
  return %y : tensor<36x?xf16>
}

// -----

// Token-major patches have tokens as rows.

func.func @token_major(%x: tensor<2x8x8x4xf16>) -> tensor<36x72xf16> {
  // expected-error @below {{result must be 'tensor<72x36xf16>' for 'tensor<2x8x8x4xf16>', got 'tensor<36x72xf16>'}}
  %y = nm_sparse.patches <kernel = [3, 3], image = "bhwc"> %x : tensor<2x8x8x4xf16> -> tensor<36x72xf16>
  return %y : tensor<36x72xf16>
}

// -----

func.func @result(%x: tensor<4x8x8x2xf16>) -> tensor<36x70xf16> {
  // expected-error @below {{result must be 'tensor<36x72xf16>' for 'tensor<4x8x8x2xf16>', got 'tensor<36x70xf16>'}}
  %y = nm_sparse.patches <kernel = [3, 3]> %x : tensor<4x8x8x2xf16> -> tensor<36x70xf16>
  return %y : tensor<36x70xf16>
}

// -----

func.func @batches(%x: tensor<2x4x8x8xf16>) -> tensor<36x72xf16> {
  // expected-error @below {{result must be 'tensor<2x36x36xf16>' for 'tensor<2x4x8x8xf16>', got 'tensor<36x72xf16>'}}
  %y = nm_sparse.patches <kernel = [3, 3], image = "bchw"> %x : tensor<2x4x8x8xf16> -> tensor<36x72xf16>
  return %y : tensor<36x72xf16>
}

// -----

// A weight is packed as a matrix.

func.func @pack(%w: tensor<8x4x3x3xf16>) {
  // expected-error @below {{takes the weight of a convolution as the matrix of its contraction and its outputs: reshape it, got 'tensor<8x4x3x3xf16>'}}
  %v, %i = nm_sparse.pack #nm_sparse.encoding<2:4, dim = 1> %w : tensor<8x4x3x3xf16> to tensor<18x8xf16>, tensor<18x8xi8>
  return
}
