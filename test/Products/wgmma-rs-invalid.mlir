// RUN: nm-opt %s --nm-sparse-tile --split-input-file --verify-diagnostics

// expected-error @below {{wgmma_rs warps along tokens must be a multiple of the 4 of a warpgroup, got 2}}
#s = #nm_tile.schedule<tile = [128, 128, 128], product = wgmma_rs<warps = [2, 4]>, transfers = {x = gather, values = bulk, index = resident}, pipeline = ring<stages = 2, producers = 4>>

// -----

// expected-error @below {{wgmma_rs needs a multiple of 4 warps, at most 28, got 32}}
#s = #nm_tile.schedule<tile = [512, 128, 128], product = wgmma_rs<warps = [32, 1]>, transfers = {x = gather, values = bulk, index = resident}, pipeline = ring<stages = 2, producers = 4>>

// -----

// expected-error @below {{a tile of 128 tokens over 4 warpgroups must be a multiple of 64 tokens for each}}
#s = #nm_tile.schedule<tile = [128, 128, 128], product = wgmma_rs<warps = [16, 1]>, transfers = {x = gather, values = bulk, index = resident}, pipeline = ring<stages = 2, producers = 4>>

// -----

// expected-error @below {{a tile of 96 outputs over 1 warpgroups must be 64, 128, 192 or 256 outputs for each}}
#s = #nm_tile.schedule<tile = [128, 96, 128], product = wgmma_rs<warps = [4, 1]>, transfers = {x = gather, values = bulk, index = resident}, pipeline = ring<stages = 2, producers = 4>>

// -----

// expected-error @below {{a tile of 256 x 128 over 4 x 1 wgmma_rs warps has 256 accumulators in each thread, more than the 192 that registers hold}}
#s = #nm_tile.schedule<tile = [256, 128, 128], product = wgmma_rs<warps = [4, 1]>, transfers = {x = gather, values = bulk, index = resident}, pipeline = ring<stages = 2, producers = 4>>

// -----

// expected-error @below {{wgmma_rs has rows of its activations gathered, and values from the tensor memory accelerator: legal is transfers = {x = gather, values = bulk, index = resident}, or index = rows}}
#s = #nm_tile.schedule<tile = [128, 128, 128], product = wgmma_rs<warps = [4, 1]>, transfers = {x = bulk, values = bulk, index = bulk}, pipeline = ring<stages = 2, producers = 4>>

// -----

// expected-error @below {{producers beside wgmma_rs warps must be a multiple of the 4 of a warpgroup, got 2}}
#s = #nm_tile.schedule<tile = [128, 128, 128], product = wgmma_rs<warps = [4, 1]>, transfers = {x = gather, values = bulk, index = resident}, pipeline = ring<stages = 2, producers = 2>>

// -----

#x = affine_map<(m, n, k) -> (k, m)>
#w = affine_map<(m, n, k) -> (k, n)>
#y = affine_map<(m, n, k) -> (m, n)>
#e = #nm_sparse.encoding<1:2, block = [1, 128]>

func.func @halves(%x: tensor<512x256xf16>, %v: tensor<128x256xf16>, %i: tensor<256x1xi8>, %init: tensor<256x128xf32>) -> tensor<256x128xf32> {
  // expected-error @below {{has a schedule with product = wgmma_rs, which multiplies e4m3, e5m2 or i8, but operands of 'f16'}}
  %0 = nm_sparse.matmul #e storage = #nm_sparse.k_major<#e> indexing_maps = [#x, #w, #y]
    config = #nm_tile.schedule<tile = [128, 128, 128], product = wgmma_rs<warps = [4, 1]>, transfers = {x = gather, values = bulk, index = resident}, pipeline = ring<stages = 2, producers = 4>>
    ins(%x, %v, %i : tensor<512x256xf16>, tensor<128x256xf16>, tensor<256x1xi8>) outs(%init : tensor<256x128xf32>) -> tensor<256x128xf32>
  return %0 : tensor<256x128xf32>
}

