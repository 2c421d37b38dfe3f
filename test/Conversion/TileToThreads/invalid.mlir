// RUN: nm-opt %s --nm-sparse-lay-out-accumulators --convert-nm-tile-to-threads --split-input-file --verify-diagnostics

#w = #nm_sparse.encoding<8:32, block = [1, 64]>
#s = #nm_tile.schedule<tile = [16, 64, 16], product = mma<warps = [1, 2]>, transfers = {x = gather, values = copy, index = resident}, pipeline = async_groups<stages = 2>, grid = flat>

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
#s = #nm_tile.schedule<tile = [64, 64, 16], product = wgmma<warps = [1, 4]>, transfers = {x = gather, values = copy, index = resident}, pipeline = async_groups<stages = 2>, grid = flat>

func.func @narrow_wgmma(%x: memref<32x64xf16, #nm_tile.shared<swizzled_blocks>>, %v: memref<16x64xf16, #nm_tile.shared<swizzled_blocks>>) {
  %c1 = arith.constant 1 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %zero = arith.constant dense<0.0> : vector<64x64xf32>
    // expected-error @below {{with product = wgmma needs panels of a multiple of 64 outputs that align with its tiles, got #nm_sparse.encoding<8:32, block = [1, 32]>}}
    // expected-error @below {{failed to legalize operation}}
    %r = nm_tile.matmul #w schedule = #s condensed
      ins(%x, %v : memref<32x64xf16, #nm_tile.shared<swizzled_blocks>>, memref<16x64xf16, #nm_tile.shared<swizzled_blocks>>)
      acc(%zero : vector<64x64xf32>) -> vector<64x64xf32>
    gpu.terminator
  }
  return
}

// -----

#w = #nm_sparse.encoding<2:4, block = [1, 32]>
#s = #nm_tile.schedule<tile = [32, 32, 4], product = simt<warps = [1, 1]>, transfers = {x = gather, values = copy, index = resident}, pipeline = async_groups<stages = 2>, grid = flat>
#t = #nm_tile.schedule<tile = [32, 32, 4], product = simt<warps = [1, 1]>, transfers = {x = gather, values = copy, index = resident}, pipeline = async_groups<stages = 3>, grid = flat>

func.func @two_layouts(%x: memref<4x32xf32, 3>, %v: memref<4x32xf32, 3>) {
  %c1 = arith.constant 1 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %zero = arith.constant dense<0.0> : vector<32x32xf32>
    %r = nm_tile.matmul #w schedule = #s condensed
      ins(%x, %v : memref<4x32xf32, 3>, memref<4x32xf32, 3>)
      acc(%zero : vector<32x32xf32>) -> vector<32x32xf32>
    // expected-error @below {{must have the schedule and the layout of the other products of its sum: threads share it in one way}}
    %q = nm_tile.matmul #w schedule = #t condensed
      ins(%x, %v : memref<4x32xf32, 3>, memref<4x32xf32, 3>)
      acc(%r : vector<32x32xf32>) -> vector<32x32xf32>
    gpu.terminator
  }
  return
}

// -----

#w = #nm_sparse.encoding<8:32, block = [1, 64]>
#s = #nm_tile.schedule<tile = [16, 64, 16], product = mma<warps = [1, 2]>, transfers = {x = gather, values = copy, index = resident}, pipeline = async_groups<stages = 2>, grid = flat>

func.func @part_rows(%x: memref<16x16xf16, 3>, %v: memref<16x64xf16, #nm_tile.shared<swizzled_rows>>,
                     %parts: memref<512x2xf32>) {
  %c1 = arith.constant 1 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %zero = arith.constant dense<0.0> : vector<16x64xf32>
    %r = nm_tile.matmul #w schedule = #s condensed
      ins(%x, %v : memref<16x16xf16, 3>, memref<16x64xf16, #nm_tile.shared<swizzled_rows>>)
      acc(%zero : vector<16x64xf32>) -> vector<16x64xf32>
    // expected-error @below {{needs rows that divide the 256 elements which the 64 threads access at a time, in pieces of 16 bytes; got 'memref<512x2xf32>'}}
    // expected-error @below {{failed to legalize}}
    nm_tile.store_part %r, %parts[] : vector<16x64xf32>, memref<512x2xf32>
    gpu.terminator
  }
  return
}

