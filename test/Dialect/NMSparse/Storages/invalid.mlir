// RUN: nm-opt %s --split-input-file --verify-diagnostics

#x = affine_map<(m, n, k) -> (m, k)>
#w = affine_map<(m, n, k) -> (k, n)>
#y = affine_map<(m, n, k) -> (m, n)>

func.func @no_components(%x: tensor<8x64xf16>, %init: tensor<8x96xf32>) {
  // expected-error @below {{of #nm_sparse.encoding<2:4> needs the components values, index, got 0}}
  %0 = nm_sparse.matmul #nm_sparse.encoding<2:4> indexing_maps = [#x, #w, #y]
    ins(%x : tensor<8x64xf16>) outs(%init : tensor<8x96xf32>) -> tensor<8x96xf32>
  return
}

// -----

#x = affine_map<(m, n, k) -> (m, k)>
#w = affine_map<(m, n, k) -> (k, n)>
#y = affine_map<(m, n, k) -> (m, n)>

func.func @canonical_storage(%x: tensor<8x64xf16>, %v: tensor<32x96xf16>, %i: tensor<32x96xi8>, %init: tensor<8x96xf32>) {
  // expected-error @below {{has storage = #nm_sparse.encoding<2:4>, legal are forms of #nm_sparse.encoding<2:4> other than the canonical one}}
  %0 = nm_sparse.matmul #nm_sparse.encoding<2:4> storage = #nm_sparse.encoding<2:4> indexing_maps = [#x, #w, #y]
    ins(%x, %v, %i : tensor<8x64xf16>, tensor<32x96xf16>, tensor<32x96xi8>) outs(%init : tensor<8x96xf32>) -> tensor<8x96xf32>
  return
}

// -----

#x = affine_map<(m, n, k) -> (m, k)>
#w = affine_map<(m, n, k) -> (k, n)>
#y = affine_map<(m, n, k) -> (m, n)>

func.func @unknown_place(%x: tensor<8x64xf16>, %v: tensor<32x96xf16>, %i: tensor<32x96xi8>, %init: tensor<8x96xf32>, %p: index) {
  // expected-error @below {{has a place 'first_column', legal for #nm_sparse.encoding<2:4> are panel_offset, first_row}}
  %0 = nm_sparse.matmul #nm_sparse.encoding<2:4> indexing_maps = [#x, #w, #y]
    ins(%x, %v, %i : tensor<8x64xf16>, tensor<32x96xf16>, tensor<32x96xi8>) outs(%init : tensor<8x96xf32>)
    at(first_column = %p) -> tensor<8x96xf32>
  return
}

// -----

#x = affine_map<(m, n, k) -> (m, k)>
#w = affine_map<(m, n, k) -> (k, n)>
#y = affine_map<(m, n, k) -> (m, n)>

func.func @place_twice(%x: tensor<8x64xf16>, %v: tensor<32x96xf16>, %i: tensor<32x96xi8>, %init: tensor<8x96xf32>, %p: index) {
  // expected-error @below {{has two places 'panel_offset'}}
  %0 = nm_sparse.matmul #nm_sparse.encoding<2:4> indexing_maps = [#x, #w, #y]
    ins(%x, %v, %i : tensor<8x64xf16>, tensor<32x96xf16>, tensor<32x96xi8>) outs(%init : tensor<8x96xf32>)
    at(panel_offset = %p, panel_offset = %p) -> tensor<8x96xf32>
  return
}

// -----

#x = affine_map<(m, n, k) -> (m, k)>
#w = affine_map<(m, n, k) -> (k, n)>
#y = affine_map<(m, n, k) -> (m, n)>

