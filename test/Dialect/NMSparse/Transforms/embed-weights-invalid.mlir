// RUN: nm-opt %s --nm-sparse-embed-weights --split-input-file --verify-diagnostics

#x = affine_map<(m, n, k) -> (m, k)>
#w = affine_map<(m, n, k) -> (k, n)>
#y = affine_map<(m, n, k) -> (m, n)>

func.func @not_two_of_four(%x: tensor<?x8xi8>, %init: tensor<?x1xi32>) -> tensor<?x1xi32> {
  %v = arith.constant dense<[[1], [2], [3], [4]]> : tensor<4x1xi8>
  %i = arith.constant dense<[[0], [4], [5], [6]]> : tensor<4x1xi8>
  // expected-error @below {{cannot have its weight stored by #nm_sparse.encoding<2:4>: pack: weight is not 2:4: window 1 of panel 0 has 3 nonzero blocks, legal is at most 2; prune the weight or use a larger n}}
  %y = nm_sparse.matmul #nm_sparse.encoding<4:8> indexing_maps = [#x, #w, #y]
    ins(%x, %v, %i : tensor<?x8xi8>, tensor<4x1xi8>, tensor<4x1xi8>) outs(%init : tensor<?x1xi32>)
    {nm_sparse.embed = #nm_sparse.encoding<2:4>} -> tensor<?x1xi32>
  return %y : tensor<?x1xi32>
}

// -----

#x = affine_map<(m, n, k) -> (m, k)>
#w = affine_map<(m, n, k) -> (k, n)>
#y = affine_map<(m, n, k) -> (m, n)>

func.func @wrong_index(%x: tensor<?x4xi8>, %init: tensor<?x1xi32>) -> tensor<?x1xi32> {
  %v = arith.constant dense<[[1]]> : tensor<1x1xi8>
  %i = arith.constant dense<[[4]]> : tensor<1x1xi8>
  // expected-error @below {{unpack: index: window 0 of panel 0 (batch 0) has position 4 in slot 0 after -1: positions must increase and stay below m=4}}
  %y = nm_sparse.matmul #nm_sparse.encoding<1:4> indexing_maps = [#x, #w, #y]
    ins(%x, %v, %i : tensor<?x4xi8>, tensor<1x1xi8>, tensor<1x1xi8>) outs(%init : tensor<?x1xi32>)
    {nm_sparse.embed = #nm_sparse.encoding<2:4>} -> tensor<?x1xi32>
  return %y : tensor<?x1xi32>
}

// -----

#x = affine_map<(m, n, k) -> (m, k)>
#w = affine_map<(m, n, k) -> (k, n)>
#y = affine_map<(m, n, k) -> (m, n)>

func.func @blocks(%x: tensor<8x16xf16>, %v: tensor<4x8xf16>, %i: tensor<4x8xi8>, %init: tensor<8x8xf32>) -> tensor<8x8xf32> {
  // expected-error @below {{has nm_sparse.embed = #nm_sparse.encoding<2:4, block = [1, 8]>; legal are one n:m level of single elements, such as 2:4, and the encoding of the weight, by which it stays as it is}}
  %y = nm_sparse.matmul #nm_sparse.encoding<1:4> indexing_maps = [#x, #w, #y]
    ins(%x, %v, %i : tensor<8x16xf16>, tensor<4x8xf16>, tensor<4x8xi8>) outs(%init : tensor<8x8xf32>)
    {nm_sparse.embed = #nm_sparse.encoding<2:4, block = [1, 8]>} -> tensor<8x8xf32>
  return %y : tensor<8x8xf32>
}

// -----

#x = affine_map<(m, n, k) -> (m, k)>
#w = affine_map<(m, n, k) -> (k, n)>
#y = affine_map<(m, n, k) -> (m, n)>

func.func @two_levels(%x: tensor<8x16xf16>, %v: tensor<4x8xf16>, %i: tensor<4x8xi8>, %init: tensor<8x8xf32>) -> tensor<8x8xf32> {
  // expected-error @below {{has nm_sparse.embed = #nm_sparse.encoding<[4:8], [2:4]>; legal are one n:m level}}
  %y = nm_sparse.matmul #nm_sparse.encoding<1:4> indexing_maps = [#x, #w, #y]
    ins(%x, %v, %i : tensor<8x16xf16>, tensor<4x8xf16>, tensor<4x8xi8>) outs(%init : tensor<8x8xf32>)
    {nm_sparse.embed = #nm_sparse.encoding<[4:8], [2:4]>} -> tensor<8x8xf32>
  return %y : tensor<8x8xf32>
}

// -----

#x = affine_map<(m, n, k) -> (m, k)>
#w = affine_map<(m, n, k) -> (k, n)>
#y = affine_map<(m, n, k) -> (m, n)>

func.func @stored(%x: tensor<8x64xf16>, %v: tensor<1x2x256xf16>, %b: tensor<1x2x32xi32>, %init: tensor<8x8xf32>) -> tensor<8x8xf32> {
  // expected-error @below {{has nm_sparse.embed, but its weight is #nm_sparse.encoding<1:4> in another form than the canonical one; legal are canonical weights}}
  %y = nm_sparse.matmul #nm_sparse.encoding<1:4> storage = #nm_sparse.bitmap<#nm_sparse.encoding<1:4>> indexing_maps = [#x, #w, #y]
    ins(%x, %v, %b : tensor<8x64xf16>, tensor<1x2x256xf16>, tensor<1x2x32xi32>) outs(%init : tensor<8x8xf32>)
    {nm_sparse.embed = #nm_sparse.encoding<2:4>} -> tensor<8x8xf32>
  return %y : tensor<8x8xf32>
}

// -----

#x = affine_map<(m, n, k) -> (m, k)>
#w = affine_map<(m, n, k) -> (k, n)>
#y = affine_map<(m, n, k) -> (m, n)>

func.func @two_wishes(%x: tensor<8x16xf16>, %v: tensor<4x8xf16>, %i: tensor<4x8xi8>, %init: tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<8x8xf32>) {
  // expected-note @below {{the other product is here}}
  %a = nm_sparse.matmul #nm_sparse.encoding<1:4> indexing_maps = [#x, #w, #y]
    ins(%x, %v, %i : tensor<8x16xf16>, tensor<4x8xf16>, tensor<4x8xi8>) outs(%init : tensor<8x8xf32>)
    {nm_sparse.embed = #nm_sparse.encoding<1:4>} -> tensor<8x8xf32>
  // expected-error @below {{wants its weight stored by #nm_sparse.encoding<2:4>, but another product wants it by #nm_sparse.encoding<1:4>; they read the same one}}
  %b = nm_sparse.matmul #nm_sparse.encoding<1:4> indexing_maps = [#x, #w, #y]
    ins(%x, %v, %i : tensor<8x16xf16>, tensor<4x8xf16>, tensor<4x8xi8>) outs(%init : tensor<8x8xf32>)
    {nm_sparse.embed = #nm_sparse.encoding<2:4>} -> tensor<8x8xf32>
  return %a, %b : tensor<8x8xf32>, tensor<8x8xf32>
}

// -----

// expected-error @below {{'nm_sparse.embed' must be a #nm_sparse.encoding, got "2:4"}}
module attributes {nm_sparse.embed = "2:4"} {}
