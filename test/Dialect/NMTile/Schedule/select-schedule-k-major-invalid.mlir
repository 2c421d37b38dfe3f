// RUN: nm-opt %s --split-input-file --verify-diagnostics --nm-sparse-select-schedule="chip=sm_90a"

// A weight that is stored along the contraction says what would read it.

#x = affine_map<(m, n, k) -> (m, k)>
#w = affine_map<(m, n, k) -> (k, n)>
#y = affine_map<(m, n, k) -> (m, n)>
#e = #nm_sparse.encoding<1:2, block = [1, 64]>

func.func @halves(%x: tensor<8x512xf16>, %v: tensor<64x256xf16>, %i: tensor<256x1xi8>, %init: tensor<8x64xf32>) -> tensor<8x64xf32> {
  // expected-error @below {{on #nm_sparse.encoding<1:2, block = [1, 64]> of 'f16' has no schedule: weights stored as k_major have elements of 8 bits, panels of a multiple of 64 outputs, and blocks whose rows divide 128; legal are storage = auto, or bitmap}}
  %0 = nm_sparse.matmul #e storage = #nm_sparse.k_major<#e> indexing_maps = [#x, #w, #y]
    ins(%x, %v, %i : tensor<8x512xf16>, tensor<64x256xf16>, tensor<256x1xi8>) outs(%init : tensor<8x64xf32>) -> tensor<8x64xf32>
  return %0 : tensor<8x64xf32>
}

// -----

#x = affine_map<(m, n, k) -> (m, k)>
#w = affine_map<(m, n, k) -> (k, n)>
#y = affine_map<(m, n, k) -> (m, n)>
#e = #nm_sparse.encoding<1:2, block = [1, 64]>

func.func @token_major(%x: tensor<8x512xi8>, %v: tensor<64x256xi8>, %i: tensor<256x1xi8>, %init: tensor<8x64xi32>) -> tensor<8x64xi32> {
  // expected-error @below {{on #nm_sparse.encoding<1:2, block = [1, 64]> has no schedule for sm_90a: weights stored as k_major are multiplied on sm_90a, with activations that are feature-major or may become so; legal are storage = auto with layout = auto, or storage = bitmap}}
  %0 = nm_sparse.matmul #e storage = #nm_sparse.k_major<#e> indexing_maps = [#x, #w, #y]
    ins(%x, %v, %i : tensor<8x512xi8>, tensor<64x256xi8>, tensor<256x1xi8>) outs(%init : tensor<8x64xi32>) -> tensor<8x64xi32>
  return %0 : tensor<8x64xi32>
}
