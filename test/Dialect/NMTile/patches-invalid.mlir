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
