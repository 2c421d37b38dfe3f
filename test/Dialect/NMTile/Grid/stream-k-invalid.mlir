// RUN: nm-opt %s --nm-sparse-stream-k --split-input-file --verify-diagnostics

#w = #nm_sparse.encoding<8:32, block = [1, 128]>
#s = #nm_tile.schedule<tile = [64, 128, 16], product = mma<warps = [2, 4]>, transfers = {x = gather, values = copy, index = resident}, pipeline = ring<stages = 3, producers = 4>, grid = persistent<stream_k = true>>

func.func @one_role(%x: memref<16x64xf16, #nm_tile.shared<swizzled_rows>>, %v: memref<16x128xf16, #nm_tile.shared<swizzled_rows>>, %acc: vector<64x128xf32>) {
  %c1 = arith.constant 1 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    // expected-error @below {{under stream_k must be in a launch that --nm-sparse-specialize-warps has split}}
    %r = nm_tile.matmul #w schedule = #s condensed
      ins(%x, %v : memref<16x64xf16, #nm_tile.shared<swizzled_rows>>, memref<16x128xf16, #nm_tile.shared<swizzled_rows>>)
      acc(%acc : vector<64x128xf32>) -> vector<64x128xf32>
    gpu.terminator
  }
  return
}

// -----

#w = #nm_sparse.encoding<8:32, block = [1, 128]>
#s = #nm_tile.schedule<tile = [64, 128, 16], product = mma<warps = [2, 4]>, transfers = {x = gather, values = copy, index = resident}, pipeline = ring<stages = 3, producers = 4>, grid = persistent<stream_k = true>>

func.func @no_tiles(%x: memref<16x64xf16, #nm_tile.shared<swizzled_rows>>, %v: memref<16x128xf16, #nm_tile.shared<swizzled_rows>>, %acc: vector<64x128xf32>) {
  %c1 = arith.constant 1 : index
  %c132 = arith.constant 132 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c132, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    nm_tile.warp_specialize consumers = 256 {
      // expected-error @below {{needs consumers with a nm_tile.tile_loop, and in it a nm_tile.k_loop over a ring, as --nm-sparse-persist leaves them}}
      %r = nm_tile.matmul #w schedule = #s condensed
        ins(%x, %v : memref<16x64xf16, #nm_tile.shared<swizzled_rows>>, memref<16x128xf16, #nm_tile.shared<swizzled_rows>>)
        acc(%acc : vector<64x128xf32>) -> vector<64x128xf32>
    } producers = 128 {
    }
    gpu.terminator
  }
  return
}

// -----

#w = #nm_sparse.encoding<8:32, block = [1, 128]>
#s = #nm_tile.schedule<tile = [64, 128, 16], product = mma<warps = [2, 4]>, transfers = {x = gather, values = copy, index = resident}, pipeline = ring<stages = 3, producers = 4>, grid = persistent<stream_k = true>>

func.func @unknown_ctas(%x: memref<16x64xf16, #nm_tile.shared<swizzled_rows>>, %v: memref<16x128xf16, #nm_tile.shared<swizzled_rows>>, %acc: vector<64x128xf32>,
                        %ctas: index) {
  %c1 = arith.constant 1 : index
  // expected-error @below {{under stream_k needs a bound of grid x, the number of persistent CTAs; got a value that has none: run --nm-sparse-persist first}}
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %ctas, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    nm_tile.warp_specialize consumers = 256 {
      %r = nm_tile.matmul #w schedule = #s condensed
        ins(%x, %v : memref<16x64xf16, #nm_tile.shared<swizzled_rows>>, memref<16x128xf16, #nm_tile.shared<swizzled_rows>>)
        acc(%acc : vector<64x128xf32>) -> vector<64x128xf32>
    } producers = 128 {
    }
    gpu.terminator
  }
  return
}

// -----

#w = #nm_sparse.encoding<8:32, block = [1, 128]>
#s = #nm_tile.schedule<tile = [64, 128, 16], product = mma<warps = [2, 4]>, transfers = {x = gather, values = copy, index = resident}, pipeline = ring<stages = 3, producers = 4>, grid = persistent<stream_k = true>>

