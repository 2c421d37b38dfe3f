// RUN: nm-opt %s --nm-sparse-tile --split-input-file --verify-diagnostics

// expected-error @below {{mma_sp needs <warps = [tokens, outputs]>}}
#s = #nm_tile.schedule<tile = [8, 32, 32], product = mma_sp<4>, transfers = {x = copy, values = copy, index = staged}, pipeline = async_groups<stages = 2>>

// -----

// expected-error @below {{warps must be two positive counts, [tokens, outputs]}}
#s = #nm_tile.schedule<tile = [8, 32, 32], product = mma_sp<warps = [4]>, transfers = {x = copy, values = copy, index = staged}, pipeline = async_groups<stages = 2>>

// -----

// expected-error @below {{a CTA of 8 x 8 warps is larger than the 32 allowed}}
#s = #nm_tile.schedule<tile = [64, 256, 32], product = mma_sp<warps = [8, 8]>, transfers = {x = copy, values = copy, index = staged}, pipeline = async_groups<stages = 2>>

// -----

// expected-error @below {{a tile of 12 x 64 over 1 x 2 mma_sp warps must be a multiple of 8 x 64}}
#s = #nm_tile.schedule<tile = [12, 64, 32], product = mma_sp<warps = [1, 2]>, transfers = {x = copy, values = copy, index = staged}, pipeline = async_groups<stages = 2>>

// -----

// expected-error @below {{a tile of 16 x 96 over 2 x 2 mma_sp warps must be a multiple of 16 x 64}}
#s = #nm_tile.schedule<tile = [16, 96, 32], product = mma_sp<warps = [2, 2]>, transfers = {x = copy, values = copy, index = staged}, pipeline = async_groups<stages = 2>>

// -----

// expected-error @below {{mma_sp has its operands copied step by step: legal is transfers = {x = copy, values = copy, index = staged}, or bulk for all three}}
#s = #nm_tile.schedule<tile = [16, 64, 32], product = mma_sp<warps = [1, 2]>, pipeline = async_groups<stages = 2>>

// -----

// expected-error @below {{mma_sp has its operands copied step by step}}
#s = #nm_tile.schedule<tile = [16, 64, 32], product = mma_sp<warps = [1, 2]>, transfers = {x = copy, values = copy, index = resident}, pipeline = async_groups<stages = 2>>

// -----

// expected-error @below {{mma_sp has its operands copied step by step}}
#s = #nm_tile.schedule<tile = [16, 64, 32], product = mma_sp<warps = [1, 2]>, transfers = {x = copy, values = bulk, index = staged}, pipeline = ring<stages = 2, producers = 4>>

// -----

// expected-error @below {{mma_sp has its operands copied step by step}}
#s = #nm_tile.schedule<tile = [16, 64, 32], product = mma_sp<warps = [1, 2]>, transfers = {x = direct, values = direct, index = direct}, pipeline = sequential>

// -----

#x = affine_map<(m, n, k) -> (m, k)>
#w = affine_map<(m, n, k) -> (k, n)>
#y = affine_map<(m, n, k) -> (m, n)>
#e = #nm_sparse.encoding<2:4>

func.func @singles(%x: tensor<16x128xf32>, %v: tensor<2x4x512xf32>, %b: tensor<2x4x32xi32>, %init: tensor<16x64xf32>) -> tensor<16x64xf32> {
  // expected-error @below {{has a schedule with product = mma_sp, which multiplies f16, bf16, e4m3, e5m2 or i8, but operands of 'f32'}}
  %0 = nm_sparse.matmul #e storage = #nm_sparse.bitmap<#e> indexing_maps = [#x, #w, #y]
    config = #nm_tile.schedule<tile = [16, 64, 32], product = mma_sp<warps = [1, 2]>, transfers = {x = copy, values = copy, index = staged}, pipeline = async_groups<stages = 2>>
    ins(%x, %v, %b : tensor<16x128xf32>, tensor<2x4x512xf32>, tensor<2x4x32xi32>) outs(%init : tensor<16x64xf32>) -> tensor<16x64xf32>
  return %0 : tensor<16x64xf32>
}

// -----

#x = affine_map<(m, n, k) -> (m, k)>
#w = affine_map<(m, n, k) -> (k, n)>
#y = affine_map<(m, n, k) -> (m, n)>
#e = #nm_sparse.encoding<4:8>

