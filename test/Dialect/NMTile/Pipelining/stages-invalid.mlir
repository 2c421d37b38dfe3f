// RUN: nm-opt %s --nm-sparse-assign-stages --nm-sparse-expand-stages --split-input-file --verify-diagnostics

#w = #nm_sparse.encoding<2:4>
#s = #nm_tile.schedule<tile = [32, 32, 8], product = simt<warps = [1, 1]>, transfers = {x = copy, values = copy, index = staged}, pipeline = async_groups<stages = 2>, grid = flat>

func.func @no_loop(%x: memref<16x32xf32, 3>, %v: memref<8x32xf32, 3>, %i: memref<8x32xi8, 3>,
                   %acc: vector<32x32xf32>) -> vector<32x32xf32> {
  // expected-error @below {{must be in the nm_tile.k_loop that --nm-sparse-tile makes, got func.func}}
  %r = nm_tile.matmul #w schedule = #s
    ins(%x, %v, %i : memref<16x32xf32, 3>, memref<8x32xf32, 3>, memref<8x32xi8, 3>)
    acc(%acc : vector<32x32xf32>) -> vector<32x32xf32>
  return %r : vector<32x32xf32>
}

// -----

#w = #nm_sparse.encoding<2:4>
#s = #nm_tile.schedule<tile = [32, 32, 8], product = simt<warps = [1, 1]>, transfers = {x = copy, values = copy, index = staged}, pipeline = async_groups<stages = 2>, grid = flat>

func.func @not_its_own(%x: memref<16x32xf32, 3>, %g: memref<8x32xf32>, %v: memref<8x32xf32, 3>,
                       %i: memref<8x32xi8, 3>) {
  %c1 = arith.constant 1 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %c0 = arith.constant 0 : index
    %c4 = arith.constant 4 : index
    %c64 = arith.constant 64 : index
    %zero = arith.constant dense<0.0> : vector<32x32xf32>
    %sum = nm_tile.k_loop %k = %c0 to %c64 step %c4 iter_args(%acc = %zero) -> (vector<32x32xf32>) {
      // expected-error @below {{must write to an allocation of its own to be multi-buffered}}
      nm_tile.async_copy ins(%g : memref<8x32xf32>) outs(%v : memref<8x32xf32, 3>)
      %r = nm_tile.matmul #w schedule = #s
        ins(%x, %v, %i : memref<16x32xf32, 3>, memref<8x32xf32, 3>, memref<8x32xi8, 3>)
        acc(%acc : vector<32x32xf32>) -> vector<32x32xf32>
      nm_tile.yield %r : vector<32x32xf32>
    }
    gpu.terminator
  }
  return
}

// -----

#w = #nm_sparse.encoding<2:4>
#s = #nm_tile.schedule<tile = [32, 32, 8], product = simt<warps = [1, 1]>, transfers = {x = copy, values = copy, index = staged}, pipeline = async_groups<stages = 2>, grid = flat>

func.func @used_elsewhere(%x: memref<16x32xf32, 3>, %g: memref<8x32xf32>, %i: memref<8x32xi8, 3>) {
  %c1 = arith.constant 1 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %c0 = arith.constant 0 : index
    %c4 = arith.constant 4 : index
    %c64 = arith.constant 64 : index
    %zero = arith.constant dense<0.0> : vector<32x32xf32>
    %v = memref.alloc() : memref<8x32xf32, 3>
    %sum = nm_tile.k_loop %k = %c0 to %c64 step %c4 iter_args(%acc = %zero) -> (vector<32x32xf32>) {
      nm_tile.async_copy ins(%g : memref<8x32xf32>) outs(%v : memref<8x32xf32, 3>)
      // expected-error @below {{use of a tile that is multi-buffered; only copies and products of its loop may use it}}
      %old = memref.load %v[%c0, %c0] : memref<8x32xf32, 3>
      %r = nm_tile.matmul #w schedule = #s
        ins(%x, %v, %i : memref<16x32xf32, 3>, memref<8x32xf32, 3>, memref<8x32xi8, 3>)
        acc(%acc : vector<32x32xf32>) -> vector<32x32xf32>
      nm_tile.yield %r : vector<32x32xf32>
    }
    gpu.terminator
  }
  return
}