func.func @no_producer_tiles(%x: memref<16x64xf16, #nm_tile.shared<swizzled_rows>>, %v: memref<16x128xf16, #nm_tile.shared<swizzled_rows>>, %zero: vector<64x128xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c8 = arith.constant 8 : index
  %c132 = arith.constant 132 : index
  %c200 = arith.constant 200 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c132, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %ring = nm_tile.ring full = 132 empty = 8 : !nm_tile.ring<3>
    nm_tile.warp_specialize consumers = 256 {
      %begin = nm_tile.ring_begin full %ring : !nm_tile.ring<3>
      nm_tile.tile_loop %tile = %bx to %c200 step %gx iter_args(%here = %begin) -> (!nm_tile.ring_position) {
        %sum:2 = nm_tile.k_loop %k = %c0 to %c8 step %c2 iter_args(%acc = %zero, %at = %here)
            -> (vector<64x128xf32>, !nm_tile.ring_position) {
          // expected-error @below {{needs producers with a nm_tile.tile_loop, and in it a nm_tile.k_loop over a ring, as --nm-sparse-persist leaves them}}
          %r = nm_tile.matmul #w schedule = #s condensed
            ins(%x, %v : memref<16x64xf16, #nm_tile.shared<swizzled_rows>>, memref<16x128xf16, #nm_tile.shared<swizzled_rows>>)
            acc(%acc : vector<64x128xf32>) -> vector<64x128xf32>
          nm_tile.yield %r, %at : vector<64x128xf32>, !nm_tile.ring_position
        }
        nm_tile.yield %sum#1 : !nm_tile.ring_position
      }
    } producers = 128 {
    }
    gpu.terminator
  }
  return
}

// -----

#w = #nm_sparse.encoding<8:32, block = [1, 128]>
#s = #nm_tile.schedule<tile = [64, 128, 16], product = mma<warps = [2, 4]>, transfers = {x = gather, values = copy, index = resident}, pipeline = ring<stages = 3, producers = 4>, grid = persistent<stream_k = true>>

func.func @from_zero(%x: memref<16x64xf16, #nm_tile.shared<swizzled_rows>>, %v: memref<16x128xf16, #nm_tile.shared<swizzled_rows>>, %zero: vector<64x128xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c8 = arith.constant 8 : index
  %c132 = arith.constant 132 : index
  %c200 = arith.constant 200 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c132, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %ring = nm_tile.ring full = 132 empty = 8 : !nm_tile.ring<3>
    nm_tile.warp_specialize consumers = 256 {
      %begin = nm_tile.ring_begin full %ring : !nm_tile.ring<3>
      // expected-error @below {{must go from block x in steps of grid x for its tiles to be shared}}
      nm_tile.tile_loop %tile = %c0 to %c200 step %gx iter_args(%here = %begin) -> (!nm_tile.ring_position) {
        %sum:2 = nm_tile.k_loop %k = %c0 to %c8 step %c2 iter_args(%acc = %zero, %at = %here)
            -> (vector<64x128xf32>, !nm_tile.ring_position) {
          %r = nm_tile.matmul #w schedule = #s condensed
            ins(%x, %v : memref<16x64xf16, #nm_tile.shared<swizzled_rows>>, memref<16x128xf16, #nm_tile.shared<swizzled_rows>>)
            acc(%acc : vector<64x128xf32>) -> vector<64x128xf32>
          nm_tile.yield %r, %at : vector<64x128xf32>, !nm_tile.ring_position
        }
        nm_tile.yield %sum#1 : !nm_tile.ring_position
      }
    } producers = 128 {
      %begin = nm_tile.ring_begin empty %ring : !nm_tile.ring<3>
      nm_tile.tile_loop %tile = %bx to %c200 step %gx iter_args(%here = %begin) -> (!nm_tile.ring_position) {
        %end = nm_tile.k_loop %k = %c0 to %c8 step %c2 iter_args(%at = %here) -> (!nm_tile.ring_position) {
          nm_tile.yield %at : !nm_tile.ring_position
        }
        nm_tile.yield %end : !nm_tile.ring_position
      }
    }
    gpu.terminator
  }
  return
}

// -----

#w = #nm_sparse.encoding<8:32, block = [1, 128]>
#s = #nm_tile.schedule<tile = [64, 128, 16], product = mma<warps = [2, 4]>, transfers = {x = gather, values = copy, index = resident}, pipeline = ring<stages = 3, producers = 4>, grid = persistent<stream_k = true>>

