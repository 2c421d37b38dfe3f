// RUN: nm-opt %s --split-input-file --verify-diagnostics --nm-sparse-tile
// RUN: not nm-opt %S/levels.mlir --nm-sparse-select-storage --nm-sparse-select-schedule=chip=sm_80 2>&1 | FileCheck %s --check-prefix=GIVEN
// RUN: sed 's/config = #s$//' %S/levels.mlir | not nm-opt --nm-sparse-select-storage --nm-sparse-select-schedule=chip=sm_80 2>&1 | FileCheck %s --check-prefix=CHIP
// RUN: sed 's/config = #s$//' %S/levels.mlir | not nm-opt --nm-sparse-select-schedule=chip=sm_90a 2>&1 | FileCheck %s --check-prefix=CANONICAL
// GIVEN: has a schedule with product = wgmma_sp, which sm_80 has no products of warpgroups for; sm_90a has them
// CHIP: on #nm_sparse.encoding<[4:8, block = [1, 64]], [2:4]> has no schedule for sm_80: weights of two levels are multiplied on sm_90a, where they are 2:4 of f16 or bf16 in panels of a multiple of 64 outputs and stored as bitmaps; legal is embed = auto, by which others are stored by their elements
// CANONICAL: in its canonical form has no schedule for sm_90a: weights of two levels are multiplied on sm_90a

// Weights of two levels: their components, and schedules that do not fit them.

#e = #nm_sparse.encoding<2:4>
func.func @one_level(%x: tensor<64x8xf16>, %v: tensor<32x64xf16>, %i: tensor<32x64xi8>, %o: tensor<64x8xf16>) {
  // expected-error @below {{of #nm_sparse.encoding<2:4> needs the components values, index, got 3}}
  %0 = nm_sparse.matmul #e indexing_maps = [affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (n, m)>]
    ins(%x, %v, %i, %i : tensor<64x8xf16>, tensor<32x64xf16>, tensor<32x64xi8>, tensor<32x64xi8>) outs(%o : tensor<64x8xf16>) -> tensor<64x8xf16>
  return
}

// -----

#e = #nm_sparse.encoding<[4:8, block = [1, 64]], [2:4]>
func.func @inner_type(%x: tensor<64x8xf16>, %v: tensor<16x64xf16>, %i: tensor<32x1xi8>, %j: tensor<16x64xi16>, %o: tensor<64x8xf16>) {
  // expected-error @below {{inner_index must have rank 2 and element type i8, got 'tensor<16x64xi16>'}}
  %0 = nm_sparse.matmul #e indexing_maps = [affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (n, m)>]
    ins(%x, %v, %i, %j : tensor<64x8xf16>, tensor<16x64xf16>, tensor<32x1xi8>, tensor<16x64xi16>) outs(%o : tensor<64x8xf16>) -> tensor<64x8xf16>
  return
}

// -----

#e = #nm_sparse.encoding<[4:8, block = [1, 64]], [2:4]>
func.func @inner_rows(%x: tensor<64x8xf16>, %v: tensor<16x64xf16>, %i: tensor<32x1xi8>, %j: tensor<32x64xi8>, %o: tensor<64x8xf16>) {
  // expected-error @below {{index has 8 windows, whose inner_index has 16 rows, got 'tensor<32x64xi8>'}}
  %0 = nm_sparse.matmul #e indexing_maps = [affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (n, m)>]
    ins(%x, %v, %i, %j : tensor<64x8xf16>, tensor<16x64xf16>, tensor<32x1xi8>, tensor<32x64xi8>) outs(%o : tensor<64x8xf16>) -> tensor<64x8xf16>
  return
}

// -----

#e = #nm_sparse.encoding<[4:8, block = [1, 64]], [2:4]>
func.func @value_rows(%x: tensor<64x8xf16>, %v: tensor<32x64xf16>, %i: tensor<32x1xi8>, %j: tensor<16x64xi8>, %o: tensor<64x8xf16>) {
  // expected-error @below {{values has 32 rows, index names 16}}
  %0 = nm_sparse.matmul #e indexing_maps = [affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (n, m)>]
    ins(%x, %v, %i, %j : tensor<64x8xf16>, tensor<32x64xf16>, tensor<32x1xi8>, tensor<16x64xi8>) outs(%o : tensor<64x8xf16>) -> tensor<64x8xf16>
  return
}

// -----

