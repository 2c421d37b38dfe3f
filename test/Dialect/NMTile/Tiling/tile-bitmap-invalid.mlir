// RUN: nm-opt %s --split-input-file --verify-diagnostics --nm-sparse-tile

#x = affine_map<(m, n, k) -> (m, k)>
#w = affine_map<(m, n, k) -> (k, n)>
#y = affine_map<(m, n, k) -> (m, n)>

func.func @mma(%x: tensor<16x128xf16>, %v: tensor<3x4x512xf16>, %b: tensor<3x4x32xi32>, %init: tensor<16x96xf32>) -> tensor<16x96xf32> {
  // expected-error @below {{has a schedule with product = mma, which reads weights as values and positions, but storage = #nm_sparse.bitmap<#nm_sparse.encoding<8:16>>}}
  %0 = nm_sparse.matmul #nm_sparse.encoding<8:16> storage = #nm_sparse.bitmap<#nm_sparse.encoding<8:16>> indexing_maps = [#x, #w, #y]
    config = #nm_tile.schedule<tile = [16, 32, 16], product = mma<warps = [1, 1]>, pipeline = async_groups<stages = 2>>
    ins(%x, %v, %b : tensor<16x128xf16>, tensor<3x4x512xf16>, tensor<3x4x32xi32>) outs(%init : tensor<16x96xf32>) -> tensor<16x96xf32>
  return %0 : tensor<16x96xf32>
}

// -----

#x = affine_map<(m, n, k) -> (m, k)>
#w = affine_map<(m, n, k) -> (k, n)>
#y = affine_map<(m, n, k) -> (m, n)>

func.func @canonical(%x: tensor<1x128xf16>, %v: tensor<64x96xf16>, %i: tensor<64x96xi8>, %init: tensor<1x96xf32>) -> tensor<1x96xf32> {
  // expected-error @below {{has a schedule with product = dot, which reads weights that are stored as bitmaps, but values and positions}}
  %0 = nm_sparse.matmul #nm_sparse.encoding<8:16> indexing_maps = [#x, #w, #y]
    config = #nm_tile.schedule<tile = [1, 32, 16], product = dot<warps = 1>, transfers = {x = direct, values = direct, index = direct}, pipeline = sequential>
    ins(%x, %v, %i : tensor<1x128xf16>, tensor<64x96xf16>, tensor<64x96xi8>) outs(%init : tensor<1x96xf32>) -> tensor<1x96xf32>
  return %0 : tensor<1x96xf32>
}

// -----

#x = affine_map<(m, n, k) -> (m, k)>
#w = affine_map<(m, n, k) -> (k, n)>
#y = affine_map<(m, n, k) -> (m, n)>

func.func @half_a_tile(%x: tensor<1x128xf16>, %v: tensor<3x4x512xf16>, %b: tensor<3x4x32xi32>, %init: tensor<1x96xf32>) -> tensor<1x96xf32> {
  // expected-error @below {{has a schedule with tile = [1, 32, 8], but a weight in tiles of 32 outputs and 16 kept rows; legal are multiples of them}}
  %0 = nm_sparse.matmul #nm_sparse.encoding<8:16> storage = #nm_sparse.bitmap<#nm_sparse.encoding<8:16>> indexing_maps = [#x, #w, #y]
    config = #nm_tile.schedule<tile = [1, 32, 8], product = dot<warps = 1>, transfers = {x = direct, values = direct, index = direct}, pipeline = sequential>
    ins(%x, %v, %b : tensor<1x128xf16>, tensor<3x4x512xf16>, tensor<3x4x32xi32>) outs(%init : tensor<1x96xf32>) -> tensor<1x96xf32>
  return %0 : tensor<1x96xf32>
}

// -----

#x = affine_map<(m, n, k) -> (m, k)>
#w = affine_map<(m, n, k) -> (k, n)>
#y = affine_map<(m, n, k) -> (m, n)>

