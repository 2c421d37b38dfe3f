// RUN: nm-opt %s --split-input-file --verify-diagnostics --nm-sparse-select-storage

// expected-error @below {{a bitmap of two levels needs panels of a multiple of 32 outputs, got #nm_sparse.encoding<[4:10, block = [1, 48]], [2:4]>}}
#b = #nm_sparse.bitmap<#nm_sparse.encoding<[4:10, block = [1, 48]], [2:4]>>

// -----

// expected-error @below {{cannot be packed yet}}
#b = #nm_sparse.bitmap<#nm_sparse.encoding<free, block = [1, 2]>>

// -----

// expected-error @below {{a bitmap is of a weight with order = identity, got #nm_sparse.encoding<free, order = shuffled>}}
#b = #nm_sparse.bitmap<#nm_sparse.encoding<free, order = shuffled>>

// -----

// expected-error @below {{a bitmap has density = 101, which is a percentage, 0 to 100, of free elements}}
#b = #nm_sparse.bitmap<#nm_sparse.encoding<free>, density = 101>

// -----

// expected-error @below {{a bitmap has density = 30, which is a percentage, 0 to 100, of free elements}}
#b = #nm_sparse.bitmap<#nm_sparse.encoding<8:16>, density = 30>

// -----

// expected-error @below {{dot needs 1 to 32 warps, got 33}}
#p = #nm_tile.dot<warps = 33>

// -----

// expected-error @below {{a tile of dot must be at most 8 tokens x 32 outputs, one for each lane, got 9 x 32}}
#s = #nm_tile.schedule<tile = [9, 32, 16], product = dot<warps = 2>, transfers = {x = direct, values = direct, index = direct}, pipeline = sequential>

// -----

// expected-error @below {{a tile of dot must be at most 8 tokens x 32 outputs, one for each lane, got 1 x 64}}
#s = #nm_tile.schedule<tile = [1, 64, 16], product = dot<warps = 2>, transfers = {x = direct, values = direct, index = direct}, pipeline = sequential>

// -----

// expected-error @below {{dot reads global memory: legal is transfers = {x = direct, values = direct, index = direct}}}
#s = #nm_tile.schedule<tile = [1, 32, 16], product = dot<warps = 2>, pipeline = async_groups<stages = 2>>

// -----

func.func @other_pattern(%x: tensor<1x128xf16>, %v: tensor<3x4x512xf16>, %b: tensor<3x4x32xi32>, %init: tensor<1x96xf32>) -> tensor<1x96xf32> {
  // expected-error @below {{has storage = #nm_sparse.bitmap<#nm_sparse.encoding<2:4>>, legal are forms of #nm_sparse.encoding<8:16> other than the canonical one}}
  %y = nm_sparse.matmul #nm_sparse.encoding<8:16> storage = #nm_sparse.bitmap<#nm_sparse.encoding<2:4>>
    indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
    ins(%x, %v, %b : tensor<1x128xf16>, tensor<3x4x512xf16>, tensor<3x4x32xi32>) outs(%init : tensor<1x96xf32>) -> tensor<1x96xf32>
  return %y : tensor<1x96xf32>
}

// -----

func.func @offset(%x: tensor<1x128xf16>, %v: tensor<3x4x512xf16>, %b: tensor<3x4x32xi32>, %init: tensor<1x96xf32>, %p: index) -> tensor<1x96xf32> {
  // expected-error @below {{has a place 'panel_offset', legal for #nm_sparse.bitmap<#nm_sparse.encoding<8:16>> is none}}
  %y = nm_sparse.matmul #nm_sparse.encoding<8:16> storage = #nm_sparse.bitmap<#nm_sparse.encoding<8:16>>
    indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
    ins(%x, %v, %b : tensor<1x128xf16>, tensor<3x4x512xf16>, tensor<3x4x32xi32>) outs(%init : tensor<1x96xf32>) at(panel_offset = %p) -> tensor<1x96xf32>
  return %y : tensor<1x96xf32>
}

// -----

func.func @values(%x: tensor<1x128xf16>, %v: tensor<3x4x256xf16>, %b: tensor<3x4x32xi32>, %init: tensor<1x96xf32>) -> tensor<1x96xf32> {
  // expected-error @below {{values must have rank 3 and 512 elements in each tile of its storage, got}}
  %y = nm_sparse.matmul #nm_sparse.encoding<8:16> storage = #nm_sparse.bitmap<#nm_sparse.encoding<8:16>>
    indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
    ins(%x, %v, %b : tensor<1x128xf16>, tensor<3x4x256xf16>, tensor<3x4x32xi32>) outs(%init : tensor<1x96xf32>) -> tensor<1x96xf32>
  return %y : tensor<1x96xf32>
}

// -----

func.func @bits(%x: tensor<1x128xf16>, %v: tensor<3x4x512xf16>, %b: tensor<3x4x32xi8>, %init: tensor<1x96xf32>) -> tensor<1x96xf32> {
  // expected-error @below {{bits must have rank 3 and 32 words of i32 in each tile of its storage, got}}
  %y = nm_sparse.matmul #nm_sparse.encoding<8:16> storage = #nm_sparse.bitmap<#nm_sparse.encoding<8:16>>
    indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
    ins(%x, %v, %b : tensor<1x128xf16>, tensor<3x4x512xf16>, tensor<3x4x32xi8>) outs(%init : tensor<1x96xf32>) -> tensor<1x96xf32>
  return %y : tensor<1x96xf32>
}