// -----

#w = #nm_sparse.encoding<8:32, block = [1, 64]>
#s = #nm_tile.schedule<tile = [16, 64, 16], product = mma<warps = [1, 2]>, transfers = {x = gather, values = copy, index = resident}, pipeline = async_groups<stages = 2>, grid = flat>

func.func @from_outside(%x: memref<16x16xf16, 3>, %v: memref<16x64xf16, #nm_tile.shared<swizzled_rows>>, %zero: vector<16x64xf32>) {
  %c1 = arith.constant 1 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    // expected-error @below {{takes a tile, 'vector<16x64xf32>', from outside of the launch, where no thread has a part of it; legal are a splat constant and what the launch computes}}
    %r = nm_tile.matmul #w schedule = #s condensed
      ins(%x, %v : memref<16x16xf16, 3>, memref<16x64xf16, #nm_tile.shared<swizzled_rows>>)
      acc(%zero : vector<16x64xf32>) -> vector<16x64xf32>
    gpu.terminator
  }
  return
}

// -----

#w = #nm_sparse.encoding<8:32, block = [1, 64]>
#s = #nm_tile.schedule<tile = [16, 64, 16], product = mma<warps = [1, 2]>, transfers = {x = gather, values = copy, index = resident}, pipeline = async_groups<stages = 2>, grid = flat>

func.func @transposed_tile(%x: memref<16x16xf16, 3>, %v: memref<16x64xf16, #nm_tile.shared<swizzled_rows>>, %out: memref<64x16xf32>) {
  %c1 = arith.constant 1 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %c0 = arith.constant 0 : index
    %zero = arith.constant dense<0.0> : vector<16x64xf32>
    %r = nm_tile.matmul #w schedule = #s condensed
      ins(%x, %v : memref<16x16xf16, 3>, memref<16x64xf16, #nm_tile.shared<swizzled_rows>>)
      acc(%zero : vector<16x64xf32>) -> vector<16x64xf32>
    // expected-error @below {{'vector.transpose' op takes a tile of its launch, 'vector<16x64xf32>', of which each thread has a part; legal are nm_tile.matmul, sum_warps, sum_ctas, load_part and store_part, elementwise operations, splat constants, broadcasts of scalars, unmasked transfers of buffers, and loops and branches of scf}}
    %t = vector.transpose %r, [1, 0] : vector<16x64xf32> to vector<64x16xf32>
    gpu.terminator
  }
  return
}

// -----

#w = #nm_sparse.encoding<8:32, block = [1, 64]>
#s = #nm_tile.schedule<tile = [16, 64, 16], product = mma<warps = [1, 2]>, transfers = {x = gather, values = copy, index = resident}, pipeline = async_groups<stages = 2>, grid = flat>

func.func @made_from_parts(%x: memref<16x16xf16, 3>, %v: memref<16x64xf16, #nm_tile.shared<swizzled_rows>>, %m: memref<1024xf32>) {
  %c1 = arith.constant 1 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %c0 = arith.constant 0 : index
    %row = vector.load %m[%c0] : memref<1024xf32>, vector<1024xf32>
    // expected-error @below {{'vector.shape_cast' op makes a tile of its launch, 'vector<16x64xf32>', and no thread could make its part alone; legal are nm_tile.matmul,}}
    %zero = vector.shape_cast %row : vector<1024xf32> to vector<16x64xf32>
    %r = nm_tile.matmul #w schedule = #s condensed
      ins(%x, %v : memref<16x16xf16, 3>, memref<16x64xf16, #nm_tile.shared<swizzled_rows>>)
      acc(%zero : vector<16x64xf32>) -> vector<16x64xf32>
    gpu.terminator
  }
  return
}

// -----