#e = #nm_sparse.encoding<[4:8, block = [1, 64]], [2:4]>
func.func @bits_type(%x: tensor<64x8xf16>, %v: tensor<2x1x512xf16>, %i: tensor<32x1xi8>, %b: tensor<2x1x32xi8>, %o: tensor<64x8xf16>) {
  // expected-error @below {{bits must have rank 3 and 32 words of i32 in each tile of its storage, got 'tensor<2x1x32xi8>'}}
  %0 = nm_sparse.matmul #e storage = #nm_sparse.bitmap<#e> indexing_maps = [affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (n, m)>]
    ins(%x, %v, %i, %b : tensor<64x8xf16>, tensor<2x1x512xf16>, tensor<32x1xi8>, tensor<2x1x32xi8>) outs(%o : tensor<64x8xf16>) -> tensor<64x8xf16>
  return
}

// -----

#e = #nm_sparse.encoding<[4:8, block = [1, 64]], [2:4]>
func.func @bits_tiles(%x: tensor<64x8xf16>, %v: tensor<2x2x512xf16>, %i: tensor<32x1xi8>, %b: tensor<2x2x32xi32>, %o: tensor<64x8xf16>) {
  // expected-error @below {{contraction size 32 has 1 tiles of 32 rows, bits holds 2}}
  %0 = nm_sparse.matmul #e storage = #nm_sparse.bitmap<#e> indexing_maps = [affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (n, m)>]
    ins(%x, %v, %i, %b : tensor<64x8xf16>, tensor<2x2x512xf16>, tensor<32x1xi8>, tensor<2x2x32xi32>) outs(%o : tensor<64x8xf16>) -> tensor<64x8xf16>
  return
}

// -----

#e = #nm_sparse.encoding<[4:8, block = [1, 64]], [2:4]>
func.func @panels(%x: tensor<64x8xf16>, %v: tensor<2x1x512xf16>, %i: tensor<32x2xi8>, %b: tensor<2x1x32xi32>, %o: tensor<64x8xf16>) {
  // expected-error @below {{values has 64 columns, which lie in 1 panel of 64 outputs, the index has 2}}
  %0 = nm_sparse.matmul #e storage = #nm_sparse.bitmap<#e> indexing_maps = [affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (n, m)>]
    ins(%x, %v, %i, %b : tensor<64x8xf16>, tensor<2x1x512xf16>, tensor<32x2xi8>, tensor<2x1x32xi32>) outs(%o : tensor<64x8xf16>) -> tensor<64x8xf16>
  return
}

// -----

#e = #nm_sparse.encoding<[4:8, block = [1, 64]], [2:4]>
#s = #nm_tile.schedule<tile = [64, 64, 32], product = wgmma_sp<warps = 4>,
  transfers = {x = bulk, values = bulk, index = bulk}, pipeline = ring<stages = 2, producers = 4>>
func.func @not_gathered(%x: tensor<64x64xf16>, %v: tensor<2x1x512xf16>, %i: tensor<32x1xi8>, %b: tensor<2x1x32xi32>, %o: tensor<64x64xf16>) -> tensor<64x64xf16> {
  // expected-error @below {{has a schedule with product = wgmma_sp and x = bulk, but #nm_sparse.encoding<[4:8, block = [1, 64]], [2:4]>; legal is x = gather}}
  %0 = nm_sparse.matmul #e storage = #nm_sparse.bitmap<#e> indexing_maps = [affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (n, m)>] config = #s
    ins(%x, %v, %i, %b : tensor<64x64xf16>, tensor<2x1x512xf16>, tensor<32x1xi8>, tensor<2x1x32xi32>) outs(%o : tensor<64x64xf16>) -> tensor<64x64xf16>
  return %0 : tensor<64x64xf16>
}

// -----

#e = #nm_sparse.encoding<[4:8, block = [1, 64]], [2:4]>
#s = #nm_tile.schedule<tile = [32, 64, 32], product = wgmma_sp<warps = 4>,
  transfers = {x = gather, values = bulk, index = resident}, pipeline = ring<stages = 2, producers = 4>>
func.func @tokens(%x: tensor<64x64xf16>, %v: tensor<2x1x512xf16>, %i: tensor<32x1xi8>, %b: tensor<2x1x32xi32>, %o: tensor<64x64xf16>) -> tensor<64x64xf16> {
  // expected-error @below {{has a schedule with product = wgmma_sp and x = gather, whose tiles of 32 tokens are no whole lines; legal are multiples of 64}}
  %0 = nm_sparse.matmul #e storage = #nm_sparse.bitmap<#e> indexing_maps = [affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (n, m)>] config = #s
    ins(%x, %v, %i, %b : tensor<64x64xf16>, tensor<2x1x512xf16>, tensor<32x1xi8>, tensor<2x1x32xi32>) outs(%o : tensor<64x64xf16>) -> tensor<64x64xf16>
  return %0 : tensor<64x64xf16>
}

