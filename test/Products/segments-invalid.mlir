// RUN: nm-opt %s --nm-sparse-tile --split-input-file --verify-diagnostics

#x = affine_map<(m, n, k) -> (k, m)>
#w = affine_map<(m, n, k) -> (k, n)>
#y = affine_map<(m, n, k) -> (m, n)>

func.func @half_a_group(%x: tensor<128x16xf16>, %v: tensor<3x4x512xf16>, %b: tensor<3x4x32xi32>, %init: tensor<16x96xf32>) -> tensor<16x96xf32> {
  // expected-error @below {{has a schedule with segments = true and K steps of 16 kept rows, which the 4 lanes of each of 1 shares do not divide; legal are multiples of 32}}
  %0 = nm_sparse.matmul #nm_sparse.encoding<8:16> storage = #nm_sparse.bitmap<#nm_sparse.encoding<8:16>> indexing_maps = [#x, #w, #y]
    config = #nm_tile.schedule<tile = [16, 64, 16], product = wgmma_expand<warps = 4, segments = true>, transfers = {x = bulk, values = bulk, index = bulk}, pipeline = ring<stages = 2, producers = 4>>
    ins(%x, %v, %b : tensor<128x16xf16>, tensor<3x4x512xf16>, tensor<3x4x32xi32>) outs(%init : tensor<16x96xf32>) -> tensor<16x96xf32>
  return %0 : tensor<16x96xf32>
}

// -----

#x = affine_map<(m, n, k) -> (m, k)>
#w = affine_map<(m, n, k) -> (k, n)>
#y = affine_map<(m, n, k) -> (m, n)>

func.func @token_major(%x: tensor<16x128xf16>, %v: tensor<3x4x512xf16>, %b: tensor<3x4x32xi32>, %init: tensor<16x96xf32>) -> tensor<16x96xf32> {
  // expected-error @below {{has a schedule with segments = true, which needs feature-major activations, but 'tensor<16x128xf16>' is token-major; legal is segments = false}}
  %0 = nm_sparse.matmul #nm_sparse.encoding<8:16> storage = #nm_sparse.bitmap<#nm_sparse.encoding<8:16>> indexing_maps = [#x, #w, #y]
    config = #nm_tile.schedule<tile = [16, 64, 32], product = wgmma_expand<warps = 4, segments = true>, transfers = {x = bulk, values = bulk, index = bulk}, pipeline = ring<stages = 2, producers = 4>>
    ins(%x, %v, %b : tensor<16x128xf16>, tensor<3x4x512xf16>, tensor<3x4x32xi32>) outs(%init : tensor<16x96xf32>) -> tensor<16x96xf32>
  return %0 : tensor<16x96xf32>
}

// -----

#x = affine_map<(m, n, k) -> (k, m)>
#w = affine_map<(m, n, k) -> (k, n)>
#y = affine_map<(m, n, k) -> (m, n)>

func.func @half_a_group_at_the_end(%x: tensor<96x16xf16>, %v: tensor<3x3x512xf16>, %b: tensor<3x3x32xi32>, %init: tensor<16x96xf32>) -> tensor<16x96xf32> {
  // expected-error @below {{has a schedule with segments = true, which needs a multiple of 64 rows of activations, but 'tensor<96x16xf16>' has 96; legal is segments = false}}
  %0 = nm_sparse.matmul #nm_sparse.encoding<8:16> storage = #nm_sparse.bitmap<#nm_sparse.encoding<8:16>> indexing_maps = [#x, #w, #y]
    config = #nm_tile.schedule<tile = [16, 64, 32], product = wgmma_expand<warps = 4, segments = true>, transfers = {x = bulk, values = bulk, index = bulk}, pipeline = ring<stages = 2, producers = 4>>
    ins(%x, %v, %b : tensor<96x16xf16>, tensor<3x3x512xf16>, tensor<3x3x32xi32>) outs(%init : tensor<16x96xf32>) -> tensor<16x96xf32>
  return %0 : tensor<16x96xf32>
}

// -----

#x = affine_map<(b, m, n, k) -> (b, k, m)>
#w = affine_map<(b, m, n, k) -> (b, k, n)>
#y = affine_map<(b, m, n, k) -> (b, m, n)>

func.func @batches(%x: tensor<2x128x16xf16>, %v: tensor<2x3x4x512xf16>, %b: tensor<2x3x4x32xi32>, %init: tensor<2x16x96xf32>) -> tensor<2x16x96xf32> {
  // expected-error @below {{has a schedule with segments = true, which needs a product without batches, but 'tensor<2x128x16xf16>' has them; legal is segments = false}}
  %0 = nm_sparse.matmul #nm_sparse.encoding<8:16> storage = #nm_sparse.bitmap<#nm_sparse.encoding<8:16>> indexing_maps = [#x, #w, #y]
    config = #nm_tile.schedule<tile = [16, 64, 32], product = wgmma_expand<warps = 4, segments = true>, transfers = {x = bulk, values = bulk, index = bulk}, pipeline = ring<stages = 2, producers = 4>>
    ins(%x, %v, %b : tensor<2x128x16xf16>, tensor<2x3x4x512xf16>, tensor<2x3x4x32xi32>) outs(%init : tensor<2x16x96xf32>) -> tensor<2x16x96xf32>
  return %0 : tensor<2x16x96xf32>
}

// -----

#x = affine_map<(m, n, k) -> (k, m)>
#w = affine_map<(m, n, k) -> (k, n)>
#y = affine_map<(m, n, k) -> (m, n)>

func.func @long_segments(%x: tensor<768x24xf16>, %v: tensor<2x8x2048xf16>, %b: tensor<2x8x96xi32>, %init: tensor<24x64xf32>) -> tensor<24x64xf32> {
  // expected-error @below {{has a schedule with segments = true, whose K steps have at least 384 rows of #nm_sparse.encoding<4:6>, 96 for each of 4 lanes of 1 shares, where at most 256 can be copied; legal is segments = false}}
  %0 = nm_sparse.matmul #nm_sparse.encoding<4:6> storage = #nm_sparse.bitmap<#nm_sparse.encoding<4:6>> indexing_maps = [#x, #w, #y]
    config = #nm_tile.schedule<tile = [24, 64, 64], product = wgmma_expand<warps = 4, segments = true>, transfers = {x = bulk, values = bulk, index = bulk}, pipeline = ring<stages = 2, producers = 4>>
    ins(%x, %v, %b : tensor<768x24xf16>, tensor<2x8x2048xf16>, tensor<2x8x96xi32>) outs(%init : tensor<24x64xf32>) -> tensor<24x64xf32>
  return %0 : tensor<24x64xf32>
}
