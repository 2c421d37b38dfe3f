// RUN: nm-opt %s --nm-sparse-lay-out-accumulators --convert-nm-tile-to-threads --split-input-file | FileCheck %s

#w = #nm_sparse.encoding<8:32, block = [1, 64]>
#s = #nm_tile.schedule<tile = [64, 64, 32], product = mma<warps = [2, 2]>, transfers = {x = gather, values = copy, index = resident}, pipeline = async_groups<stages = 2>, grid = flat>

// A warp of 32 x 32 over 32 kept rows: 2 x 4 fragments in each of two k16 steps;
// two reads of x and two of the weight in each.

// CHECK-LABEL: func @token_rows
// CHECK-COUNT-4: nvgpu.ldmatrix {{.*}} {numTiles = 4 : i32, transpose = true}
// CHECK-COUNT-16: nvgpu.mma.sync
// CHECK-NOT: nvgpu.mma.sync
func.func @token_rows(%x: memref<32x64xf16, #nm_tile.shared<swizzled_rows>>, %v: memref<32x64xf16, #nm_tile.shared<swizzled_rows>>, %out: memref<64x64xf32>) {
  %c1 = arith.constant 1 : index
  %c128 = arith.constant 128 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c128, %sy = %c1, %sz = %c1) {
    %c0 = arith.constant 0 : index
    %zero = arith.constant dense<0.0> : vector<64x64xf32>
    %r = nm_tile.matmul #w schedule = #s condensed
      ins(%x, %v : memref<32x64xf16, #nm_tile.shared<swizzled_rows>>, memref<32x64xf16, #nm_tile.shared<swizzled_rows>>)
      acc(%zero : vector<64x64xf32>) -> vector<64x64xf32>
    vector.transfer_write %r, %out[%c0, %c0] {in_bounds = [true, true]}
      : vector<64x64xf32>, memref<64x64xf32>
    gpu.terminator
  }
  return
}

// -----

#w = #nm_sparse.encoding<8:32, block = [1, 64]>
#s = #nm_tile.schedule<tile = [64, 64, 16], product = mma<warps = [2, 2]>, transfers = {x = gather, values = copy, index = resident}, pipeline = async_groups<stages = 2>, grid = flat>

// A feature-major result: outputs are the rows of a fragment, so that the two
// elements beside each other in a thread are tokens, stored together.

// CHECK-LABEL: func @output_rows
// CHECK-COUNT-8: nvgpu.mma.sync
// CHECK-NOT: nvgpu.mma.sync
// CHECK: vector.store %{{.*}} : memref<64x64xf32>, vector<2xf32>
func.func @output_rows(%x: memref<16x64xf16, #nm_tile.shared<swizzled_rows>>, %v: memref<16x64xf16, #nm_tile.shared<swizzled_rows>>, %out: memref<64x64xf32>) {
  %c1 = arith.constant 1 : index
  %c128 = arith.constant 128 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c128, %sy = %c1, %sz = %c1) {
    %c0 = arith.constant 0 : index
    %zero = arith.constant dense<0.0> : vector<64x64xf32>
    %r = nm_tile.matmul #w schedule = #s condensed tokens_contiguous
      ins(%x, %v : memref<16x64xf16, #nm_tile.shared<swizzled_rows>>, memref<16x64xf16, #nm_tile.shared<swizzled_rows>>)
      acc(%zero : vector<64x64xf32>) -> vector<64x64xf32>
    vector.transfer_write %r, %out[%c0, %c0] {in_bounds = [true, true],
      permutation_map = affine_map<(n, m) -> (m, n)>} : vector<64x64xf32>, memref<64x64xf32>
    gpu.terminator
  }
  return
}

// -----

#w = #nm_sparse.encoding<8:32, block = [1, 128]>
#s = #nm_tile.schedule<tile = [64, 128, 16], product = mma<warps = [2, 2]>, transfers = {x = gather, values = bulk, index = resident}, pipeline = ring<stages = 2, producers = 2>, grid = flat>

// The accelerator writes blocks of 64 columns, one after the other: the values
// are read as such, the four matrices of 16 rows from one block.

// CHECK-LABEL: func @blocks
// CHECK-SAME: %[[V:[a-z0-9]+]]: memref<16x128xf16, #gpu.address_space<workgroup>>
// CHECK: %[[BLOCKS:.*]] = memref.reinterpret_cast %{{.*}} to offset: [%{{.*}}], sizes: [2, 16, 64], strides: [1024, 64, 1]
// CHECK: nvgpu.ldmatrix %[[BLOCKS]][%{{.*}}, %{{.*}}, %{{.*}}] {numTiles = 4 : i32, transpose = true}
func.func @blocks(%v: memref<16x128xf16, #nm_tile.shared<swizzled_blocks>>, %x: memref<16x64xf16, #nm_tile.shared<swizzled_blocks>>, %out: memref<64x128xf32>) {
  %c1 = arith.constant 1 : index
  %c192 = arith.constant 192 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c192, %sy = %c1, %sz = %c1) {
    %c0 = arith.constant 0 : index
    %zero = arith.constant dense<0.0> : vector<64x128xf32>
    %r = nm_tile.matmul #w schedule = #s condensed
      ins(%x, %v : memref<16x64xf16, #nm_tile.shared<swizzled_blocks>>, memref<16x128xf16, #nm_tile.shared<swizzled_blocks>>)
      acc(%zero : vector<64x128xf32>) -> vector<64x128xf32>
    vector.transfer_write %r, %out[%c0, %c0] {in_bounds = [true, true]}
      : vector<64x128xf32>, memref<64x128xf32>
    gpu.terminator
  }
  return
}

// -----

#w = #nm_sparse.encoding<2:4, block = [8, 64]>
#s = #nm_tile.schedule<tile = [64, 64, 16], product = mma<warps = [2, 1]>, transfers = {x = gather, values = copy, index = resident}, pipeline = async_groups<stages = 2>, grid = flat>

// Gathered rows of a token-major x lie beside each other: plain ldmatrix.

// CHECK-LABEL: func @gathered_tokens
// CHECK: nvgpu.ldmatrix %arg0{{.*}} {numTiles = 4 : i32, transpose = false} : memref<64x16xf16, 3>
// CHECK: nvgpu.ldmatrix %arg0{{.*}} {numTiles = 4 : i32, transpose = false} : memref<64x16xf16, 3>
// CHECK: nvgpu.ldmatrix {{.*}} {numTiles = 4 : i32, transpose = true}
// CHECK-COUNT-16: nvgpu.mma.sync
// CHECK-NOT: nvgpu.mma.sync
func.func @gathered_tokens(%x: memref<64x16xf16, 3>, %v: memref<16x64xf16, #nm_tile.shared<swizzled_rows>>, %out: memref<64x64xf32>) {
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c64, %sy = %c1, %sz = %c1) {
    %c0 = arith.constant 0 : index
    %zero = arith.constant dense<0.0> : vector<64x64xf32>
    %r = nm_tile.matmul #w schedule = #s condensed indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>]
      ins(%x, %v : memref<64x16xf16, 3>, memref<16x64xf16, #nm_tile.shared<swizzled_rows>>)
      acc(%zero : vector<64x64xf32>) -> vector<64x64xf32>
    vector.transfer_write %r, %out[%c0, %c0] {in_bounds = [true, true]}
      : vector<64x64xf32>, memref<64x64xf32>
    gpu.terminator
  }
  return
}