#w = #nm_sparse.encoding<8:32, block = [1, 64]>
#s = #nm_tile.schedule<tile = [16, 64, 16], product = mma<warps = [1, 2]>, transfers = {x = gather, values = copy, index = resident}, pipeline = async_groups<stages = 2>, grid = flat>

func.func @masked_tile(%x: memref<16x16xf16, 3>, %v: memref<16x64xf16, #nm_tile.shared<swizzled_rows>>, %out: memref<16x64xf32>, %n: index) {
  %c1 = arith.constant 1 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %c0 = arith.constant 0 : index
    %zero = arith.constant dense<0.0> : vector<16x64xf32>
    %r = nm_tile.matmul #w schedule = #s condensed
      ins(%x, %v : memref<16x16xf16, 3>, memref<16x64xf16, #nm_tile.shared<swizzled_rows>>)
      acc(%zero : vector<16x64xf32>) -> vector<16x64xf32>
    %mask = vector.create_mask %n, %n : vector<16x64xi1>
    // expected-error @below {{'vector.transfer_write' op takes a tile of its launch}}
    vector.transfer_write %r, %out[%c0, %c0], %mask {in_bounds = [true, true]} : vector<16x64xf32>, memref<16x64xf32>
    gpu.terminator
  }
  return
}

// -----

// The shape of a tile does not make one of a vector that threads fetch whole.
#w = #nm_sparse.encoding<8:32, block = [1, 64]>
#s = #nm_tile.schedule<tile = [16, 64, 16], product = mma<warps = [1, 2]>, transfers = {x = gather, values = copy, index = resident}, pipeline = async_groups<stages = 2>, grid = flat>

func.func @unrelated_read(%x: memref<16x16xf16, 3>, %v: memref<16x64xf16, #nm_tile.shared<swizzled_rows>>, %in: memref<16x64xf32>, %out: memref<f32>) {
  %c1 = arith.constant 1 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %c0 = arith.constant 0 : index
    %zero = arith.constant dense<0.0> : vector<16x64xf32>
    %pad = arith.constant 0.0 : f32
    %r = nm_tile.matmul #w schedule = #s condensed
      ins(%x, %v : memref<16x16xf16, 3>, memref<16x64xf16, #nm_tile.shared<swizzled_rows>>)
      acc(%zero : vector<16x64xf32>) -> vector<16x64xf32>
    // expected-error @below {{'vector.transfer_read' op reads 'vector<16x64xf32>', which is no tile of the launch, so that each thread would read all of it; legal are accumulators of its nm_tile.matmul, results of the launch, which have their shape, 'vector<16x64xf32>', and what is computed with them element by element}}
    %read = vector.transfer_read %in[%c0, %c0], %pad {in_bounds = [true, true]} : memref<16x64xf32>, vector<16x64xf32>
    %sum = vector.multi_reduction <add>, %read, %pad [0, 1] : vector<16x64xf32> to f32
    memref.store %sum, %out[] : memref<f32>
    gpu.terminator
  }
  return
}

// -----

#w = #nm_sparse.encoding<8:32, block = [1, 64]>
#s = #nm_tile.schedule<tile = [16, 64, 16], product = mma<warps = [1, 2]>, transfers = {x = gather, values = copy, index = resident}, pipeline = async_groups<stages = 2>, grid = flat>

func.func @unrelated_write(%x: memref<16x16xf16, 3>, %v: memref<16x64xf16, #nm_tile.shared<swizzled_rows>>) {
  %c1 = arith.constant 1 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %c0 = arith.constant 0 : index
    %zero = arith.constant dense<0.0> : vector<16x64xf32>
    %own = memref.alloc() : memref<16x64xf32, 3>
    %ones = arith.constant dense<1.0> : vector<16x64xf32>
    %r = nm_tile.matmul #w schedule = #s condensed
      ins(%x, %v : memref<16x16xf16, 3>, memref<16x64xf16, #nm_tile.shared<swizzled_rows>>)
      acc(%zero : vector<16x64xf32>) -> vector<16x64xf32>
    // expected-error @below {{'vector.transfer_write' op writes 'vector<16x64xf32>', which is no tile of the launch, so that each thread would write all of it;}}
    vector.transfer_write %ones, %own[%c0, %c0] {in_bounds = [true, true]} : vector<16x64xf32>, memref<16x64xf32, 3>
    gpu.terminator
  }
  return
}