func.func @integers_of_40_tokens(%x: tensor<1x128xi8>, %v: tensor<3x4x512xi8>, %b: tensor<3x4x32xi32>, %init: tensor<1x96xi32>) -> tensor<1x96xi32> {
  // expected-error @below {{has a schedule with product = wgmma_expand and tiles of 40 tokens; legal with 'i8' are multiples of 16, and 8 and 24}}
  %0 = nm_sparse.matmul #nm_sparse.encoding<8:16> storage = #nm_sparse.bitmap<#nm_sparse.encoding<8:16>> indexing_maps = [#x, #w, #y]
    config = #nm_tile.schedule<tile = [40, 64, 32], product = wgmma_expand<warps = 4>, transfers = {x = bulk, values = bulk, index = bulk}, pipeline = ring<stages = 2, producers = 4>>
    ins(%x, %v, %b : tensor<1x128xi8>, tensor<3x4x512xi8>, tensor<3x4x32xi32>) outs(%init : tensor<1x96xi32>) -> tensor<1x96xi32>
  return %0 : tensor<1x96xi32>
}

// -----

#x = affine_map<(m, n, k) -> (m, k)>
#w = affine_map<(m, n, k) -> (k, n)>
#y = affine_map<(m, n, k) -> (m, n)>

// A tile of whole windows has 144 rows, which products of 32 do not divide.
func.func @half_a_product(%x: tensor<8x144xi8>, %v: tensor<2x1x2560xi8>, %b: tensor<2x1x160xi32>, %init: tensor<8x64xi32>) -> tensor<8x64xi32> {
  // expected-error @below {{has a schedule with product = wgmma_expand and K steps of 144 rows; legal with 'i8' are multiples of 32}}
  %0 = nm_sparse.matmul #nm_sparse.encoding<5:9> storage = #nm_sparse.bitmap<#nm_sparse.encoding<5:9>> indexing_maps = [#x, #w, #y]
    config = #nm_tile.schedule<tile = [8, 64, 80], product = wgmma_expand<warps = 4>, transfers = {x = bulk, values = bulk, index = bulk}, pipeline = ring<stages = 2, producers = 4>>
    ins(%x, %v, %b : tensor<8x144xi8>, tensor<2x1x2560xi8>, tensor<2x1x160xi32>) outs(%init : tensor<8x64xi32>) -> tensor<8x64xi32>
  return %0 : tensor<8x64xi32>
}

// -----

#x = affine_map<(m, n, k) -> (k, m)>
#w = affine_map<(m, n, k) -> (k, n)>
#y = affine_map<(m, n, k) -> (m, n)>

func.func @feature_major_bytes(%x: tensor<128x16xi8>, %v: tensor<2x4x512xi8>, %b: tensor<2x4x32xi32>, %init: tensor<16x64xi32>) -> tensor<16x64xi32> {
  // expected-error @below {{has a schedule with product = wgmma_expand, whose 8-bit activations must be token-major, but 'tensor<128x16xi8>' is feature-major; legal is product = dot}}
  %0 = nm_sparse.matmul #nm_sparse.encoding<8:16> storage = #nm_sparse.bitmap<#nm_sparse.encoding<8:16>> indexing_maps = [#x, #w, #y]
    config = #nm_tile.schedule<tile = [16, 64, 64], product = wgmma_expand<warps = 4>, transfers = {x = bulk, values = bulk, index = bulk}, pipeline = ring<stages = 2, producers = 4>>
    ins(%x, %v, %b : tensor<128x16xi8>, tensor<2x4x512xi8>, tensor<2x4x32xi32>) outs(%init : tensor<16x64xi32>) -> tensor<16x64xi32>
  return %0 : tensor<16x64xi32>
}

// -----

#x = affine_map<(m, n, k) -> (m, k)>
#w = affine_map<(m, n, k) -> (k, n)>
#y = affine_map<(m, n, k) -> (m, n)>

func.func @shares_of_bytes(%x: tensor<16x128xi8>, %v: tensor<2x4x512xi8>, %b: tensor<2x4x32xi32>, %init: tensor<16x64xi32>) -> tensor<16x64xi32> {
  // expected-error @below {{has a schedule with K steps of 4 tiles of 32 rows, which cannot be divided into 2 shares of a multiple of 128 rows}}
  %0 = nm_sparse.matmul #nm_sparse.encoding<8:16> storage = #nm_sparse.bitmap<#nm_sparse.encoding<8:16>> indexing_maps = [#x, #w, #y]
    config = #nm_tile.schedule<tile = [16, 64, 64], product = wgmma_expand<warps = 8, shares = 2>, transfers = {x = bulk, values = bulk, index = bulk}, pipeline = ring<stages = 2, producers = 4>>
    ins(%x, %v, %b : tensor<16x128xi8>, tensor<2x4x512xi8>, tensor<2x4x32xi32>) outs(%init : tensor<16x64xi32>) -> tensor<16x64xi32>
  return %0 : tensor<16x64xi32>
}

