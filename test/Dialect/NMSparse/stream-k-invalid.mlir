// RUN: nm-opt %s --nm-sparse-stream-k --split-input-file --verify-diagnostics

#w = #nm_sparse.encoding<8:32, block = [1, 128]>
#s = #nm_sparse.schedule<tile = [64, 128, 16], product = mma<warps = [2, 4]>, transfers = {x = gather, values = copy, index = resident}, pipeline = ring<stages = 3, producers = 4>, grid = persistent<stream_k = true>>

func.func @one_role(%x: memref<16x64xf16, 3>, %v: memref<16x128xf16, 3>, %acc: vector<64x128xf32>) {
  %c1 = arith.constant 1 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    // expected-error @below {{under stream_k must be in a launch that --nm-sparse-specialize-warps has split}}
    %r = nm_tile.matmul #w schedule = #s condensed
      ins(%x, %v : memref<16x64xf16, 3>, memref<16x128xf16, 3>)
      acc(%acc : vector<64x128xf32>) -> vector<64x128xf32>
    gpu.terminator
  }
  return
}

// -----

#w = #nm_sparse.encoding<8:32, block = [1, 128]>
#s = #nm_sparse.schedule<tile = [64, 128, 16], product = mma<warps = [2, 4]>, transfers = {x = gather, values = copy, index = resident}, pipeline = ring<stages = 3, producers = 4>, grid = persistent<stream_k = true>>

func.func @no_tiles(%x: memref<16x64xf16, 3>, %v: memref<16x128xf16, 3>, %acc: vector<64x128xf32>,
                    %consumes: i1) {
  %c1 = arith.constant 1 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    scf.if %consumes {
      // expected-error @below {{needs consumers that loop over tiles from block x in steps of grid x, and over the K steps of each, as --nm-sparse-persist leaves them; their branch has no such loop}}
      %r = nm_tile.matmul #w schedule = #s condensed
        ins(%x, %v : memref<16x64xf16, 3>, memref<16x128xf16, 3>)
        acc(%acc : vector<64x128xf32>) -> vector<64x128xf32>
    } else {
      gpu.barrier
    }
    gpu.terminator
  }
  return
}

// -----

#w = #nm_sparse.encoding<8:32, block = [1, 128]>
#s = #nm_sparse.schedule<tile = [64, 128, 16], product = mma<warps = [2, 4]>, transfers = {x = gather, values = copy, index = resident}, pipeline = ring<stages = 3, producers = 4>, grid = persistent<stream_k = true>>

func.func @unknown_ctas(%x: memref<16x64xf16, 3>, %v: memref<16x128xf16, 3>, %acc: vector<64x128xf32>,
                        %consumes: i1, %ctas: index) {
  %c1 = arith.constant 1 : index
  // expected-error @below {{under stream_k needs a constant grid x, the number of persistent CTAs; got a value that is known at run time: run --nm-sparse-persist first}}
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %ctas, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    scf.if %consumes {
      %r = nm_tile.matmul #w schedule = #s condensed
        ins(%x, %v : memref<16x64xf16, 3>, memref<16x128xf16, 3>)
        acc(%acc : vector<64x128xf32>) -> vector<64x128xf32>
    } else {
      gpu.barrier
    }
    gpu.terminator
  }
  return
}
