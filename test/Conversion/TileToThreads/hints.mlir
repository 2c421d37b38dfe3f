// RUN: nm-opt %s --nm-sparse-lay-out-accumulators --convert-nm-tile-to-threads --cse --split-input-file | FileCheck %s

#w = #nm_sparse.encoding<8:32, block = [1, 64]>
#s = #nm_tile.schedule<tile = [16, 64, 16], product = mma<warps = [1, 2]>, transfers = {x = gather, values = copy, index = resident}, pipeline = async_groups<stages = 2>, grid = flat>

// What the copies read from outside the launch, the positions first; not what
// the epilogue reads, even if it is of integers. A thread keeps 16 accumulators.

// CHECK-LABEL: func @streams
// CHECK: nm_tile.hints accumulators = 16 streams(%arg2, %arg1, %arg0 : memref<16x1xi8>, memref<16x64xf16>, memref<64x16xf16>)
// CHECK-NEXT: gpu.terminator
func.func @streams(%x: memref<64x16xf16>, %v: memref<16x64xf16>, %i: memref<16x1xi8>,
                   %mask: memref<16x64xi8>, %out: memref<16x64xf32>, %n: index) {
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c64, %sy = %c1, %sz = %c1) {
    %c0 = arith.constant 0 : index
    %none = arith.constant 0 : i8
    %zero = arith.constant dense<0.0> : vector<16x64xf32>
    %it = memref.alloc() : memref<16x1xi8, #gpu.address_space<workgroup>>
    %vt = memref.alloc() : memref<16x64xf16, #nm_tile.shared<swizzled_rows>>
    %xt = memref.alloc() : memref<16x16xf16, #gpu.address_space<workgroup>>
    nm_tile.async_copy ins(%i : memref<16x1xi8>)
      outs(%it : memref<16x1xi8, #gpu.address_space<workgroup>>)
    %sum = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (vector<16x64xf32>) {
      %vs = memref.subview %v[%k, 0] [16, 64] [1, 1]
        : memref<16x64xf16> to memref<16x64xf16, strided<[64, 1], offset: ?>>
      nm_tile.async_copy ins(%vs : memref<16x64xf16, strided<[64, 1], offset: ?>>)
        outs(%vt : memref<16x64xf16, #nm_tile.shared<swizzled_rows>>)
      nm_tile.async_gather #w
        ins(%x, %it : memref<64x16xf16>, memref<16x1xi8, #gpu.address_space<workgroup>>)
        outs(%xt : memref<16x16xf16, #gpu.address_space<workgroup>>)
      %r = nm_tile.matmul #w schedule = #s condensed
        ins(%xt, %vt : memref<16x16xf16, #gpu.address_space<workgroup>>,
                       memref<16x64xf16, #nm_tile.shared<swizzled_rows>>)
        acc(%acc : vector<16x64xf32>) -> vector<16x64xf32>
      scf.yield %r : vector<16x64xf32>
    }
    %m = vector.transfer_read %mask[%c0, %c0], %none {in_bounds = [true, true]}
      : memref<16x64xi8>, vector<16x64xi8>
    %f = arith.sitofp %m : vector<16x64xi8> to vector<16x64xf32>
    %masked = arith.mulf %sum, %f : vector<16x64xf32>
    vector.transfer_write %masked, %out[%c0, %c0] {in_bounds = [true, true]}
      : vector<16x64xf32>, memref<16x64xf32>
    gpu.terminator
  }
  return
}

// -----

#w = #nm_sparse.encoding<8:32, block = [1, 64]>
#s = #nm_tile.schedule<tile = [16, 64, 16], product = mma<warps = [1, 2]>, transfers = {x = gather, values = copy, index = staged}, pipeline = async_groups<stages = 2>, grid = flat>

// A gather of token-major activations reads a few tokens' rows at the front, and
// not what all CTAs start with. A single K step keeps nothing.

// CHECK-LABEL: func @one_step
// CHECK: nm_tile.hints streams(%arg2 : memref<16x1xi8>)
func.func @one_step(%x: memref<16x64xf16>, %v: memref<16x64xf16, #nm_tile.shared<swizzled_rows>>, %i: memref<16x1xi8>,
                    %out: memref<16x64xf32>) {
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c64, %sy = %c1, %sz = %c1) {
    %c0 = arith.constant 0 : index
    %zero = arith.constant dense<0.0> : vector<16x64xf32>
    %xt = memref.alloc() : memref<16x16xf16, #gpu.address_space<workgroup>>
    %sum = scf.for %k = %c0 to %c1 step %c1 iter_args(%acc = %zero) -> (vector<16x64xf32>) {
      nm_tile.async_gather #w indexing_maps = [affine_map<(r, c) -> (c, r)>, affine_map<(r, c) -> (r, c)>]
        ins(%x, %i : memref<16x64xf16>, memref<16x1xi8>)
        outs(%xt : memref<16x16xf16, #gpu.address_space<workgroup>>)
      %r = nm_tile.matmul #w schedule = #s condensed
        ins(%xt, %v : memref<16x16xf16, #gpu.address_space<workgroup>>, memref<16x64xf16, #nm_tile.shared<swizzled_rows>>)
        acc(%acc : vector<16x64xf32>) -> vector<16x64xf32>
      scf.yield %r : vector<16x64xf32>
    }
    vector.transfer_write %sum, %out[%c0, %c0] {in_bounds = [true, true]}
      : vector<16x64xf32>, memref<16x64xf32>
    gpu.terminator
  }
  return
}

// -----

#w = #nm_sparse.encoding<8:32, block = [1, 64]>
#s = #nm_tile.schedule<tile = [16, 64, 16], product = mma<warps = [1, 2]>, transfers = {x = gather, values = copy, index = resident}, pipeline = async_groups<stages = 2>, grid = flat>

// How many K steps there are, and where they begin, comes before the positions.

// CHECK-LABEL: func @table
// CHECK: nm_tile.hints accumulators = 16 streams(%arg4, %arg2, %arg1, %arg0 : memref<16x4xi32>, memref<16x1xi8>, memref<16x64xf16>, memref<64x16xf16>)
func.func @table(%x: memref<64x16xf16>, %v: memref<16x64xf16>, %i: memref<16x1xi8>,
                   %out: memref<16x64xf32>, %panels: memref<16x4xi32>) {
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c64, %sy = %c1, %sz = %c1) {
    %c0 = arith.constant 0 : index
    %panel = memref.subview %panels[%bx, 0] [1, 4] [1, 1]
      : memref<16x4xi32> to memref<1x4xi32, strided<[4, 1], offset: ?>>
    %steps = memref.load %panel[%c0, %c1] : memref<1x4xi32, strided<[4, 1], offset: ?>>
    %n = arith.index_castui %steps : i32 to index
    %zero = arith.constant dense<0.0> : vector<16x64xf32>
    %it = memref.alloc() : memref<16x1xi8, #gpu.address_space<workgroup>>
    %vt = memref.alloc() : memref<16x64xf16, #nm_tile.shared<swizzled_rows>>
    %xt = memref.alloc() : memref<16x16xf16, #gpu.address_space<workgroup>>
    nm_tile.async_copy ins(%i : memref<16x1xi8>)
      outs(%it : memref<16x1xi8, #gpu.address_space<workgroup>>)
    %sum = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (vector<16x64xf32>) {
      %vs = memref.subview %v[%k, 0] [16, 64] [1, 1]
        : memref<16x64xf16> to memref<16x64xf16, strided<[64, 1], offset: ?>>
      nm_tile.async_copy ins(%vs : memref<16x64xf16, strided<[64, 1], offset: ?>>)
        outs(%vt : memref<16x64xf16, #nm_tile.shared<swizzled_rows>>)
      nm_tile.async_gather #w
        ins(%x, %it : memref<64x16xf16>, memref<16x1xi8, #gpu.address_space<workgroup>>)
        outs(%xt : memref<16x16xf16, #gpu.address_space<workgroup>>)
      %r = nm_tile.matmul #w schedule = #s condensed
        ins(%xt, %vt : memref<16x16xf16, #gpu.address_space<workgroup>>,
                       memref<16x64xf16, #nm_tile.shared<swizzled_rows>>)
        acc(%acc : vector<16x64xf32>) -> vector<16x64xf32>
      scf.yield %r : vector<16x64xf32>
    }
    vector.transfer_write %sum, %out[%c0, %c0] {in_bounds = [true, true]}
      : vector<16x64xf32>, memref<16x64xf32>
    gpu.terminator
  }
  return
}