// -----

// Registers must hold all accumulators; the fewer ones at entry, those of one product.
#e = #nm_sparse.encoding<[4:8, block = [1, 64]], [2:4]>
#s = #nm_tile.schedule<tile = [192, 256, 32], product = wgmma_sp<warps = 8>,
  transfers = {x = gather, values = bulk, index = resident}, pipeline = ring<stages = 2, producers = 8>>
func.func @registers(%x: tensor<64x64xf16>, %v: tensor<2x1x512xf16>, %i: tensor<32x1xi8>, %b: tensor<2x1x32xi32>, %o: tensor<64x64xf16>) -> tensor<64x64xf16> {
  // expected-error @below {{has a schedule with 512 threads, whose wgmma_sp warps have at most 216 registers a thread, fewer than their 192 accumulators and 32 others; legal are smaller tiles, or fewer warps}}
  %0 = nm_sparse.matmul #e storage = #nm_sparse.bitmap<#e> indexing_maps = [affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (n, m)>] config = #s
    ins(%x, %v, %i, %b : tensor<64x64xf16>, tensor<2x1x512xf16>, tensor<32x1xi8>, tensor<2x1x32xi32>) outs(%o : tensor<64x64xf16>) -> tensor<64x64xf16>
  return %0 : tensor<64x64xf16>
}

// -----

#e = #nm_sparse.encoding<[4:8, block = [1, 64]], [2:4]>
#s = #nm_tile.schedule<tile = [256, 128, 32], product = wgmma_sp<warps = 8>,
  transfers = {x = gather, values = bulk, index = resident}, pipeline = ring<stages = 2, producers = 8>>
func.func @product_registers(%x: tensor<64x64xf16>, %v: tensor<2x1x512xf16>, %i: tensor<32x1xi8>, %b: tensor<2x1x32xi32>, %o: tensor<64x64xf16>) -> tensor<64x64xf16> {
  // expected-error @below {{has a schedule with 512 threads, whose wgmma_sp warps have at most 128 registers a thread, fewer than their 128 accumulators and 32 others; legal are smaller tiles, or fewer warps}}
  %0 = nm_sparse.matmul #e storage = #nm_sparse.bitmap<#e> indexing_maps = [affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (n, m)>] config = #s
    ins(%x, %v, %i, %b : tensor<64x64xf16>, tensor<2x1x512xf16>, tensor<32x1xi8>, tensor<2x1x32xi32>) outs(%o : tensor<64x64xf16>) -> tensor<64x64xf16>
  return %0 : tensor<64x64xf16>
}

// -----

#e = #nm_sparse.encoding<[4:8, block = [1, 96]], [2:4]>
#s = #nm_tile.schedule<tile = [64, 192, 32], product = wgmma_sp<warps = 4>,
  transfers = {x = gather, values = bulk, index = resident}, pipeline = ring<stages = 2, producers = 4>>
func.func @odd_panels(%x: tensor<64x64xf16>, %v: tensor<3x1x512xf16>, %i: tensor<32x1xi8>, %b: tensor<3x1x32xi32>, %o: tensor<96x64xf16>) -> tensor<96x64xf16> {
  // expected-error @below {{has a schedule with product = wgmma_sp, whose 64 outputs of a product share their rows, and tiles of 192 outputs, but panels of 96; legal are multiples of 64 of which one is a multiple of the other}}
  %0 = nm_sparse.matmul #e storage = #nm_sparse.bitmap<#e> indexing_maps = [affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (n, m)>] config = #s
    ins(%x, %v, %i, %b : tensor<64x64xf16>, tensor<3x1x512xf16>, tensor<32x1xi8>, tensor<3x1x32xi32>) outs(%o : tensor<96x64xf16>) -> tensor<96x64xf16>
  return %0 : tensor<96x64xf16>
}

// -----

#e = #nm_sparse.encoding<[4:8, block = [1, 64]], [2:4]>
#s = #nm_tile.schedule<tile = [32, 64, 32], product = wgmma_expand<warps = 4>,
  transfers = {x = bulk, values = bulk, index = bulk}, pipeline = ring<stages = 2, producers = 4>>