// -----

#w = #nm_sparse.encoding<8:32, block = [1, 64]>
#s = #nm_tile.schedule<tile = [16, 64, 16], product = mma<warps = [1, 2]>, transfers = {x = gather, values = copy, index = resident}, pipeline = async_groups<stages = 2>, grid = flat>

func.func @other_shape(%x: memref<16x16xf16, 3>, %v: memref<16x64xf16, #nm_tile.shared<swizzled_rows>>, %out: memref<8x64xf32>) {
  %c1 = arith.constant 1 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %c0 = arith.constant 0 : index
    %zero = arith.constant dense<0.0> : vector<16x64xf32>
    %ones = arith.constant dense<1.0> : vector<8x64xf32>
    %r = nm_tile.matmul #w schedule = #s condensed
      ins(%x, %v : memref<16x16xf16, 3>, memref<16x64xf16, #nm_tile.shared<swizzled_rows>>)
      acc(%zero : vector<16x64xf32>) -> vector<16x64xf32>
    // expected-error @below {{'vector.transfer_write' op writes 'vector<8x64xf32>', which is no tile of the launch}}
    vector.transfer_write %ones, %out[%c0, %c0] {in_bounds = [true, true]} : vector<8x64xf32>, memref<8x64xf32>
    gpu.terminator
  }
  return
}

// -----

#w = #nm_sparse.encoding<8:32, block = [1, 64]>
#s = #nm_tile.schedule<tile = [16, 64, 16], product = mma<warps = [1, 2]>, transfers = {x = gather, values = copy, index = resident}, pipeline = async_groups<stages = 2>, grid = flat>

func.func @copy_of_tensors(%x: memref<16x16xf16, 3>, %v: memref<16x64xf16, #nm_tile.shared<swizzled_rows>>, %src: tensor<16x64xf16>, %dst: tensor<16x64xf16>) {
  %c1 = arith.constant 1 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %zero = arith.constant dense<0.0> : vector<16x64xf32>
    // expected-error @below {{must have been bufferized, has an operand of 'tensor<16x64xf16>'}}
    // expected-error @below {{failed to legalize operation}}
    %copied = nm_tile.async_copy ins(%src : tensor<16x64xf16>) outs(%dst : tensor<16x64xf16>) -> tensor<16x64xf16>
    %r = nm_tile.matmul #w schedule = #s condensed
      ins(%x, %v : memref<16x16xf16, 3>, memref<16x64xf16, #nm_tile.shared<swizzled_rows>>)
      acc(%zero : vector<16x64xf32>) -> vector<16x64xf32>
    gpu.terminator
  }
  return
}

// -----

#w = #nm_sparse.encoding<8:32, block = [1, 64]>
#s = #nm_tile.schedule<tile = [16, 64, 16], product = mma<warps = [1, 2]>, transfers = {x = gather, values = copy, index = resident}, pipeline = async_groups<stages = 2>, grid = flat>

func.func @rhs_order(%x: memref<16x16xf16, 3>, %v: memref<64x16xf16, 3>) {
  %c1 = arith.constant 1 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %zero = arith.constant dense<0.0> : vector<16x64xf32>
    // expected-error @below {{multiplies an rhs of (k, n), got [affine_map<(d0, d1, d2) -> (d2, d0)>, affine_map<(d0, d1, d2) -> (d1, d2)>]}}
    // expected-error @below {{failed to legalize operation}}
    %r = nm_tile.matmul #w schedule = #s condensed
      indexing_maps = [affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (n, k)>]
      ins(%x, %v : memref<16x16xf16, 3>, memref<64x16xf16, 3>)
      acc(%zero : vector<16x64xf32>) -> vector<16x64xf32>
    gpu.terminator
  }
  return
}