// -----

func.func @tiles(%x: tensor<1x128xf16>, %v: tensor<3x4x512xf16>, %b: tensor<3x5x32xi32>, %init: tensor<1x96xf32>) -> tensor<1x96xf32> {
  // expected-error @below {{values and bits must have the same tiles, got}}
  %y = nm_sparse.matmul #nm_sparse.encoding<8:16> storage = #nm_sparse.bitmap<#nm_sparse.encoding<8:16>>
    indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
    ins(%x, %v, %b : tensor<1x128xf16>, tensor<3x4x512xf16>, tensor<3x5x32xi32>) outs(%init : tensor<1x96xf32>) -> tensor<1x96xf32>
  return %y : tensor<1x96xf32>
}

// -----

func.func @contraction(%x: tensor<1x100xf16>, %v: tensor<3x5x512xf16>, %b: tensor<3x5x32xi32>, %init: tensor<1x96xf32>) -> tensor<1x96xf32> {
  // expected-error @below {{contraction size 100 has 4 tiles of 32 rows, bits holds 5}}
  %y = nm_sparse.matmul #nm_sparse.encoding<8:16> storage = #nm_sparse.bitmap<#nm_sparse.encoding<8:16>>
    indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
    ins(%x, %v, %b : tensor<1x100xf16>, tensor<3x5x512xf16>, tensor<3x5x32xi32>) outs(%init : tensor<1x96xf32>) -> tensor<1x96xf32>
  return %y : tensor<1x96xf32>
}

// -----

func.func @outputs(%x: tensor<1x128xf16>, %v: tensor<3x4x512xf16>, %b: tensor<3x4x32xi32>, %init: tensor<1x97xf32>) -> tensor<1x97xf32> {
  // expected-error @below {{result has 97 outputs, values holds 96}}
  %y = nm_sparse.matmul #nm_sparse.encoding<8:16> storage = #nm_sparse.bitmap<#nm_sparse.encoding<8:16>>
    indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
    ins(%x, %v, %b : tensor<1x128xf16>, tensor<3x4x512xf16>, tensor<3x4x32xi32>) outs(%init : tensor<1x97xf32>) -> tensor<1x97xf32>
  return %y : tensor<1x97xf32>
}

// -----

func.func @free_values(%x: tensor<1x300xf16>, %v: tensor<3x2x512xf16>, %b: tensor<3x2x296xi32>, %init: tensor<1x96xf32>) -> tensor<1x96xf32> {
  // expected-error @below {{values of free elements must have rank 1, got 'tensor<3x2x512xf16>'}}
  %y = nm_sparse.matmul #nm_sparse.encoding<free> storage = #nm_sparse.bitmap<#nm_sparse.encoding<free>>
    indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
    ins(%x, %v, %b : tensor<1x300xf16>, tensor<3x2x512xf16>, tensor<3x2x296xi32>) outs(%init : tensor<1x96xf32>) -> tensor<1x96xf32>
  return %y : tensor<1x96xf32>
}

// -----

func.func @free_bits(%x: tensor<1x300xf16>, %v: tensor<?xf16>, %b: tensor<3x2x256xi32>, %init: tensor<1x96xf32>) -> tensor<1x96xf32> {
  // expected-error @below {{bits must have rank 3 and 296 words of i32 in each tile of its storage, got 'tensor<3x2x256xi32>'}}
  %y = nm_sparse.matmul #nm_sparse.encoding<free> storage = #nm_sparse.bitmap<#nm_sparse.encoding<free>>
    indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
    ins(%x, %v, %b : tensor<1x300xf16>, tensor<?xf16>, tensor<3x2x256xi32>) outs(%init : tensor<1x96xf32>) -> tensor<1x96xf32>
  return %y : tensor<1x96xf32>
}

// -----

func.func @free_contraction(%x: tensor<1x300xf16>, %v: tensor<?xf16>, %b: tensor<3x3x296xi32>, %init: tensor<1x96xf32>) -> tensor<1x96xf32> {
  // expected-error @below {{contraction size 300 has 2 tiles of 256 rows, bits holds 3}}
  %y = nm_sparse.matmul #nm_sparse.encoding<free> storage = #nm_sparse.bitmap<#nm_sparse.encoding<free>>
    indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
    ins(%x, %v, %b : tensor<1x300xf16>, tensor<?xf16>, tensor<3x3x296xi32>) outs(%init : tensor<1x96xf32>) -> tensor<1x96xf32>
  return %y : tensor<1x96xf32>
}

// -----

func.func @free_outputs(%x: tensor<1x300xf16>, %v: tensor<?xf16>, %b: tensor<3x2x296xi32>, %init: tensor<1x97xf32>) -> tensor<1x97xf32> {
  // expected-error @below {{result has 97 outputs, values holds 96}}
  %y = nm_sparse.matmul #nm_sparse.encoding<free> storage = #nm_sparse.bitmap<#nm_sparse.encoding<free>>
    indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
    ins(%x, %v, %b : tensor<1x300xf16>, tensor<?xf16>, tensor<3x2x296xi32>) outs(%init : tensor<1x97xf32>) -> tensor<1x97xf32>
  return %y : tensor<1x97xf32>
}
