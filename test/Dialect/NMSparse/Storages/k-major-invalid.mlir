// RUN: nm-opt %s --split-input-file --verify-diagnostics

// expected-error @below {{values along the contraction are those of one level n:m with order = identity, got #nm_sparse.encoding<free>}}
#s = #nm_sparse.k_major<#nm_sparse.encoding<free>>

// -----

// expected-error @below {{values along the contraction are those of one level n:m with order = identity, got #nm_sparse.encoding<[4:8, block = [1, 64]], [2:4]>}}
#s = #nm_sparse.k_major<#nm_sparse.encoding<[4:8, block = [1, 64]], [2:4]>>

// -----

// expected-error @below {{values along the contraction are those of one level n:m with order = identity, got #nm_sparse.encoding<2:4, block = [1, 64], order = shuffled>}}
#s = #nm_sparse.k_major<#nm_sparse.encoding<2:4, block = [1, 64], order = shuffled>>

// -----

#x = affine_map<(m, n, k) -> (m, k)>
#w = affine_map<(m, n, k) -> (k, n)>
#y = affine_map<(m, n, k) -> (m, n)>
#e = #nm_sparse.encoding<1:2, block = [1, 64]>

func.func @canonical_values(%x: tensor<8x160xi8>, %v: tensor<80x64xi8>, %i: tensor<80x2xi8>, %init: tensor<8x64xi32>) {
  // expected-error @below {{values has 64 rows along the contraction, index names 80, which are filled up to 80}}
  %0 = nm_sparse.matmul #e storage = #nm_sparse.k_major<#e> indexing_maps = [#x, #w, #y]
    ins(%x, %v, %i : tensor<8x160xi8>, tensor<80x64xi8>, tensor<80x2xi8>) outs(%init : tensor<8x64xi32>) -> tensor<8x64xi32>
  return
}

// -----

#x = affine_map<(m, n, k) -> (m, k)>
#w = affine_map<(m, n, k) -> (k, n)>
#y = affine_map<(m, n, k) -> (m, n)>
#e = #nm_sparse.encoding<1:2, block = [1, 64]>

func.func @rank(%x: tensor<8x160xi8>, %v: tensor<1x64x80xi8>, %i: tensor<80x1xi8>, %init: tensor<8x64xi32>) {
  // expected-error @below {{values must have rank 2, got 'tensor<1x64x80xi8>'}}
  %0 = nm_sparse.matmul #e storage = #nm_sparse.k_major<#e> indexing_maps = [#x, #w, #y]
    ins(%x, %v, %i : tensor<8x160xi8>, tensor<1x64x80xi8>, tensor<80x1xi8>) outs(%init : tensor<8x64xi32>) -> tensor<8x64xi32>
  return
}

// -----

#x = affine_map<(m, n, k) -> (m, k)>
#w = affine_map<(m, n, k) -> (k, n)>
#y = affine_map<(m, n, k) -> (m, n)>
#e = #nm_sparse.encoding<1:2, block = [1, 64]>

func.func @no_outputs(%x: tensor<8x160xi8>, %v: tensor<0x80xi8>, %i: tensor<80x1xi8>, %init: tensor<8x64xi32>) {
  // expected-error @below {{values must have at least one row and output, got 'tensor<0x80xi8>'}}
  %0 = nm_sparse.matmul #e storage = #nm_sparse.k_major<#e> indexing_maps = [#x, #w, #y]
    ins(%x, %v, %i : tensor<8x160xi8>, tensor<0x80xi8>, tensor<80x1xi8>) outs(%init : tensor<8x64xi32>) -> tensor<8x64xi32>
  return
}