func.func @other_tiles(%x: memref<16x64xf16, #nm_tile.shared<swizzled_rows>>, %v: memref<16x128xf16, #nm_tile.shared<swizzled_rows>>, %zero: vector<64x128xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c8 = arith.constant 8 : index
  %c132 = arith.constant 132 : index
  %c200 = arith.constant 200 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c132, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %ring = nm_tile.ring full = 132 empty = 8 : !nm_tile.ring<3>
    nm_tile.warp_specialize consumers = 256 {
      %begin = nm_tile.ring_begin full %ring : !nm_tile.ring<3>
      nm_tile.tile_loop %tile = %bx to %c200 step %gx iter_args(%here = %begin) -> (!nm_tile.ring_position) {
        %sum:2 = nm_tile.k_loop %k = %c0 to %c8 step %c2 iter_args(%acc = %zero, %at = %here)
            -> (vector<64x128xf32>, !nm_tile.ring_position) {
          // expected-error @below {{needs consumers and producers of the same tiles; their loops over tiles have different upper bounds}}
          %r = nm_tile.matmul #w schedule = #s condensed
            ins(%x, %v : memref<16x64xf16, #nm_tile.shared<swizzled_rows>>, memref<16x128xf16, #nm_tile.shared<swizzled_rows>>)
            acc(%acc : vector<64x128xf32>) -> vector<64x128xf32>
          nm_tile.yield %r, %at : vector<64x128xf32>, !nm_tile.ring_position
        }
        nm_tile.yield %sum#1 : !nm_tile.ring_position
      }
    } producers = 128 {
      %begin = nm_tile.ring_begin empty %ring : !nm_tile.ring<3>
      nm_tile.tile_loop %tile = %bx to %c8 step %gx iter_args(%here = %begin) -> (!nm_tile.ring_position) {
        %end = nm_tile.k_loop %k = %c0 to %c8 step %c2 iter_args(%at = %here) -> (!nm_tile.ring_position) {
          nm_tile.yield %at : !nm_tile.ring_position
        }
        nm_tile.yield %end : !nm_tile.ring_position
      }
    }
    gpu.terminator
  }
  return
}

// -----

#w = #nm_sparse.encoding<8:32, block = [1, 128]>
#s = #nm_tile.schedule<tile = [64, 128, 16], product = mma<warps = [2, 4]>, transfers = {x = gather, values = copy, index = resident}, pipeline = ring<stages = 3, producers = 4>, grid = persistent<stream_k = true>>

func.func @turns(%x: memref<16x64xf16, #nm_tile.shared<swizzled_rows>>, %v: memref<16x128xf16, #nm_tile.shared<swizzled_rows>>, %zero: vector<64x128xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c8 = arith.constant 8 : index
  %c132 = arith.constant 132 : index
  %c200 = arith.constant 200 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c132, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %ring = nm_tile.ring full = 132 empty = 8 : !nm_tile.ring<3>
    nm_tile.warp_specialize consumers = 256 {
      %begin = nm_tile.ring_begin full %ring : !nm_tile.ring<3>
      nm_tile.tile_loop %tile = %bx to %c200 step %gx iter_args(%here = %begin) -> (!nm_tile.ring_position) {
        %sum:2 = nm_tile.k_loop %k = %c0 to %c8 step %c2 iter_args(%acc = %zero, %at = %here)
            -> (vector<64x128xf32>, !nm_tile.ring_position) {
          // expected-error @below {{needs consumers and producers of the same K steps; the bounds or the steps of their K loops differ: producers that take turns cannot share tiles}}
          %r = nm_tile.matmul #w schedule = #s condensed
            ins(%x, %v : memref<16x64xf16, #nm_tile.shared<swizzled_rows>>, memref<16x128xf16, #nm_tile.shared<swizzled_rows>>)
            acc(%acc : vector<64x128xf32>) -> vector<64x128xf32>
          nm_tile.yield %r, %at : vector<64x128xf32>, !nm_tile.ring_position
        }
        nm_tile.yield %sum#1 : !nm_tile.ring_position
      }
    } producers = 128 {
      %begin = nm_tile.ring_begin empty %ring : !nm_tile.ring<3>
      nm_tile.tile_loop %tile = %bx to %c200 step %gx iter_args(%here = %begin) -> (!nm_tile.ring_position) {
        %end = nm_tile.k_loop %k = %c0 to %c8 step %c8 iter_args(%at = %here) -> (!nm_tile.ring_position) {
          nm_tile.yield %at : !nm_tile.ring_position
        }
        nm_tile.yield %end : !nm_tile.ring_position
      }
    }
    gpu.terminator
  }
  return
}