// -----

#x = affine_map<(m, n, k) -> (k, m)>
#w = affine_map<(m, n, k) -> (k, n)>
#y = affine_map<(m, n, k) -> (m, n)>

func.func @segments_of_bytes(%x: tensor<128x16xi8>, %v: tensor<2x4x512xi8>, %b: tensor<2x4x32xi32>, %init: tensor<16x64xi32>) -> tensor<16x64xi32> {
  // expected-error @below {{has a schedule with segments = true, which is for elements of 16 bits, but operands of 'i8'; legal is segments = false}}
  %0 = nm_sparse.matmul #nm_sparse.encoding<8:16> storage = #nm_sparse.bitmap<#nm_sparse.encoding<8:16>> indexing_maps = [#x, #w, #y]
    config = #nm_tile.schedule<tile = [16, 64, 64], product = wgmma_expand<warps = 4, segments = true>, transfers = {x = bulk, values = bulk, index = bulk}, pipeline = ring<stages = 2, producers = 4>>
    ins(%x, %v, %b : tensor<128x16xi8>, tensor<2x4x512xi8>, tensor<2x4x32xi32>) outs(%init : tensor<16x64xi32>) -> tensor<16x64xi32>
  return %0 : tensor<16x64xi32>
}

// -----

#x = affine_map<(m, n, k) -> (m, k)>
#w = affine_map<(m, n, k) -> (k, n)>
#y = affine_map<(m, n, k) -> (m, n)>

func.func @expand_f32(%x: tensor<16x128xf32>, %v: tensor<3x4x512xf32>, %b: tensor<3x4x32xi32>, %init: tensor<16x96xf32>) -> tensor<16x96xf32> {
  // expected-error @below {{has a schedule with product = wgmma_expand, which multiplies f16, bf16, e4m3, e5m2 or i8, but operands of 'f32'}}
  %0 = nm_sparse.matmul #nm_sparse.encoding<8:16> storage = #nm_sparse.bitmap<#nm_sparse.encoding<8:16>> indexing_maps = [#x, #w, #y]
    config = #nm_tile.schedule<tile = [16, 64, 32], product = wgmma_expand<warps = 4>, transfers = {x = bulk, values = bulk, index = bulk}, pipeline = ring<stages = 2, producers = 4>>
    ins(%x, %v, %b : tensor<16x128xf32>, tensor<3x4x512xf32>, tensor<3x4x32xi32>) outs(%init : tensor<16x96xf32>) -> tensor<16x96xf32>
  return %0 : tensor<16x96xf32>
}

// -----

#x = affine_map<(m, n, k) -> (m, k)>
#w = affine_map<(m, n, k) -> (k, n)>
#y = affine_map<(m, n, k) -> (m, n)>

// 16 warps that multiply and 4 that copy.
func.func @registers(%x: tensor<256x128xf16>, %v: tensor<8x4x512xf16>, %b: tensor<8x4x32xi32>, %init: tensor<256x256xf32>) -> tensor<256x256xf32> {
  // expected-error @below {{has a schedule with 640 threads, whose wgmma_expand warps have at most 96 registers a thread, fewer than their 128 accumulators and 32 others; legal are smaller tiles, or fewer warps}}
  %0 = nm_sparse.matmul #nm_sparse.encoding<8:16> storage = #nm_sparse.bitmap<#nm_sparse.encoding<8:16>> indexing_maps = [#x, #w, #y]
    config = #nm_tile.schedule<tile = [256, 256, 32], product = wgmma_expand<warps = 16>, transfers = {x = bulk, values = bulk, index = bulk}, pipeline = ring<stages = 2, producers = 4>>
    ins(%x, %v, %b : tensor<256x128xf16>, tensor<8x4x512xf16>, tensor<8x4x32xi32>) outs(%init : tensor<256x256xf32>) -> tensor<256x256xf32>
  return %0 : tensor<256x256xf32>
}

// -----

