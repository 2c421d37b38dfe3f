// RUN: nm-opt %s --convert-nm-sparse-to-linalg=structured --split-input-file --verify-diagnostics

#w = #nm_sparse.encoding<2:4>

func.func @pruned(%w: tensor<8x4xf32>) -> (tensor<4x4xf32>, tensor<4x4xi8>) {
  // expected-error @below {{'nm_sparse.prune' op has no structured form: prune and pack the weight beforehand, so that its components are arguments or constants (--nm-sparse-materialize-encodings)}}
  %0 = nm_sparse.prune #w %w : tensor<8x4xf32> to tensor<8x4xf32>
  // expected-error @below {{'nm_sparse.pack' op has no structured form: prune and pack the weight beforehand}}
  %v, %i = nm_sparse.pack #w %0 : tensor<8x4xf32> to tensor<4x4xf32>, tensor<4x4xi8>
  return %v, %i : tensor<4x4xf32>, tensor<4x4xi8>
}

// -----

// Weights that are not packed yet.

#w = #nm_sparse.encoding<2:4>

// expected-error @below {{'func.func' op has a weight with an encoding: run --convert-linalg-to-nm-sparse and --nm-sparse-materialize-encodings first}}
func.func @encoded(%x: tensor<?x8xf32>, %w: tensor<8x4xf32, #w>, %init: tensor<?x4xf32>) -> tensor<?x4xf32> {
  // expected-error @below {{'linalg.matmul' op has a weight with an encoding}}
  %y = linalg.matmul ins(%x, %w : tensor<?x8xf32>, tensor<8x4xf32, #w>) outs(%init : tensor<?x4xf32>) -> tensor<?x4xf32>
  return %y : tensor<?x4xf32>
}

// -----

#w = #nm_sparse.encoding<2:4>

func.func @unpacked(%v: tensor<4x4xf32>, %i: tensor<4x4xi8>) -> tensor<8x4xf32> {
  // expected-error @below {{'nm_sparse.unpack' op has a weight with an encoding}}
  %0 = nm_sparse.unpack #w %v, %i : tensor<4x4xf32>, tensor<4x4xi8> to tensor<8x4xf32, #w>
  // expected-error @below {{'tensor.cast' op has a weight with an encoding}}
  %1 = tensor.cast %0 : tensor<8x4xf32, #w> to tensor<8x4xf32>
  return %1 : tensor<8x4xf32>
}

// -----

// Parts of products belong to kernels: some of the rows that a window keeps,
// outputs from the middle of a panel on, a part of a panel's rows, and any
// number of windows.

#w = #nm_sparse.encoding<2:4, block = [1, 4]>
#f = #nm_sparse.encoding<free, block = [1, 8]>
#xm = affine_map<(m, n, k) -> (m, k)>
#wm = affine_map<(m, n, k) -> (k, n)>
#ym = affine_map<(m, n, k) -> (m, n)>

func.func @rows(%x: tensor<3x8xf32>, %v: tensor<2x8xf32>, %i: tensor<4x2xi8>,
                %init: tensor<3x8xf32>, %row: index) -> tensor<3x8xf32> {
  // expected-error @below {{'nm_sparse.matmul' op is a tile of a product, which has no structured form: run --convert-nm-sparse-to-linalg before products are tiled}}
  %y = nm_sparse.matmul #w indexing_maps = [#xm, #wm, #ym]
    ins(%x, %v, %i : tensor<3x8xf32>, tensor<2x8xf32>, tensor<4x2xi8>)
    outs(%init : tensor<3x8xf32>) at(first_row = %row) -> tensor<3x8xf32>
  return %y : tensor<3x8xf32>
}

func.func @outputs(%x: tensor<3x8xf32>, %v: tensor<4x6xf32>, %i: tensor<4x2xi8>,
                   %init: tensor<3x6xf32>, %offset: index) -> tensor<3x6xf32> {
  // expected-error @below {{is a tile of a product}}
  %y = nm_sparse.matmul #w indexing_maps = [#xm, #wm, #ym]
    ins(%x, %v, %i : tensor<3x8xf32>, tensor<4x6xf32>, tensor<4x2xi8>)
    outs(%init : tensor<3x6xf32>) at(panel_offset = %offset) -> tensor<3x6xf32>
  return %y : tensor<3x6xf32>
}

func.func @panel(%x: tensor<3x64xf32>, %v: tensor<?x8xf32>, %i: tensor<?x1xi32>, %p: tensor<?x4xi32>,
                 %init: tensor<3x8xf32>) -> tensor<3x8xf32> {
  // expected-error @below {{is a tile of a product}}
  %y = nm_sparse.matmul #f storage = #nm_sparse.ragged<#f> indexing_maps = [#xm, #wm, #ym]
    ins(%x, %v, %i, %p : tensor<3x64xf32>, tensor<?x8xf32>, tensor<?x1xi32>, tensor<?x4xi32>)
    outs(%init : tensor<3x8xf32>) -> tensor<3x8xf32>
  return %y : tensor<3x8xf32>
}

func.func @windows(%x: tensor<3x?xf32>, %v: tensor<?x8xf32>, %i: tensor<?x2xi8>,
                   %init: tensor<3x8xf32>) -> tensor<3x8xf32> {
  // expected-error @below {{is a tile of a product}}
  %y = nm_sparse.matmul #w indexing_maps = [#xm, #wm, #ym]
    ins(%x, %v, %i : tensor<3x?xf32>, tensor<?x8xf32>, tensor<?x2xi8>)
    outs(%init : tensor<3x8xf32>) -> tensor<3x8xf32>
  return %y : tensor<3x8xf32>
}

// -----

func.func @class(%tokens: index) -> index {
  // expected-error @below {{'nm_sparse.token_class' op has no structured form: run --convert-nm-sparse-to-linalg before the pass that makes it}}
  %c = nm_sparse.token_class %tokens last = [64] classes = [0, 1]
  return %c : index
}

// -----

func.func @kernel() {
  // expected-error @below {{'nm_tile.ring' op has no structured form}}
  %ring = nm_tile.ring full = 1 empty = 1 : !nm_tile.ring<2>
  return
}