func.func @unnamed_place(%x: tensor<8x64xf16>, %v: tensor<32x96xf16>, %i: tensor<32x96xi8>, %init: tensor<8x96xf32>, %p: index) {
  // expected-error @below {{has 1 places and 0 names of places}}
  %0 = "nm_sparse.matmul"(%x, %v, %i, %init, %p) <{encoding = #nm_sparse.encoding<2:4>,
      indexing_maps = [#x, #w, #y], operandSegmentSizes = array<i32: 1, 2, 1, 1>}>
    : (tensor<8x64xf16>, tensor<32x96xf16>, tensor<32x96xi8>, tensor<8x96xf32>, index) -> tensor<8x96xf32>
  return
}

// -----

#x = affine_map<(b, m, n, k) -> (b, m, k)>
#w = affine_map<(b, m, n, k) -> (b, k, n)>
#y = affine_map<(b, m, n, k) -> (b, m, n)>

func.func @batches(%x: tensor<3x8x64xf16>, %v: tensor<2x32x96xf16>, %i: tensor<3x32x96xi8>, %init: tensor<3x8x96xf32>) {
  // expected-error @below {{x has 3 batch entries, values has 2}}
  %0 = nm_sparse.matmul #nm_sparse.encoding<2:4> indexing_maps = [#x, #w, #y]
    ins(%x, %v, %i : tensor<3x8x64xf16>, tensor<2x32x96xf16>, tensor<3x32x96xi8>) outs(%init : tensor<3x8x96xf32>) -> tensor<3x8x96xf32>
  return
}

// -----

#x = affine_map<(b, m, n, k) -> (b, m, k)>
#w = affine_map<(b, m, n, k) -> (b, k, n)>
#y = affine_map<(b, m, n, k) -> (b, m, n)>

func.func @dynamic_batches(%x: tensor<?x8x64xf16>, %v: tensor<2x32x96xf16>, %i: tensor<2x32x96xi8>, %init: tensor<3x8x96xf32>) {
  // expected-error @below {{result has 3 batch entries, values has 2}}
  %0 = nm_sparse.matmul #nm_sparse.encoding<2:4> indexing_maps = [#x, #w, #y]
    ins(%x, %v, %i : tensor<?x8x64xf16>, tensor<2x32x96xf16>, tensor<2x32x96xi8>) outs(%init : tensor<3x8x96xf32>) -> tensor<3x8x96xf32>
  return
}

// -----

func.func @tile_components(%x: memref<16x32xf16, 3>, %a: vector<32x64xf32>) {
  // expected-error @below {{has the values of a step, and what says where they are, got 0 components}}
  %0 = nm_tile.matmul #nm_sparse.encoding<2:4, block = [1, 64]>
    schedule = #nm_tile.schedule<tile = [32, 64, 16], product = mma<warps = [1, 2]>, transfers = {x = gather, values = copy, index = resident}, pipeline = async_groups<stages = 2>>
    condensed ins(%x : memref<16x32xf16, 3>) acc(%a : vector<32x64xf32>) -> vector<32x64xf32>
  return
}

// -----

// A ragged weight has no rank of the weight alone: the batch lies in its panels.

#x = affine_map<(b, m, n, k) -> (b, m, k)>
#w = affine_map<(b, m, n, k) -> (b, k, n)>
#y = affine_map<(b, m, n, k) -> (b, m, n)>
#e = #nm_sparse.encoding<free, block = [1, 32]>

func.func @ragged_batches(%x: tensor<3x8x64xf16>, %v: tensor<?x32xf16>, %i: tensor<?x1xi32>, %p: tensor<2x3x4xi32>, %init: tensor<3x8x96xf32>) {
  // expected-error @below {{x has 3 batch entries, panels has 2}}
  %0 = nm_sparse.matmul #e storage = #nm_sparse.ragged<#e> indexing_maps = [#x, #w, #y]
    ins(%x, %v, %i, %p : tensor<3x8x64xf16>, tensor<?x32xf16>, tensor<?x1xi32>, tensor<2x3x4xi32>) outs(%init : tensor<3x8x96xf32>) -> tensor<3x8x96xf32>
  return
}