#x = affine_map<(m, n, k) -> (m, k)>
#w = affine_map<(m, n, k) -> (k, n)>
#y = affine_map<(m, n, k) -> (m, n)>

func.func @half_a_line(%x: tensor<16x128xf16>, %v: tensor<3x4x512xf16>, %b: tensor<3x4x32xi32>, %init: tensor<16x96xf32>) -> tensor<16x96xf32> {
  // expected-error @below {{has a schedule with K steps of 2 tiles of 32 rows, which cannot be divided into 2 shares of a multiple of 64 rows}}
  %0 = nm_sparse.matmul #nm_sparse.encoding<8:16> storage = #nm_sparse.bitmap<#nm_sparse.encoding<8:16>> indexing_maps = [#x, #w, #y]
    config = #nm_tile.schedule<tile = [16, 64, 32], product = wgmma_expand<warps = 8, shares = 2>, transfers = {x = bulk, values = bulk, index = bulk}, pipeline = ring<stages = 2, producers = 4>>
    ins(%x, %v, %b : tensor<16x128xf16>, tensor<3x4x512xf16>, tensor<3x4x32xi32>) outs(%init : tensor<16x96xf32>) -> tensor<16x96xf32>
  return %0 : tensor<16x96xf32>
}

// -----

#x = affine_map<(m, n, k) -> (k, m)>
#w = affine_map<(m, n, k) -> (k, n)>
#y = affine_map<(m, n, k) -> (m, n)>

func.func @long_steps(%x: tensor<512x16xf16>, %v: tensor<3x16x512xf16>, %b: tensor<3x16x32xi32>, %init: tensor<16x96xf32>) -> tensor<16x96xf32> {
  // expected-error @below {{has a schedule with x = bulk, whose K steps must be at most 256 rows of feature-major activations, but tile = [16, 64, 160], which makes steps of 320}}
  %0 = nm_sparse.matmul #nm_sparse.encoding<8:16> storage = #nm_sparse.bitmap<#nm_sparse.encoding<8:16>> indexing_maps = [#x, #w, #y]
    config = #nm_tile.schedule<tile = [16, 64, 160], product = wgmma_expand<warps = 4>, transfers = {x = bulk, values = bulk, index = bulk}, pipeline = ring<stages = 2, producers = 4>>
    ins(%x, %v, %b : tensor<512x16xf16>, tensor<3x16x512xf16>, tensor<3x16x32xi32>) outs(%init : tensor<16x96xf32>) -> tensor<16x96xf32>
  return %0 : tensor<16x96xf32>
}

// -----

#x = affine_map<(m, n, k) -> (k, m)>
#w = affine_map<(m, n, k) -> (k, n)>
#y = affine_map<(m, n, k) -> (m, n)>

func.func @one_token(%x: tensor<128x1xf16>, %v: tensor<3x4x512xf16>, %b: tensor<3x4x32xi32>, %init: tensor<1x96xf32>) -> tensor<1x96xf32> {
  // expected-error @below {{has a schedule with x = bulk, but 'tensor<128x1xf16>' has rows of a single token, which are no rows to the tensor memory accelerator; legal is x = direct}}
  %0 = nm_sparse.matmul #nm_sparse.encoding<8:16> storage = #nm_sparse.bitmap<#nm_sparse.encoding<8:16>> indexing_maps = [#x, #w, #y]
    config = #nm_tile.schedule<tile = [8, 64, 32], product = wgmma_expand<warps = 4>, transfers = {x = bulk, values = bulk, index = bulk}, pipeline = ring<stages = 2, producers = 4>>
    ins(%x, %v, %b : tensor<128x1xf16>, tensor<3x4x512xf16>, tensor<3x4x32xi32>) outs(%init : tensor<1x96xf32>) -> tensor<1x96xf32>
  return %0 : tensor<1x96xf32>
}

// -----

#x = affine_map<(m, n, k) -> (m, k)>
#w = affine_map<(m, n, k) -> (k, n)>
#y = affine_map<(m, n, k) -> (m, n)>