// -----

#w = #nm_sparse.encoding<4:8, block = [1, 32]>
#s = #nm_tile.schedule<tile = [32, 32, 4], product = simt<warps = [1, 1]>, transfers = {x = gather, values = copy, index = resident}, pipeline = async_groups<stages = 2>, grid = flat>
#t = #nm_tile.schedule<tile = [32, 32, 4], product = simt<warps = [1, 2]>, transfers = {x = gather, values = copy, index = resident}, pipeline = async_groups<stages = 2>, grid = flat>

func.func @fewer_threads(%x: memref<4x32xf32, 3>, %v: memref<4x32xf32, 3>) {
  %c1 = arith.constant 1 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %zero = arith.constant dense<0.0> : vector<32x32xf32>
    %r = nm_tile.matmul #w schedule = #s condensed
      ins(%x, %v : memref<4x32xf32, 3>, memref<4x32xf32, 3>)
      acc(%zero : vector<32x32xf32>) -> vector<32x32xf32>
    // expected-error @below {{must have as many threads as the other products of its launch, 32, got 64}}
    %q = nm_tile.matmul #w schedule = #t condensed
      ins(%x, %v : memref<4x32xf32, 3>, memref<4x32xf32, 3>)
      acc(%zero : vector<32x32xf32>) -> vector<32x32xf32>
    gpu.terminator
  }
  return
}

// -----

#w = #nm_sparse.encoding<4:8, block = [1, 32]>
#s = #nm_tile.schedule<tile = [32, 32, 4], product = simt<warps = [1, 1]>, transfers = {x = gather, values = copy, index = resident}, pipeline = async_groups<stages = 2>, grid = flat>
#own = #nm_tile.accumulator<unit = [tokens 32 by 1], units = [], elements = [outputs 32 by 1]>

func.func @layout_of_its_own(%x: memref<4x32xf32, 3>, %v: memref<4x32xf32, 3>) {
  %c1 = arith.constant 1 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %zero = arith.constant dense<0.0> : vector<32x32xf32>
    // expected-error @below {{has a layout in which its product does not leave the sum; legal is #nm_tile.accumulator<unit = [outputs 2 by 4, tokens 8 by 4, outputs 2 by 8], units = [outputs 1 by 32, tokens 1 by 32], elements = [outputs 4 by 1, outputs 2 by 16, tokens 4 by 1]>, got #nm_tile.accumulator<unit = [tokens 32 by 1]}}
    %r = nm_tile.matmul #w schedule = #s condensed
      ins(%x, %v : memref<4x32xf32, 3>, memref<4x32xf32, 3>)
      acc(%zero : vector<32x32xf32> in #own) -> vector<32x32xf32>
    gpu.terminator
  }
  return
}

// -----

#w = #nm_sparse.encoding<4:8, block = [1, 32]>
#s = #nm_tile.schedule<tile = [32, 32, 4], product = simt<warps = [1, 1]>, transfers = {x = gather, values = copy, index = resident}, pipeline = async_groups<stages = 2>, grid = flat>

func.func @foreign_part(%x: memref<4x32xf32, 3>, %v: memref<4x32xf32, 3>, %parts: memref<1x16x16xf32>, %out: memref<32x32xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %zero = arith.constant dense<0.0> : vector<32x32xf32>
    %r = nm_tile.matmul #w schedule = #s condensed
      ins(%x, %v : memref<4x32xf32, 3>, memref<4x32xf32, 3>)
      acc(%zero : vector<32x32xf32>) -> vector<32x32xf32>
    vector.transfer_write %r, %out[%c0, %c0] {in_bounds = [true, true]} : vector<32x32xf32>, memref<32x32xf32>
    // expected-error @below {{belongs to the sum of no product of its launch}}
    %part = nm_tile.load_part %parts[%c0] : memref<1x16x16xf32>, vector<16x16xf32>
    nm_tile.store_part %part, %parts[%c0] : vector<16x16xf32>, memref<1x16x16xf32>
    gpu.terminator
  }
  return
}