func.func @other_windows(%x: tensor<16x128xf16>, %v: tensor<2x4x512xf16>, %b: tensor<2x4x32xi32>, %init: tensor<16x64xf32>) -> tensor<16x64xf32> {
  // expected-error @below {{has a schedule with product = mma_sp, which multiplies 2:4 weights, but #nm_sparse.encoding<4:8>; legal is product = mma_expand}}
  %0 = nm_sparse.matmul #e storage = #nm_sparse.bitmap<#e> indexing_maps = [#x, #w, #y]
    config = #nm_tile.schedule<tile = [16, 64, 32], product = mma_sp<warps = [1, 2]>, transfers = {x = copy, values = copy, index = staged}, pipeline = async_groups<stages = 2>>
    ins(%x, %v, %b : tensor<16x128xf16>, tensor<2x4x512xf16>, tensor<2x4x32xi32>) outs(%init : tensor<16x64xf32>) -> tensor<16x64xf32>
  return %0 : tensor<16x64xf32>
}

// -----

#x = affine_map<(m, n, k) -> (m, k)>
#w = affine_map<(m, n, k) -> (k, n)>
#y = affine_map<(m, n, k) -> (m, n)>
#e = #nm_sparse.encoding<2:4>

func.func @half_a_pair(%x: tensor<16x128xf16>, %v: tensor<2x4x512xf16>, %b: tensor<2x4x32xi32>, %init: tensor<16x64xf32>) -> tensor<16x64xf32> {
  // expected-error @below {{has a schedule with product = mma_sp and K steps of 96 rows; legal are multiples of 64}}
  %0 = nm_sparse.matmul #e storage = #nm_sparse.bitmap<#e> indexing_maps = [#x, #w, #y]
    config = #nm_tile.schedule<tile = [16, 64, 48], product = mma_sp<warps = [1, 2]>, transfers = {x = copy, values = copy, index = staged}, pipeline = async_groups<stages = 2>>
    ins(%x, %v, %b : tensor<16x128xf16>, tensor<2x4x512xf16>, tensor<2x4x32xi32>) outs(%init : tensor<16x64xf32>) -> tensor<16x64xf32>
  return %0 : tensor<16x64xf32>
}

// -----

#x = affine_map<(m, n, k) -> (m, k)>
#w = affine_map<(m, n, k) -> (k, n)>
#y = affine_map<(m, n, k) -> (m, n)>
#e = #nm_sparse.encoding<2:4>

func.func @canonical(%x: tensor<16x128xf16>, %v: tensor<64x64xf16>, %i: tensor<64x64xi8>, %init: tensor<16x64xf32>) -> tensor<16x64xf32> {
  // expected-error @below {{has a schedule with product = mma_sp, which reads weights that are stored as bitmaps, but values and positions}}
  %0 = nm_sparse.matmul #e indexing_maps = [#x, #w, #y]
    config = #nm_tile.schedule<tile = [16, 64, 32], product = mma_sp<warps = [1, 2]>, transfers = {x = copy, values = copy, index = staged}, pipeline = async_groups<stages = 2>>
    ins(%x, %v, %i : tensor<16x128xf16>, tensor<64x64xf16>, tensor<64x64xi8>) outs(%init : tensor<16x64xf32>) -> tensor<16x64xf32>
  return %0 : tensor<16x64xf32>
}

// -----

#x = affine_map<(m, n, k) -> (k, m)>
#w = affine_map<(m, n, k) -> (k, n)>
#y = affine_map<(m, n, k) -> (m, n)>
#e = #nm_sparse.encoding<2:4>

func.func @feature_major_bytes(%x: tensor<128x16xi8>, %v: tensor<2x4x512xi8>, %b: tensor<2x4x32xi32>, %init: tensor<16x64xi32>) -> tensor<16x64xi32> {
  // expected-error @below {{has a schedule with product = mma_sp, whose 8-bit activations must be token-major, but 'tensor<128x16xi8>' is feature-major; legal is product = dot}}
  %0 = nm_sparse.matmul #e storage = #nm_sparse.bitmap<#e> indexing_maps = [#x, #w, #y]
    config = #nm_tile.schedule<tile = [16, 64, 32], product = mma_sp<warps = [1, 2]>, transfers = {x = copy, values = copy, index = staged}, pipeline = async_groups<stages = 2>>
    ins(%x, %v, %b : tensor<128x16xi8>, tensor<2x4x512xi8>, tensor<2x4x32xi32>) outs(%init : tensor<16x64xi32>) -> tensor<16x64xi32>
  return %0 : tensor<16x64xi32>
}