func.func @long_step(%x: tensor<1x8192xf16>, %v: tensor<4x256x512xf16>, %b: tensor<4x256x32xi32>, %init: tensor<1x128xf32>) -> tensor<1x128xf32> {
  // expected-error @below {{has a schedule with tile = [1, 32, 4112], whose K steps of 4112 rows only free elements may have; legal are 4096}}
  %0 = nm_sparse.matmul #nm_sparse.encoding<8:16> storage = #nm_sparse.bitmap<#nm_sparse.encoding<8:16>> indexing_maps = [#x, #w, #y]
    config = #nm_tile.schedule<tile = [1, 32, 4112], product = dot<warps = 1>, transfers = {x = direct, values = direct, index = direct}, pipeline = sequential>
    ins(%x, %v, %b : tensor<1x8192xf16>, tensor<4x256x512xf16>, tensor<4x256x32xi32>) outs(%init : tensor<1x128xf32>) -> tensor<1x128xf32>
  return %0 : tensor<1x128xf32>
}

// -----

#x = affine_map<(m, n, k) -> (m, k)>
#w = affine_map<(m, n, k) -> (k, n)>
#y = affine_map<(m, n, k) -> (m, n)>

func.func @half_a_free_tile(%x: tensor<1x512xf16>, %v: tensor<?xf16>, %b: tensor<4x2x296xi32>, %init: tensor<1x128xf32>) -> tensor<1x128xf32> {
  // expected-error @below {{has a schedule with tile = [1, 32, 128], but a weight in tiles of 32 outputs and 256 rows; legal are multiples of them}}
  %0 = nm_sparse.matmul #nm_sparse.encoding<free> storage = #nm_sparse.bitmap<#nm_sparse.encoding<free>> indexing_maps = [#x, #w, #y]
    config = #nm_tile.schedule<tile = [1, 32, 128], product = dot<warps = 1>, transfers = {x = direct, values = direct, index = direct}, pipeline = sequential>
    ins(%x, %v, %b : tensor<1x512xf16>, tensor<?xf16>, tensor<4x2x296xi32>) outs(%init : tensor<1x128xf32>) -> tensor<1x128xf32>
  return %0 : tensor<1x128xf32>
}

// -----

#x = affine_map<(m, n, k) -> (m, k)>
#w = affine_map<(m, n, k) -> (k, n)>
#y = affine_map<(m, n, k) -> (m, n)>

func.func @free_expand(%x: tensor<64x512xf16>, %v: tensor<?xf16>, %b: tensor<4x2x296xi32>, %init: tensor<64x128xf32>) -> tensor<64x128xf32> {
  // expected-error @below {{has a schedule with product = wgmma_expand, which multiplies n:m weights, but #nm_sparse.encoding<free>; legal is product = dot}}
  %0 = nm_sparse.matmul #nm_sparse.encoding<free> storage = #nm_sparse.bitmap<#nm_sparse.encoding<free>> indexing_maps = [#x, #w, #y]
    config = #nm_tile.schedule<tile = [64, 128, 256], product = wgmma_expand<warps = 8>, transfers = {x = bulk, values = bulk, index = bulk}, pipeline = ring<stages = 3, producers = 4>>
    ins(%x, %v, %b : tensor<64x512xf16>, tensor<?xf16>, tensor<4x2x296xi32>) outs(%init : tensor<64x128xf32>) -> tensor<64x128xf32>
  return %0 : tensor<64x128xf32>
}

// -----

#x = affine_map<(m, n, k) -> (m, k)>
#w = affine_map<(m, n, k) -> (k, n)>
#y = affine_map<(m, n, k) -> (m, n)>

func.func @sparse_pattern(%x: tensor<16x128xf16>, %v: tensor<2x4x512xf16>, %b: tensor<2x4x32xi32>, %init: tensor<16x64xf32>) -> tensor<16x64xf32> {
  // expected-error @below {{has a schedule with product = wgmma_sp, which multiplies 2:4 weights, but #nm_sparse.encoding<8:16>; legal is product = wgmma_expand}}
  %0 = nm_sparse.matmul #nm_sparse.encoding<8:16> storage = #nm_sparse.bitmap<#nm_sparse.encoding<8:16>> indexing_maps = [#x, #w, #y]
    config = #nm_tile.schedule<tile = [16, 64, 32], product = wgmma_sp<warps = 4>, transfers = {x = bulk, values = bulk, index = bulk}, pipeline = ring<stages = 2, producers = 4>>
    ins(%x, %v, %b : tensor<16x128xf16>, tensor<2x4x512xf16>, tensor<2x4x32xi32>) outs(%init : tensor<16x64xf32>) -> tensor<16x64xf32>
  return %0 : tensor<16x64xf32>
}

