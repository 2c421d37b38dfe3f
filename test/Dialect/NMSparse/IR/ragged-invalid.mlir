// RUN: nm-opt %s --split-input-file --verify-diagnostics --nm-sparse-tile

// expected-error @below {{ragged panels are those of a free weight, got #nm_sparse.encoding<2:4>}}
func.func private @pattern() attributes {a = #nm_sparse.ragged<#nm_sparse.encoding<2:4>>}

// -----

// expected-error @below {{ragged panels have rows = 257, legal are 1 to 256}}
func.func private @rows() attributes {a = #nm_sparse.ragged<#nm_sparse.encoding<free, block = [16, 64]>, rows = 257>}

// -----

// expected-error @below {{ragged panels have density = 101, which is a percentage, 0 to 100}}
func.func private @density() attributes {a = #nm_sparse.ragged<#nm_sparse.encoding<free, block = [1, 64]>, density = 101>}

// -----

#e = #nm_sparse.encoding<free, block = [1, 64]>
#maps = [affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (n, m)>]
func.func @no_panels(%x: tensor<300x8xf16>, %v: tensor<?x64xf16>, %i: tensor<?x1xi32>, %init: tensor<128x8xf32>) -> tensor<128x8xf32> {
  // expected-error @below {{of #nm_sparse.encoding<free, block = [1, 64]> stored as ragged needs the components values, index, panels, or a place first_row and a part of one panel, got 2}}
  %y = nm_sparse.matmul #e storage = #nm_sparse.ragged<#e> indexing_maps = #maps
    ins(%x, %v, %i : tensor<300x8xf16>, tensor<?x64xf16>, tensor<?x1xi32>) outs(%init : tensor<128x8xf32>) -> tensor<128x8xf32>
  return %y : tensor<128x8xf32>
}

// -----

#e = #nm_sparse.encoding<free, block = [1, 64]>
#maps = [affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (n, m)>]
func.func @values(%x: tensor<300x8xf16>, %v: tensor<?x128xf16>, %i: tensor<?x1xi32>, %p: tensor<2x4xi32>, %init: tensor<128x8xf32>) -> tensor<128x8xf32> {
  // expected-error @below {{values must have rank 2 and the 64 outputs of a panel, got 'tensor<?x128xf16>'}}
  %y = nm_sparse.matmul #e storage = #nm_sparse.ragged<#e> indexing_maps = #maps
    ins(%x, %v, %i, %p : tensor<300x8xf16>, tensor<?x128xf16>, tensor<?x1xi32>, tensor<2x4xi32>) outs(%init : tensor<128x8xf32>) -> tensor<128x8xf32>
  return %y : tensor<128x8xf32>
}

// -----

#e = #nm_sparse.encoding<free, block = [1, 64]>
#maps = [affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (n, m)>]
func.func @index(%x: tensor<300x8xf16>, %v: tensor<?x64xf16>, %i: tensor<?x1xi16>, %p: tensor<2x4xi32>, %init: tensor<128x8xf32>) -> tensor<128x8xf32> {
  // expected-error @below {{index must have rank 2, one column and element type i32, got 'tensor<?x1xi16>'}}
  %y = nm_sparse.matmul #e storage = #nm_sparse.ragged<#e> indexing_maps = #maps
    ins(%x, %v, %i, %p : tensor<300x8xf16>, tensor<?x64xf16>, tensor<?x1xi16>, tensor<2x4xi32>) outs(%init : tensor<128x8xf32>) -> tensor<128x8xf32>
  return %y : tensor<128x8xf32>
}

// -----

#e = #nm_sparse.encoding<free, block = [2, 64]>
#maps = [affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (n, m)>]
func.func @blocks(%x: tensor<300x8xf16>, %v: tensor<128x64xf16>, %i: tensor<128x1xi32>, %p: tensor<2x4xi32>, %init: tensor<128x8xf32>) -> tensor<128x8xf32> {
  // expected-error @below {{values has 128 rows, the index names 256}}
  %y = nm_sparse.matmul #e storage = #nm_sparse.ragged<#e> indexing_maps = #maps
    ins(%x, %v, %i, %p : tensor<300x8xf16>, tensor<128x64xf16>, tensor<128x1xi32>, tensor<2x4xi32>) outs(%init : tensor<128x8xf32>) -> tensor<128x8xf32>
  return %y : tensor<128x8xf32>
}

// -----

#e = #nm_sparse.encoding<free, block = [1, 64]>
#maps = [affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (n, m)>]
func.func @words(%x: tensor<300x8xf16>, %v: tensor<?x64xf16>, %i: tensor<?x1xi32>, %p: tensor<2x3xi32>, %init: tensor<128x8xf32>) -> tensor<128x8xf32> {
  // expected-error @below {{panels must have rank 2, 4 words of i32 for each panel, got 'tensor<2x3xi32>'}}
  %y = nm_sparse.matmul #e storage = #nm_sparse.ragged<#e> indexing_maps = #maps
    ins(%x, %v, %i, %p : tensor<300x8xf16>, tensor<?x64xf16>, tensor<?x1xi32>, tensor<2x3xi32>) outs(%init : tensor<128x8xf32>) -> tensor<128x8xf32>
  return %y : tensor<128x8xf32>
}

// -----

#e = #nm_sparse.encoding<free, block = [1, 64]>
#maps = [affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (n, m)>]
func.func @count(%x: tensor<300x8xf16>, %v: tensor<?x64xf16>, %i: tensor<?x1xi32>, %p: tensor<3x4xi32>, %init: tensor<128x8xf32>) -> tensor<128x8xf32> {
  // expected-error @below {{result has 128 outputs, which lie in 2 panels, panels has 3}}
  %y = nm_sparse.matmul #e storage = #nm_sparse.ragged<#e> indexing_maps = #maps
    ins(%x, %v, %i, %p : tensor<300x8xf16>, tensor<?x64xf16>, tensor<?x1xi32>, tensor<3x4xi32>) outs(%init : tensor<128x8xf32>) -> tensor<128x8xf32>
  return %y : tensor<128x8xf32>
}

// -----

#e = #nm_sparse.encoding<2:4>
#maps = [affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (n, m)>]
func.func @not_ragged(%x: tensor<64x8xf16>, %v: tensor<32x128xf16>, %i: tensor<32x128xi8>, %p: tensor<2x4xi32>, %init: tensor<128x8xf32>) -> tensor<128x8xf32> {
  // expected-error @below {{of #nm_sparse.encoding<2:4> needs the components values, index, got 3}}
  %y = nm_sparse.matmul #e indexing_maps = #maps
    ins(%x, %v, %i, %p : tensor<64x8xf16>, tensor<32x128xf16>, tensor<32x128xi8>, tensor<2x4xi32>) outs(%init : tensor<128x8xf32>) -> tensor<128x8xf32>
  return %y : tensor<128x8xf32>
}

// -----

#e = #nm_sparse.encoding<free, block = [1, 64]>
#maps = [affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (n, m)>]
func.func @positions(%x: tensor<300x8xf16>, %v: tensor<?x64xf16>, %i: tensor<?x1xi32>, %p: tensor<2x4xi32>, %init: tensor<128x8xf32>) -> tensor<128x8xf32> {
  // expected-error @below {{with ragged panels has a schedule that does not look rows up; legal is transfers = {x = gather, index = rows}, got}}
  %y = nm_sparse.matmul #e storage = #nm_sparse.ragged<#e> indexing_maps = #maps
    config = #nm_tile.schedule<tile = [16, 64, 32], product = mma<warps = [1, 4]>, transfers = {x = gather, values = copy, index = resident}, pipeline = async_groups<stages = 3>>
    ins(%x, %v, %i, %p : tensor<300x8xf16>, tensor<?x64xf16>, tensor<?x1xi32>, tensor<2x4xi32>) outs(%init : tensor<128x8xf32>) -> tensor<128x8xf32>
  return %y : tensor<128x8xf32>
}

// -----

#e = #nm_sparse.encoding<free, block = [1, 64]>
#maps = [affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (n, m)>]
func.func @steps(%x: tensor<300x8xf16>, %v: tensor<?x64xf16>, %i: tensor<?x1xi32>, %p: tensor<2x4xi32>, %init: tensor<128x8xf32>) -> tensor<128x8xf32> {
  // expected-error @below {{whose K steps of 48 rows do not divide the 64 that panels are filled up to}}
  %y = nm_sparse.matmul #e storage = #nm_sparse.ragged<#e> indexing_maps = #maps
    config = #nm_tile.schedule<tile = [16, 64, 48], product = mma<warps = [1, 4]>, transfers = {x = gather, values = copy, index = rows}, pipeline = async_groups<stages = 3>>
    ins(%x, %v, %i, %p : tensor<300x8xf16>, tensor<?x64xf16>, tensor<?x1xi32>, tensor<2x4xi32>) outs(%init : tensor<128x8xf32>) -> tensor<128x8xf32>
  return %y : tensor<128x8xf32>
}

// -----

#e = #nm_sparse.encoding<free, block = [1, 64]>
#maps = [affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (n, m)>]
func.func @outputs(%x: tensor<300x8xf16>, %v: tensor<?x64xf16>, %i: tensor<?x1xi32>, %p: tensor<2x4xi32>, %init: tensor<128x8xf32>) -> tensor<128x8xf32> {
  // expected-error @below {{with tiles of 128 outputs, which do not divide the 64 of a panel}}
  %y = nm_sparse.matmul #e storage = #nm_sparse.ragged<#e> indexing_maps = #maps
    config = #nm_tile.schedule<tile = [16, 128, 32], product = mma<warps = [1, 4]>, transfers = {x = gather, values = copy, index = rows}, pipeline = async_groups<stages = 3>>
    ins(%x, %v, %i, %p : tensor<300x8xf16>, tensor<?x64xf16>, tensor<?x1xi32>, tensor<2x4xi32>) outs(%init : tensor<128x8xf32>) -> tensor<128x8xf32>
  return %y : tensor<128x8xf32>
}

// -----

#e = #nm_sparse.encoding<free, block = [1, 64]>
#maps = [affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (n, m)>]
func.func @shared(%x: tensor<300x8xf16>, %v: tensor<?x64xf16>, %i: tensor<?x1xi32>, %p: tensor<2x4xi32>, %init: tensor<128x8xf32>) -> tensor<128x8xf32> {
  // expected-error @below {{whose CTAs share tiles, but how many K steps a panel has is not known; legal is split_k = 1, stream_k = false}}
  %y = nm_sparse.matmul #e storage = #nm_sparse.ragged<#e> indexing_maps = #maps
    config = #nm_tile.schedule<tile = [16, 64, 32], product = mma<warps = [1, 4]>, transfers = {x = gather, values = copy, index = rows}, pipeline = async_groups<stages = 3>, grid = flat<split_k = 2>>
    ins(%x, %v, %i, %p : tensor<300x8xf16>, tensor<?x64xf16>, tensor<?x1xi32>, tensor<2x4xi32>) outs(%init : tensor<128x8xf32>) -> tensor<128x8xf32>
  return %y : tensor<128x8xf32>
}
