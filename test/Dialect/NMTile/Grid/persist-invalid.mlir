// RUN: nm-opt %s --nm-sparse-persist --split-input-file --verify-diagnostics

#w = #nm_sparse.encoding<8:32, block = [1, 128]>
#s = #nm_tile.schedule<tile = [64, 128, 16], product = mma<warps = [2, 4]>, transfers = {x = gather, values = copy, index = resident}, pipeline = ring<stages = 3, producers = 4>, grid = persistent>

func.func @one_role(%x: memref<16x64xf16, 3>, %v: memref<16x128xf16, 3>, %acc: vector<64x128xf32>) {
  %c1 = arith.constant 1 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    // expected-error @below {{must be in a launch that --nm-sparse-specialize-warps has split, for its CTAs to be persistent}}
    %r = nm_tile.matmul #w schedule = #s condensed
      ins(%x, %v : memref<16x64xf16, 3>, memref<16x128xf16, 3>)
      acc(%acc : vector<64x128xf32>) -> vector<64x128xf32>
    gpu.terminator
  }
  return
}

// -----

#w = #nm_sparse.encoding<8:32, block = [1, 128]>
#s = #nm_tile.schedule<tile = [64, 128, 16], product = mma<warps = [2, 4]>, transfers = {x = gather, values = copy, index = resident}, pipeline = ring<stages = 3, producers = 4>, grid = persistent>

func.func @no_ring(%x: memref<16x64xf16, 3>, %v: memref<16x128xf16, 3>, %acc: vector<64x128xf32>) {
  %c1 = arith.constant 1 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    nm_tile.warp_specialize consumers = 256 {
      // expected-error @below {{must be in a launch that --nm-sparse-specialize-warps has split, for its CTAs to be persistent}}
      %r = nm_tile.matmul #w schedule = #s condensed
        ins(%x, %v : memref<16x64xf16, 3>, memref<16x128xf16, 3>)
        acc(%acc : vector<64x128xf32>) -> vector<64x128xf32>
    } producers = 128 {
    }
    gpu.terminator
  }
  return
}