// -----

#x = affine_map<(m, n, k) -> (k, m)>
#w = affine_map<(m, n, k) -> (k, n)>
#y = affine_map<(m, n, k) -> (m, n)>
#e = #nm_sparse.encoding<1:2, block = [1, 64]>

func.func @two_panels(%x: tensor<512x256xi8>, %v: tensor<128x256xi8>, %i: tensor<256x2xi8>, %init: tensor<256x128xi32>) -> tensor<256x128xi32> {
  // expected-error @below {{whose tiles lie in one panel, but 128 outputs of panels of 64; legal are divisors}}
  %0 = nm_sparse.matmul #e storage = #nm_sparse.k_major<#e> indexing_maps = [#x, #w, #y]
    config = #nm_tile.schedule<tile = [128, 128, 128], product = wgmma_rs<warps = [4, 1]>, transfers = {x = gather, values = bulk, index = resident}, pipeline = ring<stages = 2, producers = 4>>
    ins(%x, %v, %i : tensor<512x256xi8>, tensor<128x256xi8>, tensor<256x2xi8>) outs(%init : tensor<256x128xi32>) -> tensor<256x128xi32>
  return %0 : tensor<256x128xi32>
}

// -----

#x = affine_map<(m, n, k) -> (k, m)>
#w = affine_map<(m, n, k) -> (k, n)>
#y = affine_map<(m, n, k) -> (m, n)>
#e = #nm_sparse.encoding<1:2, block = [1, 128]>

func.func @steps(%x: tensor<512x256xi8>, %v: tensor<128x256xi8>, %i: tensor<256x1xi8>, %init: tensor<256x128xi32>) -> tensor<256x128xi32> {
  // expected-error @below {{K steps of 64 kept rows; legal are multiples of 128}}
  %0 = nm_sparse.matmul #e storage = #nm_sparse.k_major<#e> indexing_maps = [#x, #w, #y]
    config = #nm_tile.schedule<tile = [128, 128, 64], product = wgmma_rs<warps = [4, 1]>, transfers = {x = gather, values = bulk, index = resident}, pipeline = ring<stages = 2, producers = 4>>
    ins(%x, %v, %i : tensor<512x256xi8>, tensor<128x256xi8>, tensor<256x1xi8>) outs(%init : tensor<256x128xi32>) -> tensor<256x128xi32>
  return %0 : tensor<256x128xi32>
}

// -----

#x = affine_map<(m, n, k) -> (k, m)>
#w = affine_map<(m, n, k) -> (k, n)>
#y = affine_map<(m, n, k) -> (m, n)>
#e = #nm_sparse.encoding<1:2, block = [1, 128]>

func.func @tokens(%x: tensor<512x256xi8>, %v: tensor<128x256xi8>, %i: tensor<256x1xi8>, %init: tensor<256x128xi32>) -> tensor<256x128xi32> {
  // expected-error @below {{tiles of 64 tokens; legal are multiples of 128}}
  %0 = nm_sparse.matmul #e storage = #nm_sparse.k_major<#e> indexing_maps = [#x, #w, #y]
    config = #nm_tile.schedule<tile = [64, 128, 128], product = wgmma_rs<warps = [4, 1]>, transfers = {x = gather, values = bulk, index = resident}, pipeline = ring<stages = 2, producers = 4>>
    ins(%x, %v, %i : tensor<512x256xi8>, tensor<128x256xi8>, tensor<256x1xi8>) outs(%init : tensor<256x128xi32>) -> tensor<256x128xi32>
  return %0 : tensor<256x128xi32>
}

// -----

#x = affine_map<(m, n, k) -> (k, m)>
#w = affine_map<(m, n, k) -> (k, n)>
#y = affine_map<(m, n, k) -> (m, n)>
#e = #nm_sparse.encoding<1:2, block = [1, 128]>

