// RUN: nm-opt %s --convert-nm-tile-to-threads --verify-diagnostics

#w = #nm_sparse.encoding<4:8, block = [1, 32]>
#s = #nm_tile.schedule<tile = [32, 32, 4], product = simt<warps = [1, 1]>, transfers = {x = gather, values = copy, index = resident}, pipeline = async_groups<stages = 2>, grid = flat>

func.func @no_layout(%x: memref<4x32xf32, 3>, %v: memref<4x32xf32, 3>) {
  %c1 = arith.constant 1 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %zero = arith.constant dense<0.0> : vector<32x32xf32>
    // expected-error @below {{has no layout of its accumulator: run --nm-sparse-lay-out-accumulators first}}
    %r = nm_tile.matmul #w schedule = #s condensed
      ins(%x, %v : memref<4x32xf32, 3>, memref<4x32xf32, 3>)
      acc(%zero : vector<32x32xf32>) -> vector<32x32xf32>
    gpu.terminator
  }
  return
}