func.func @one_level_product(%x: tensor<64x64xf16>, %v: tensor<2x1x512xf16>, %i: tensor<32x1xi8>, %b: tensor<2x1x32xi32>, %o: tensor<64x64xf16>) -> tensor<64x64xf16> {
  // expected-error @below {{has a schedule with product = wgmma_expand, which multiplies weights of one level, but #nm_sparse.encoding<[4:8, block = [1, 64]], [2:4]>; legal is product = wgmma_sp}}
  %0 = nm_sparse.matmul #e storage = #nm_sparse.bitmap<#e> indexing_maps = [affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (n, m)>] config = #s
    ins(%x, %v, %i, %b : tensor<64x64xf16>, tensor<2x1x512xf16>, tensor<32x1xi8>, tensor<2x1x32xi32>) outs(%o : tensor<64x64xf16>) -> tensor<64x64xf16>
  return %0 : tensor<64x64xf16>
}

// -----

#e = #nm_sparse.encoding<[4:8, block = [1, 64]], [2:4]>
#s = #nm_tile.schedule<tile = [64, 64, 32], product = wgmma_sp<warps = 4>,
  transfers = {x = gather, values = bulk, index = resident}, pipeline = ring<stages = 2, producers = 4>, grid = flat<cluster = 2>>
func.func @cluster_tokens(%x: tensor<64x192xf16>, %v: tensor<2x1x512xf16>, %i: tensor<32x1xi8>, %b: tensor<2x1x32xi32>, %o: tensor<64x192xf16>) -> tensor<64x192xf16> {
  // expected-error @below {{has a schedule with cluster = 2, but 3 tiles of 64 tokens; legal is a grid without clusters}}
  %0 = nm_sparse.matmul #e storage = #nm_sparse.bitmap<#e> indexing_maps = [affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (n, m)>] config = #s
    ins(%x, %v, %i, %b : tensor<64x192xf16>, tensor<2x1x512xf16>, tensor<32x1xi8>, tensor<2x1x32xi32>) outs(%o : tensor<64x192xf16>) -> tensor<64x192xf16>
  return %0 : tensor<64x192xf16>
}

// -----

#e = #nm_sparse.encoding<[4:8, block = [1, 64]], [2:4]>
#s = #nm_tile.schedule<tile = [64, 64, 32], product = wgmma_sp<warps = 4>,
  transfers = {x = gather, values = bulk, index = resident}, pipeline = ring<stages = 2, producers = 4>, grid = flat<cluster = 2>>
func.func @cluster_any_tokens(%x: tensor<64x?xf16>, %v: tensor<2x1x512xf16>, %i: tensor<32x1xi8>, %b: tensor<2x1x32xi32>, %o: tensor<64x?xf16>) -> tensor<64x?xf16> {
  // expected-error @below {{has a schedule with cluster = 2, which needs a static number of tokens, but its result is 'tensor<64x?xf16>'}}
  %0 = nm_sparse.matmul #e storage = #nm_sparse.bitmap<#e> indexing_maps = [affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (n, m)>] config = #s
    ins(%x, %v, %i, %b : tensor<64x?xf16>, tensor<2x1x512xf16>, tensor<32x1xi8>, tensor<2x1x32xi32>) outs(%o : tensor<64x?xf16>) -> tensor<64x?xf16>
  return %0 : tensor<64x?xf16>
}

// -----

#e = #nm_sparse.encoding<[4:8, block = [1, 64]], [2:4]>
#s = #nm_tile.schedule<tile = [64, 64, 32], product = wgmma_sp<warps = 4>,
  transfers = {x = gather, values = bulk, index = resident}, pipeline = ring<stages = 2, producers = 4>, grid = flat<cluster = 4>>
func.func @cluster_values(%x: tensor<64x256xf16>, %v: tensor<2x1x512xf16>, %i: tensor<32x1xi8>, %b: tensor<2x1x32xi32>, %o: tensor<64x256xf16>) -> tensor<64x256xf16> {
  // expected-error @below {{has a schedule with cluster = 4, whose CTAs cannot share the copy of 32 kept rows; legal are multiples of 16 for each}}
  %0 = nm_sparse.matmul #e storage = #nm_sparse.bitmap<#e> indexing_maps = [affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (n, m)>] config = #s
    ins(%x, %v, %i, %b : tensor<64x256xf16>, tensor<2x1x512xf16>, tensor<32x1xi8>, tensor<2x1x32xi32>) outs(%o : tensor<64x256xf16>) -> tensor<64x256xf16>
  return %0 : tensor<64x256xf16>
}