func.func @canonical(%x: tensor<512x256xi8>, %v: tensor<256x128xi8>, %i: tensor<256x1xi8>, %init: tensor<256x128xi32>) -> tensor<256x128xi32> {
  // expected-error @below {{which reads values along the contraction, but the weight is in the canonical form; run --nm-sparse-select-storage=storage=k_major before}}
  %0 = nm_sparse.matmul #e indexing_maps = [#x, #w, #y]
    config = #nm_tile.schedule<tile = [128, 128, 128], product = wgmma_rs<warps = [4, 1]>, transfers = {x = gather, values = bulk, index = resident}, pipeline = ring<stages = 2, producers = 4>>
    ins(%x, %v, %i : tensor<512x256xi8>, tensor<256x128xi8>, tensor<256x1xi8>) outs(%init : tensor<256x128xi32>) -> tensor<256x128xi32>
  return %0 : tensor<256x128xi32>
}

// -----

#x = affine_map<(m, n, k) -> (k, m)>
#w = affine_map<(m, n, k) -> (k, n)>
#y = affine_map<(m, n, k) -> (m, n)>
#e = #nm_sparse.encoding<1:2, block = [1, 128]>

func.func @other_product(%x: tensor<512x256xf16>, %v: tensor<128x256xf16>, %i: tensor<256x1xi8>, %init: tensor<256x128xf32>) -> tensor<256x128xf32> {
  // expected-error @below {{which reads values row by row, but storage = #nm_sparse.k_major<#nm_sparse.encoding<1:2, block = [1, 128]>>; leave the weight in the canonical form, or take product = wgmma_rs}}
  %0 = nm_sparse.matmul #e storage = #nm_sparse.k_major<#e> indexing_maps = [#x, #w, #y]
    config = #nm_tile.schedule<tile = [64, 128, 64], product = wgmma<warps = [1, 4]>, transfers = {x = gather, values = bulk, index = resident}, pipeline = ring<stages = 2, producers = 4>>
    ins(%x, %v, %i : tensor<512x256xf16>, tensor<128x256xf16>, tensor<256x1xi8>) outs(%init : tensor<256x128xf32>) -> tensor<256x128xf32>
  return %0 : tensor<256x128xf32>
}

// -----

#x = affine_map<(m, n, k) -> (k, m)>
#w = affine_map<(m, n, k) -> (k, n)>
#y = affine_map<(m, n, k) -> (m, n)>
#e = #nm_sparse.encoding<1:2, block = [1, 128]>

func.func @bitmaps(%x: tensor<512x256xi8>, %v: tensor<4x16x512xi8>, %b: tensor<4x16x32xi32>, %init: tensor<256x128xi32>) -> tensor<256x128xi32> {
  // expected-error @below {{which reads weights along the contraction, but storage = #nm_sparse.bitmap<#nm_sparse.encoding<1:2, block = [1, 128]>>; legal is storage = k_major}}
  %0 = nm_sparse.matmul #e storage = #nm_sparse.bitmap<#e> indexing_maps = [#x, #w, #y]
    config = #nm_tile.schedule<tile = [128, 128, 128], product = wgmma_rs<warps = [4, 1]>, transfers = {x = gather, values = bulk, index = resident}, pipeline = ring<stages = 2, producers = 4>>
    ins(%x, %v, %b : tensor<512x256xi8>, tensor<4x16x512xi8>, tensor<4x16x32xi32>) outs(%init : tensor<256x128xi32>) -> tensor<256x128xi32>
  return %0 : tensor<256x128xi32>
}

// -----

// expected-error @below {{wgmma_rs has rows of its activations gathered}}
#s = #nm_tile.schedule<tile = [128, 128, 128], product = wgmma_rs<warps = [4, 1]>, transfers = {x = gather, values = bulk, index = staged}, pipeline = ring<stages = 2, producers = 4>>
