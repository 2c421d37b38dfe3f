// RUN: nm-opt %s --convert-sparse-tensor-to-nm-sparse --split-input-file -verify-diagnostics

// No encoding is dropped: what would run dense without a word is an error.

#csr = #sparse_tensor.encoding<{map = (i, j) -> (i : dense, j : compressed)}>
// expected-error-re @below {{'func.func' op has a tensor of type 'tensor<64x96xf16, #sparse_tensor.encoding<{{.*}}compressed{{.*}}>>', whose encoding is no n:m pattern (legal are #nm_sparse.encoding, and #sparse_tensor.encoding with the levels 'o : dense, k floordiv m : dense, k mod m : structured[n, m]', at rank 3 also a batch 'b : dense', the dense ones in any order): none of its levels is structured[n, m]}}
func.func @csr(%w: tensor<64x96xf16, #csr>) -> tensor<64x96xf16, #csr> {
  return %w : tensor<64x96xf16, #csr>
}

// -----

#dense = #sparse_tensor.encoding<{map = (i, j) -> (i : dense, j : dense)}>
// expected-error @below {{the dense ones in any order): none of its levels is structured[n, m]}}
func.func private @all_dense(tensor<64x96xf16, #dense>)

// -----

#plain = #sparse_tensor.encoding<{map = (i, j) -> (i : dense, j : structured[2, 4])}>
// expected-error @below {{the dense ones in any order): its map does not split one dimension into floordiv 4 and mod 4 and leave the others as they are}}
func.func private @not_split(tensor<64x96xf16, #plain>)

// -----

#blocks = #sparse_tensor.encoding<{
  map = (i, j) -> (i floordiv 4 : dense, j floordiv 4 : dense, i mod 4 : dense, j mod 4 : structured[2, 4])}>
// expected-error @below {{its map does not split one dimension into floordiv 4 and mod 4 and leave the others as they are}}
func.func private @both_split(tensor<64x96xf16, #blocks>)

// -----

#zero = #sparse_tensor.encoding<{map = (i, j) -> (i floordiv 4 : dense, j : dense, i mod 4 : structured[0, 4])}>
// expected-error @below {{the dense ones in any order): structured[0, 4]: n must be at least 1}}
func.func private @none_kept(tensor<64x96xf16, #zero>)

// -----

#one = #sparse_tensor.encoding<{map = (i, j) -> (i floordiv 4 : dense, j : dense, i mod 4 : structured[2, 4]),
                                explicitVal = 1.0 : f16}>
// expected-error @below {{the dense ones in any order): all that it keeps has one explicitVal, and a packed weight stores values}}
func.func private @one_value(tensor<64x96xf16, #one>)

// -----

#w = #sparse_tensor.encoding<{map = (b, i, j) -> (i : dense, j : dense, b floordiv 4 : dense, b mod 4 : structured[2, 4])}>
// expected-error @below {{the dense ones in any order): nm_sparse encoding has dim = 0, legal for a tensor of rank 3 are 1 and 2}}
func.func private @batch_split(tensor<8x64x96xf16, #w>)

// -----

#w = #sparse_tensor.encoding<{
  map = (b, c, i, j) -> (b : dense, c : dense, i : dense, j floordiv 4 : dense, j mod 4 : structured[2, 4])}>
// expected-error @below {{the dense ones in any order): structured[2, 4]: dim must be one of the last two dimensions of a rank-2 or rank-3 tensor, got 3}}
func.func private @rank(tensor<8x2x64x96xf16, #w>)

// -----

#w = #sparse_tensor.encoding<{map = (i, j) -> (i floordiv 4 : dense, j : dense, i mod 4 : structured[2, 4])}>
// expected-error @below {{the dense ones in any order): nm_sparse encoding on element type 'f64', legal are f32, f16, bf16, f8E4M3FN, f8E5M2, i8}}
func.func private @element_type(tensor<64x96xf64, #w>)

// -----

// expected-error-re @below {{'func.func' op has a tensor of type 'tensor<64x96xf16, "pruned">', whose encoding is no n:m pattern (legal are #nm_sparse.encoding, {{.*}}): it is of another kind}}
func.func private @other_attribute(tensor<64x96xf16, "pruned">)

// -----

// Also where no function's type says so.

#csr = #sparse_tensor.encoding<{map = (i, j) -> (i : dense, j : compressed)}>
func.func @constant() {
  // expected-error @below {{'arith.constant' op has a tensor of type}}
  %0 = arith.constant sparse<[[0, 0], [3, 1]], [1.0, 2.0]> : tensor<4x2xf16, #csr>
  return
}