// -----

#x = affine_map<(m, n, k) -> (m, k)>
#w = affine_map<(m, n, k) -> (k, n)>
#y = affine_map<(m, n, k) -> (m, n)>

func.func @sparse_f32(%x: tensor<16x128xf32>, %v: tensor<2x4x512xf32>, %b: tensor<2x4x32xi32>, %init: tensor<16x64xf32>) -> tensor<16x64xf32> {
  // expected-error @below {{has a schedule with product = wgmma_sp, which multiplies f16, bf16, e4m3, e5m2 or i8, but operands of 'f32'}}
  %0 = nm_sparse.matmul #nm_sparse.encoding<2:4> storage = #nm_sparse.bitmap<#nm_sparse.encoding<2:4>> indexing_maps = [#x, #w, #y]
    config = #nm_tile.schedule<tile = [16, 64, 32], product = wgmma_sp<warps = 4>, transfers = {x = bulk, values = bulk, index = bulk}, pipeline = ring<stages = 2, producers = 4>>
    ins(%x, %v, %b : tensor<16x128xf32>, tensor<2x4x512xf32>, tensor<2x4x32xi32>) outs(%init : tensor<16x64xf32>) -> tensor<16x64xf32>
  return %0 : tensor<16x64xf32>
}

// -----

#x = affine_map<(m, n, k) -> (m, k)>
#w = affine_map<(m, n, k) -> (k, n)>
#y = affine_map<(m, n, k) -> (m, n)>

func.func @sparse_integers(%x: tensor<16x128xi8>, %v: tensor<2x4x512xi8>, %b: tensor<2x4x32xi32>, %init: tensor<16x64xi32>) -> tensor<16x64xi32> {
  // expected-error @below {{has a schedule with product = wgmma_sp and tiles of 40 tokens; legal with 'i8' are multiples of 16, and 8 and 24}}
  %0 = nm_sparse.matmul #nm_sparse.encoding<2:4> storage = #nm_sparse.bitmap<#nm_sparse.encoding<2:4>> indexing_maps = [#x, #w, #y]
    config = #nm_tile.schedule<tile = [40, 64, 64], product = wgmma_sp<warps = 4>, transfers = {x = bulk, values = bulk, index = bulk}, pipeline = ring<stages = 2, producers = 4>>
    ins(%x, %v, %b : tensor<16x128xi8>, tensor<2x4x512xi8>, tensor<2x4x32xi32>) outs(%init : tensor<16x64xi32>) -> tensor<16x64xi32>
  return %0 : tensor<16x64xi32>
}

// -----

#x = affine_map<(m, n, k) -> (m, k)>
#w = affine_map<(m, n, k) -> (k, n)>
#y = affine_map<(m, n, k) -> (m, n)>

func.func @sparse_bytes(%x: tensor<16x128xi8>, %v: tensor<2x4x512xi8>, %b: tensor<2x4x32xi32>, %init: tensor<16x64xi32>) -> tensor<16x64xi32> {
  // expected-error @below {{has a schedule with product = wgmma_sp and K steps of 64 rows; legal are multiples of 128}}
  %0 = nm_sparse.matmul #nm_sparse.encoding<2:4> storage = #nm_sparse.bitmap<#nm_sparse.encoding<2:4>> indexing_maps = [#x, #w, #y]
    config = #nm_tile.schedule<tile = [16, 64, 32], product = wgmma_sp<warps = 4>, transfers = {x = bulk, values = bulk, index = bulk}, pipeline = ring<stages = 2, producers = 4>>
    ins(%x, %v, %b : tensor<16x128xi8>, tensor<2x4x512xi8>, tensor<2x4x32xi32>) outs(%init : tensor<16x64xi32>) -> tensor<16x64xi32>
  return %0 : tensor<16x64xi32>
}

// -----

#x = affine_map<(m, n, k) -> (k, m)>
#w = affine_map<(m, n, k) -> (k, n)>
#y = affine_map<(m, n, k) -> (m, n)>

