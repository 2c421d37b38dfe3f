// RUN: nm-opt %s --convert-nm-tile-to-threads --split-input-file --verify-diagnostics

#w = #nm_sparse.encoding<8:32, block = [1, 64]>
#s = #nm_sparse.schedule<tile = [16, 64, 16], product = mma<warps = [1, 2]>, transfers = {x = gather, values = copy, index = resident}, pipeline = async_groups<stages = 2>, grid = flat>

func.func @f32_mma(%x: memref<16x16xf32, 3>, %v: memref<16x64xf32, 3>) {
  %c1 = arith.constant 1 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %zero = arith.constant dense<0.0> : vector<16x64xf32>
    // expected-error @below {{with product = mma multiplies f16 or bf16, got 'f32'}}
    // expected-error @below {{failed to legalize operation}}
    %r = nm_tile.matmul #w schedule = #s condensed
      ins(%x, %v : memref<16x16xf32, 3>, memref<16x64xf32, 3>)
      acc(%zero : vector<16x64xf32>) -> vector<16x64xf32>
    gpu.terminator
  }
  return
}

// -----

#w = #nm_sparse.encoding<8:32, block = [1, 32]>
#s = #nm_sparse.schedule<tile = [64, 64, 16], product = wgmma<warps = [1, 4]>, transfers = {x = gather, values = copy, index = resident}, pipeline = async_groups<stages = 2>, grid = flat>

func.func @narrow_wgmma(%x: memref<32x64xf16, 3>, %v: memref<16x64xf16, 3>) {
  %c1 = arith.constant 1 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %zero = arith.constant dense<0.0> : vector<64x64xf32>
    // expected-error @below {{with product = wgmma needs panels of a multiple of 64 outputs that align with its tiles, got #nm_sparse.encoding<8:32, block = [1, 32]>}}
    // expected-error @below {{failed to legalize operation}}
    %r = nm_tile.matmul #w schedule = #s condensed
      ins(%x, %v : memref<32x64xf16, 3>, memref<16x64xf16, 3>)
      acc(%zero : vector<64x64xf32>) -> vector<64x64xf32>
    gpu.terminator
  }
  return
}

// -----

#w = #nm_sparse.encoding<2:4, block = [1, 32]>
#s = #nm_sparse.schedule<tile = [32, 32, 4], product = simt<warps = [1, 1]>, transfers = {x = gather, values = copy, index = resident}, pipeline = async_groups<stages = 2>, grid = flat>
#t = #nm_sparse.schedule<tile = [32, 32, 4], product = simt<warps = [1, 1]>, transfers = {x = gather, values = copy, index = resident}, pipeline = async_groups<stages = 3>, grid = flat>

func.func @two_layouts(%x: memref<4x32xf32, 3>, %v: memref<4x32xf32, 3>) {
  %c1 = arith.constant 1 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %zero = arith.constant dense<0.0> : vector<32x32xf32>
    %r = nm_tile.matmul #w schedule = #s condensed
      ins(%x, %v : memref<4x32xf32, 3>, memref<4x32xf32, 3>)
      acc(%zero : vector<32x32xf32>) -> vector<32x32xf32>
    // expected-error @below {{must have the schedule of the other products of its launch}}
    %q = nm_tile.matmul #w schedule = #t condensed
      ins(%x, %v : memref<4x32xf32, 3>, memref<4x32xf32, 3>)
      acc(%r : vector<32x32xf32>) -> vector<32x32xf32>
    gpu.terminator
  }
  return
}

// -----

#w = #nm_sparse.encoding<8:32, block = [1, 64]>
#s = #nm_sparse.schedule<tile = [16, 64, 16], product = mma<warps = [1, 2]>, transfers = {x = gather, values = copy, index = resident}, pipeline = async_groups<stages = 2>, grid = flat>

func.func @part_rows(%x: memref<16x16xf16, 3>, %v: memref<16x64xf16, 3>,
                     %parts: memref<512x2xf32>, %zero: vector<16x64xf32>) {
  %c1 = arith.constant 1 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %r = nm_tile.matmul #w schedule = #s condensed
      ins(%x, %v : memref<16x16xf16, 3>, memref<16x64xf16, 3>)
      acc(%zero : vector<16x64xf32>) -> vector<16x64xf32>
    // expected-error @below {{needs rows that divide the 256 elements which the 64 threads access at a time, in pieces of 16 bytes; got 'memref<512x2xf32>'}}
    // expected-error @below {{failed to legalize}}
    nm_tile.store_part %r, %parts[] : vector<16x64xf32>, memref<512x2xf32>
    gpu.terminator
  }
  return
}
