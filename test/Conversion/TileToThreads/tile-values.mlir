// RUN: nm-opt %s --nm-sparse-lay-out-accumulators --convert-nm-tile-to-threads --split-input-file | FileCheck %s

#w = #nm_sparse.encoding<8:32, block = [1, 64]>
#s = #nm_tile.schedule<tile = [16, 64, 16], product = mma<warps = [1, 2]>, transfers = {x = gather, values = copy, index = resident}, pipeline = async_groups<stages = 2>, grid = flat>

// Threads may have vectors of their own that look like a tile: these stay as
// they are, and so does their use of a constant that the accumulators start
// with too.

// CHECK-LABEL: func @own_vector
// CHECK: gpu.launch
// CHECK-DAG: %[[OWN:.*]] = memref.alloca() : memref<16x64xf32>
// CHECK-DAG: %[[ZERO:.*]] = arith.constant dense<0.000000e+00> : vector<16x64xf32>
// CHECK: nvgpu.mma.sync
// CHECK: %[[READ:.*]] = vector.transfer_read %[[OWN]]{{.*}}, vector<16x64xf32>
// CHECK: %[[MAX:.*]] = arith.maximumf %[[READ]], %[[ZERO]] : vector<16x64xf32>
// CHECK: vector.transfer_write %[[MAX]], %[[OWN]]{{.*}} : vector<16x64xf32>
// CHECK-NOT: vector<16x64xf32>
// CHECK: vector.store {{.*}} : memref<16x64xf32>, vector<2xf32>
func.func @own_vector(%x: memref<16x16xf16, 3>, %v: memref<16x64xf16, #nm_tile.shared<swizzled_rows>>, %out: memref<16x64xf32>) {
  %c1 = arith.constant 1 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %c0 = arith.constant 0 : index
    %pad = arith.constant 0.0 : f32
    %own = memref.alloca() : memref<16x64xf32>
    %zero = arith.constant dense<0.0> : vector<16x64xf32>
    %r = nm_tile.matmul #w schedule = #s condensed
      ins(%x, %v : memref<16x16xf16, 3>, memref<16x64xf16, #nm_tile.shared<swizzled_rows>>)
      acc(%zero : vector<16x64xf32>) -> vector<16x64xf32>
    %read = vector.transfer_read %own[%c0, %c0], %pad {in_bounds = [true, true]} : memref<16x64xf32>, vector<16x64xf32>
    %max = arith.maximumf %read, %zero : vector<16x64xf32>
    vector.transfer_write %max, %own[%c0, %c0] {in_bounds = [true, true]} : vector<16x64xf32>, memref<16x64xf32>
    vector.transfer_write %r, %out[%c0, %c0] {in_bounds = [true, true]} : vector<16x64xf32>, memref<16x64xf32>
    gpu.terminator
  }
  return
}

// -----

#w = #nm_sparse.encoding<8:32, block = [1, 64]>
#s = #nm_tile.schedule<tile = [16, 64, 16], product = mma<warps = [1, 2]>, transfers = {x = gather, values = copy, index = resident}, pipeline = async_groups<stages = 2>, grid = flat>

// Loops and branches carry the parts of tiles, and only those: 16 elements of a
// thread, beside a vector that is its own and starts with the same constant.

// CHECK-LABEL: func @carried
// CHECK: scf.for {{.*}} -> ({{(f32, )+}}vector<16x64xf32>)
// CHECK: scf.if {{.*}} -> ({{(f32, )*}}f32)
// CHECK: vector.store {{.*}} vector<16x64xf32>
// CHECK: vector.store {{.*}} vector<2xf32>
func.func @carried(%x: memref<16x16xf16, 3>, %v: memref<16x64xf16, #nm_tile.shared<swizzled_rows>>, %n: index, %some: i1,
                   %m: memref<16x64xf32>, %out: memref<16x64xf32>) {
  %c1 = arith.constant 1 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %c0 = arith.constant 0 : index
    %zero = arith.constant dense<0.0> : vector<16x64xf32>
    %both:2 = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero, %own = %zero) -> (vector<16x64xf32>, vector<16x64xf32>) {
      %next = nm_tile.matmul #w schedule = #s condensed
        ins(%x, %v : memref<16x16xf16, 3>, memref<16x64xf16, #nm_tile.shared<swizzled_rows>>)
        acc(%acc : vector<16x64xf32>) -> vector<16x64xf32>
      %load = vector.load %m[%k, %c0] : memref<16x64xf32>, vector<16x64xf32>
      %sum = arith.addf %own, %load : vector<16x64xf32>
      scf.yield %next, %sum : vector<16x64xf32>, vector<16x64xf32>
    }
    %chosen = scf.if %some -> (vector<16x64xf32>) {
      %half = arith.constant dense<0.5> : vector<16x64xf32>
      %scaled = arith.mulf %both#0, %half : vector<16x64xf32>
      scf.yield %scaled : vector<16x64xf32>
    } else {
      scf.yield %both#0 : vector<16x64xf32>
    }
    vector.store %both#1, %m[%c0, %c0] : memref<16x64xf32>, vector<16x64xf32>
    vector.transfer_write %chosen, %out[%c0, %c0] {in_bounds = [true, true]} : vector<16x64xf32>, memref<16x64xf32>
    gpu.terminator
  }
  return
}

// -----

#w = #nm_sparse.encoding<8:32, block = [1, 64]>
#s = #nm_tile.schedule<tile = [16, 64, 16], product = mma<warps = [1, 2]>, transfers = {x = gather, values = copy, index = resident}, pipeline = async_groups<stages = 2>, grid = flat>

// A result that the product has no part in is shared as one that it has, and
// what nothing uses need not be.

// CHECK-LABEL: func @without_product
// CHECK: gpu.launch
// CHECK-COUNT-8: vector.load {{.*}}, vector<2xf32>
// CHECK-COUNT-16: arith.negf %{{.*}} : f32
// CHECK: vector.store {{.*}}, vector<2xf32>
func.func @without_product(%x: memref<16x16xf16, 3>, %v: memref<16x64xf16, #nm_tile.shared<swizzled_rows>>, %in: memref<16x64xf32>,
                           %out: memref<16x64xf32>) {
  %c1 = arith.constant 1 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %c0 = arith.constant 0 : index
    %zero = arith.constant dense<0.0> : vector<16x64xf32>
    %pad = arith.constant 0.0 : f32
    %r = nm_tile.matmul #w schedule = #s condensed
      ins(%x, %v : memref<16x16xf16, 3>, memref<16x64xf16, #nm_tile.shared<swizzled_rows>>)
      acc(%zero : vector<16x64xf32>) -> vector<16x64xf32>
    %unused = vector.transfer_read %in[%c0, %c0], %pad {in_bounds = [true, true]} : memref<16x64xf32>, vector<16x64xf32>
    %read = vector.transfer_read %in[%c0, %c0], %pad {in_bounds = [true, true]} : memref<16x64xf32>, vector<16x64xf32>
    %neg = arith.negf %read : vector<16x64xf32>
    vector.transfer_write %neg, %out[%c0, %c0] {in_bounds = [true, true]} : vector<16x64xf32>, memref<16x64xf32>
    gpu.terminator
  }
  return
}