func.func @sparse_feature_major(%x: tensor<128x16xi8>, %v: tensor<2x4x512xi8>, %b: tensor<2x4x32xi32>, %init: tensor<16x64xi32>) -> tensor<16x64xi32> {
  // expected-error @below {{has a schedule with product = wgmma_sp, whose 8-bit activations must be token-major, but 'tensor<128x16xi8>' is feature-major; legal is product = dot}}
  %0 = nm_sparse.matmul #nm_sparse.encoding<2:4> storage = #nm_sparse.bitmap<#nm_sparse.encoding<2:4>> indexing_maps = [#x, #w, #y]
    config = #nm_tile.schedule<tile = [16, 64, 64], product = wgmma_sp<warps = 4>, transfers = {x = bulk, values = bulk, index = bulk}, pipeline = ring<stages = 2, producers = 4>>
    ins(%x, %v, %b : tensor<128x16xi8>, tensor<2x4x512xi8>, tensor<2x4x32xi32>) outs(%init : tensor<16x64xi32>) -> tensor<16x64xi32>
  return %0 : tensor<16x64xi32>
}

// -----

#x = affine_map<(m, n, k) -> (m, k)>
#w = affine_map<(m, n, k) -> (k, n)>
#y = affine_map<(m, n, k) -> (m, n)>

func.func @sparse_rows(%x: tensor<16x128xf16>, %v: tensor<2x4x512xf16>, %b: tensor<2x4x32xi32>, %init: tensor<16x64xf32>) -> tensor<16x64xf32> {
  // expected-error @below {{has a schedule with product = wgmma_sp and K steps of 32 rows; legal are multiples of 64}}
  %0 = nm_sparse.matmul #nm_sparse.encoding<2:4> storage = #nm_sparse.bitmap<#nm_sparse.encoding<2:4>> indexing_maps = [#x, #w, #y]
    config = #nm_tile.schedule<tile = [16, 64, 16], product = wgmma_sp<warps = 4>, transfers = {x = bulk, values = bulk, index = bulk}, pipeline = ring<stages = 2, producers = 4>>
    ins(%x, %v, %b : tensor<16x128xf16>, tensor<2x4x512xf16>, tensor<2x4x32xi32>) outs(%init : tensor<16x64xf32>) -> tensor<16x64xf32>
  return %0 : tensor<16x64xf32>
}

// -----

#x = affine_map<(m, n, k) -> (m, k)>
#w = affine_map<(m, n, k) -> (k, n)>
#y = affine_map<(m, n, k) -> (m, n)>

func.func @cluster_tiles(%x: tensor<16x128xf16>, %v: tensor<6x4x512xf16>, %b: tensor<6x4x32xi32>, %init: tensor<16x192xf32>) -> tensor<16x192xf32> {
  // expected-error @below {{has a schedule with cluster = 2, but 3 tiles of 64 outputs; legal is a grid without clusters}}
  %0 = nm_sparse.matmul #nm_sparse.encoding<2:4> storage = #nm_sparse.bitmap<#nm_sparse.encoding<2:4>> indexing_maps = [#x, #w, #y]
    config = #nm_tile.schedule<tile = [16, 64, 32], product = wgmma_sp<warps = 4>, transfers = {x = bulk, values = bulk, index = bulk}, pipeline = ring<stages = 2, producers = 4>, grid = flat<cluster = 2>>
    ins(%x, %v, %b : tensor<16x128xf16>, tensor<6x4x512xf16>, tensor<6x4x32xi32>) outs(%init : tensor<16x192xf32>) -> tensor<16x192xf32>
  return %0 : tensor<16x192xf32>
}

// -----

#x = affine_map<(m, n, k) -> (m, k)>
#w = affine_map<(m, n, k) -> (k, n)>
#y = affine_map<(m, n, k) -> (m, n)>

func.func @cluster_tokens(%x: tensor<48x128xf16>, %v: tensor<4x4x512xf16>, %b: tensor<4x4x32xi32>, %init: tensor<48x128xf32>) -> tensor<48x128xf32> {
  // expected-error @below {{has a schedule with cluster = 2, whose CTAs cannot share the copy of 24 tokens; legal are multiples of 8 for each}}
  %0 = nm_sparse.matmul #nm_sparse.encoding<2:4> storage = #nm_sparse.bitmap<#nm_sparse.encoding<2:4>> indexing_maps = [#x, #w, #y]
    config = #nm_tile.schedule<tile = [24, 64, 32], product = wgmma_sp<warps = 4>, transfers = {x = bulk, values = bulk, index = bulk}, pipeline = ring<stages = 2, producers = 4>, grid = flat<cluster = 2>>
    ins(%x, %v, %b : tensor<48x128xf16>, tensor<4x4x512xf16>, tensor<4x4x32xi32>) outs(%init : tensor<48x128xf32>) -> tensor<48x128xf32>
  return %0 : tensor<48x128xf32>
}

