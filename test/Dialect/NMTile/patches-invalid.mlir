// RUN: nm-opt %s --split-input-file --verify-diagnostics

#w = #nm_sparse.encoding<8:32, block = [1, 64]>
#ws = #gpu.address_space<workgroup>

func.func @numbers(%x: memref<4x8x8x8xf16>, %i: memref<32x1xi8>, %d: memref<32x64xf16, #ws>, %n: index) {
  // expected-error @below {{slice must be first row, first column, rows and columns with patches, and empty without, got 2 numbers}}
  nm_tile.async_gather #w patches = <kernel = [1, 1]> slice[%n, %n]
      ins(%x, %i : memref<4x8x8x8xf16>, memref<32x1xi8>) outs(%d : memref<32x64xf16, #ws>)
  return
}

// -----

#w = #nm_sparse.encoding<8:32, block = [1, 64]>
#ws = #gpu.address_space<workgroup>

func.func @rank(%x: memref<4x512xf16>, %i: memref<32x1xi8>, %d: memref<32x64xf16, #ws>, %n: index) {
  // expected-error @below {{source must be an image of rank 4 and element type 'f16', got 'memref<4x512xf16>'}}
  nm_tile.async_gather #w patches = <kernel = [1, 1]> slice[%n, %n, %n, %n]
      ins(%x, %i : memref<4x512xf16>, memref<32x1xi8>) outs(%d : memref<32x64xf16, #ws>)
  return
}

// -----

#w = #nm_sparse.encoding<8:32, block = [1, 64]>
#ws = #gpu.address_space<workgroup>

func.func @dynamic(%x: memref<4x?x8x8xf16>, %i: memref<32x1xi8>, %d: memref<32x64xf16, #ws>, %n: index) {
  // expected-error @below {{image must have static sizes but for its batch, got 'memref<4x?x8x8xf16>'}}
  nm_tile.async_gather #w patches = <kernel = [1, 1]> slice[%n, %n, %n, %n]
      ins(%x, %i : memref<4x?x8x8xf16>, memref<32x1xi8>) outs(%d : memref<32x64xf16, #ws>)
  return
}

// -----

#w = #nm_sparse.encoding<8:32, block = [1, 64]>
#ws = #gpu.address_space<workgroup>
#t = affine_map<(r, c) -> (c, r)>
#d = affine_map<(r, c) -> (r, c)>

func.func @transposed(%x: memref<4x8x8x8xf16>, %i: memref<32x1xi8>, %d: memref<32x64xf16, #ws>, %n: index) {
  // expected-error @below {{gathers rows of patches into rows, or columns of token-major ones into columns, and indexing_maps say otherwise}}
  nm_tile.async_gather #w indexing_maps = [#t, #d] patches = <kernel = [1, 1]> slice[%n, %n, %n, %n]
      ins(%x, %i : memref<4x8x8x8xf16>, memref<32x1xi8>) outs(%d : memref<32x64xf16, #ws>)
  return
}

// -----

#ws = #gpu.address_space<workgroup>

func.func @copy_numbers(%x: memref<4x8x8x8xf16>, %d: memref<32x64xf16, #ws>, %n: index) {
  // expected-error @below {{slice must be first row, first column, rows and columns with patches, and empty without, got 1 numbers}}
  nm_tile.async_copy patches = <kernel = [1, 1]> slice[%n]
      ins(%x : memref<4x8x8x8xf16>) outs(%d : memref<32x64xf16, #ws>)
  return
}

// -----

#ws = #gpu.address_space<workgroup>

func.func @copy_rank(%x: memref<4x512xf16>, %d: memref<32x64xf16, #ws>, %n: index) {
  // expected-error @below {{source must be an image of rank 4 and element type 'f16', got 'memref<4x512xf16>'}}
  nm_tile.async_copy patches = <kernel = [1, 1]> slice[%n, %n, %n, %n]
      ins(%x : memref<4x512xf16>) outs(%d : memref<32x64xf16, #ws>)
  return
}

// -----

#ws = #gpu.address_space<workgroup>
#t = affine_map<(r, c) -> (c, r)>
#d = affine_map<(r, c) -> (r, c)>

func.func @copy_transposed(%x: memref<4x8x8x8xf16>, %d: memref<32x64xf16, #ws>, %n: index) {
  // expected-error @below {{of patches fills a tile of rank 2 and is neither transposed nor of rows_of}}
  nm_tile.async_copy indexing_maps = [#t, #d] patches = <kernel = [1, 1]> slice[%n, %n, %n, %n]
      ins(%x : memref<4x8x8x8xf16>) outs(%d : memref<32x64xf16, #ws>)
  return
}

// -----

#ws = #gpu.address_space<workgroup>

func.func @copy_dynamic(%x: memref<4x?x8x8xf16>, %d: memref<32x64xf16, #ws>, %n: index) {
  // expected-error @below {{image must have static sizes but for its batch, got 'memref<4x?x8x8xf16>'}}
  nm_tile.async_copy patches = <kernel = [1, 1]> slice[%n, %n, %n, %n]
      ins(%x : memref<4x?x8x8xf16>) outs(%d : memref<32x64xf16, #ws>)
  return
}

// -----

!map = !nvgpu.tensormap.descriptor<tensor = memref<32x64xf16, 3>, swizzle = swizzle_128b, l2promo = l2promo_128b, oob = zero, interleave = none>

func.func @bulk_without_image(%map: !map, %d: memref<32x64xf16, #nm_tile.shared<swizzled_blocks>>, %n: index) {
  // expected-error @below {{patches need image, and image needs patches}}
  nm_tile.bulk_copy patches = <kernel = [1, 1], image = "bhwc", rows = "rsc">
      ins(%map[%n, %n] : !map) outs(%d : memref<32x64xf16, #nm_tile.shared<swizzled_blocks>>)
  return
}

// -----

!map = !nvgpu.tensormap.descriptor<tensor = memref<32x64xf16, 3>, swizzle = swizzle_128b, l2promo = l2promo_128b, oob = zero, interleave = none>

func.func @bulk_image(%map: !map, %d: memref<32x64xf16, #nm_tile.shared<swizzled_blocks>>, %n: index) {
  // expected-error @below {{image must be [rows, columns, channels] of it, all positive, got [8, 64]}}
  nm_tile.bulk_copy patches = <kernel = [1, 1], image = "bhwc", rows = "rsc"> image = [8, 64]
      ins(%map[%n, %n] : !map) outs(%d : memref<32x64xf16, #nm_tile.shared<swizzled_blocks>>)
  return
}

// -----

!map = !nvgpu.tensormap.descriptor<tensor = memref<32x64xf16, 3>, swizzle = swizzle_128b, l2promo = l2promo_128b, oob = zero, interleave = none>

func.func @bulk_channels(%map: !map, %d: memref<32x64xf16, #nm_tile.shared<swizzled_blocks>>, %n: index) {
  // expected-error @below {{lines of patches must be channels of one place: of image = "bhwc" and rows = "rsc" or "src", and a multiple of 64 channels, got 96}}
  nm_tile.bulk_copy patches = <kernel = [1, 1], image = "bhwc", rows = "rsc"> image = [8, 8, 96]
      ins(%map[%n, %n] : !map) outs(%d : memref<32x64xf16, #nm_tile.shared<swizzled_blocks>>)
  return
}

// -----

!map = !nvgpu.tensormap.descriptor<tensor = memref<32x64xf16, 3>, swizzle = swizzle_128b, l2promo = l2promo_128b, oob = zero, interleave = none>

func.func @bulk_parts(%map: !map, %d: memref<32x64xf16, #nm_tile.shared<swizzled_blocks>>, %n: index) {
  // expected-error @below {{boxes are for a destination in segment_lines or core_matrices}}
  nm_tile.bulk_copy boxes = [1, 1] patches = <kernel = [1, 1], image = "bhwc", rows = "rsc"> image = [8, 8, 64]
      ins(%map[%n, %n] : !map) outs(%d : memref<32x64xf16, #nm_tile.shared<swizzled_blocks>>)
  return
}

// -----

!map = !nvgpu.tensormap.descriptor<tensor = memref<32x64xf16, 3>, swizzle = swizzle_128b, l2promo = l2promo_128b, oob = zero, interleave = none>

func.func @bulk_within(%map: !map, %d: memref<32x64xf16, #nm_tile.shared<swizzled_blocks>>, %n: index) {
  // expected-error @below {{patches are for a destination in swizzled_blocks, without within, got 'memref<32x64xf16, #nm_tile.shared<swizzled_blocks>>'}}
  nm_tile.bulk_copy patches = <kernel = [1, 1], image = "bhwc", rows = "rsc"> image = [8, 8, 64]
      ins(%map[%n, %n] : !map) outs(%d : memref<32x64xf16, #nm_tile.shared<swizzled_blocks>>) within(%n by %map : !map)
  return
}