// -----

#x = affine_map<(m, n, k) -> (m, k)>
#w = affine_map<(m, n, k) -> (k, n)>
#y = affine_map<(m, n, k) -> (m, n)>
#t = affine_map<(m, n, k) -> (k, m)>

func.func @cluster_segments(%x: tensor<128x16xf16>, %v: tensor<4x4x512xf16>, %b: tensor<4x4x32xi32>, %init: tensor<16x128xf32>) -> tensor<16x128xf32> {
  // expected-error @below {{has a schedule with cluster = 2, which needs x = bulk, pipeline = ring<...>, and a product without segments}}
  %0 = nm_sparse.matmul #nm_sparse.encoding<8:16> storage = #nm_sparse.bitmap<#nm_sparse.encoding<8:16>> indexing_maps = [#t, #w, #y]
    config = #nm_tile.schedule<tile = [16, 64, 64], product = wgmma_expand<warps = 4, segments = true>, transfers = {x = bulk, values = bulk, index = bulk}, pipeline = ring<stages = 2, producers = 4>, grid = flat<cluster = 2>>
    ins(%x, %v, %b : tensor<128x16xf16>, tensor<4x4x512xf16>, tensor<4x4x32xi32>) outs(%init : tensor<16x128xf32>) -> tensor<16x128xf32>
  return %0 : tensor<16x128xf32>
}

// -----

#x = affine_map<(m, n, k) -> (m, k)>
#w = affine_map<(m, n, k) -> (k, n)>
#y = affine_map<(m, n, k) -> (m, n)>

func.func @cluster_of_threads(%x: tensor<1x128xf16>, %v: tensor<2x4x512xf16>, %b: tensor<2x4x32xi32>, %init: tensor<1x64xf32>) -> tensor<1x64xf32> {
  // expected-error @below {{has a schedule with cluster = 2, which needs x = bulk, pipeline = ring<...>, and a product without segments}}
  %0 = nm_sparse.matmul #nm_sparse.encoding<8:16> storage = #nm_sparse.bitmap<#nm_sparse.encoding<8:16>> indexing_maps = [#x, #w, #y]
    config = #nm_tile.schedule<tile = [1, 32, 16], product = dot<warps = 1>, transfers = {x = direct, values = direct, index = direct}, pipeline = sequential, grid = flat<cluster = 2>>
    ins(%x, %v, %b : tensor<1x128xf16>, tensor<2x4x512xf16>, tensor<2x4x32xi32>) outs(%init : tensor<1x64xf32>) -> tensor<1x64xf32>
  return %0 : tensor<1x64xf32>
}

// -----

#x = affine_map<(m, n, k) -> (m, k)>
#w = affine_map<(m, n, k) -> (k, n)>
#y = affine_map<(m, n, k) -> (m, n)>

func.func @single_feature(%x: tensor<16x1xf16>, %v: tensor<2x1x512xf16>, %b: tensor<2x1x32xi32>, %init: tensor<16x64xf32>) -> tensor<16x64xf32> {
  // expected-error @below {{'tensor<16x1xf16>' has rows of a single feature, which are no rows to the tensor memory accelerator; legal is x = direct}}
  %0 = nm_sparse.matmul #nm_sparse.encoding<2:4> storage = #nm_sparse.bitmap<#nm_sparse.encoding<2:4>> indexing_maps = [#x, #w, #y]
    config = #nm_tile.schedule<tile = [16, 64, 32], product = wgmma_sp<warps = 4>, transfers = {x = bulk, values = bulk, index = bulk}, pipeline = ring<stages = 2, producers = 4>>
    ins(%x, %v, %b : tensor<16x1xf16>, tensor<2x1x512xf16>, tensor<2x1x32xi32>) outs(%init : tensor<16x64xf32>) -> tensor<16x64xf32>
  return %0 : tensor<16x64xf32>
}
