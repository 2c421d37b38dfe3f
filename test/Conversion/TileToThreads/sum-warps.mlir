// RUN: nm-opt %s --split-input-file --verify-diagnostics --nm-sparse-lay-out-accumulators --convert-nm-tile-to-threads --canonicalize | FileCheck %s

// Each warp leaves its shares beside each other; the first one adds them in the
// order of the warps, and writes the sum.

// CHECK-LABEL: func.func @dot
// CHECK: %[[OWNS:.*]] = arith.cmpi ult, %{{.*}}, %c32
// CHECK: %[[SHARES:.*]] = memref.alloc() : memref<4x2x32xf32, #gpu.address_space<workgroup>>
// CHECK-COUNT-2: memref.store %{{.*}}, %[[SHARES]]
// CHECK: gpu.barrier
// CHECK: scf.if %[[OWNS]]
// CHECK: %[[SUMS:.*]]:2 = scf.for %[[WARP:.*]] = %c0 to %c4 step %c1 iter_args
// CHECK-COUNT-2: memref.load %[[SHARES]][%[[WARP]],
// CHECK: memref.store %[[SUMS]]#0, %arg3
#schedule = #nm_tile.schedule<tile = [2, 32, 64], product = dot<warps = 4>, transfers = {x = direct, values = direct, index = direct}, pipeline = sequential>
func.func @dot(%x: memref<2x128xf16>, %v: memref<1x4x512xf16>, %b: memref<1x4x32xi32>, %y: memref<2x32xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c128 = arith.constant 128 : index
  %zero = arith.constant dense<0.0> : vector<2x32xf32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c128, %sy = %c1, %sz = %c1) {
    %0 = nm_tile.matmul #nm_sparse.encoding<8:16> storage = #nm_sparse.bitmap<#nm_sparse.encoding<8:16>> schedule = #schedule
      indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>]
      ins(%x, %v, %b : memref<2x128xf16>, memref<1x4x512xf16>, memref<1x4x32xi32>)
      acc(%zero : vector<2x32xf32>) -> vector<2x32xf32>
    %1 = nm_tile.sum_warps %0 : vector<2x32xf32>
    vector.transfer_write %1, %y[%c0, %c0] {in_bounds = [true, true]} : vector<2x32xf32>, memref<2x32xf32>
    gpu.terminator
  }
  return
}

// -----

// Four groups of eight lanes add their shares within the warp first, eight lanes
// apart and sixteen; then the warps add theirs, and the first eight lanes write.

// CHECK-LABEL: func.func @groups
// CHECK: %[[OWNS:.*]] = arith.cmpi ult, %{{.*}}, %c8
// CHECK: %[[SHARES:.*]] = memref.alloc() : memref<2x8x32xf32, #gpu.address_space<workgroup>>
// CHECK: %[[OTHER:.*]], %{{.*}} = gpu.shuffle xor %[[OWN:.*]], %c8_i32, %c32_i32 : f32
// CHECK-NEXT: %[[TWO:.*]] = arith.addf %[[OWN]], %[[OTHER]]
// CHECK: gpu.shuffle xor %[[TWO]], %c16_i32, %c32_i32 : f32
// CHECK: gpu.barrier
// CHECK: scf.if %[[OWNS]]
// CHECK: scf.for %[[WARP:.*]] = %c0 to %c2 step %c1 iter_args
// CHECK-COUNT-8: memref.load %[[SHARES]][%[[WARP]],
#panels = #nm_tile.schedule<tile = [1, 64, 64], product = panel_dot<warps = 2, shares = 8>, transfers = {x = direct, values = direct, index = direct}, pipeline = sequential>
func.func @groups(%x: memref<1x128xf16>, %v: memref<64x64xf16>, %i: memref<64x2xi8>, %y: memref<1x64xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %zero = arith.constant dense<0.0> : vector<1x64xf32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c64, %sy = %c1, %sz = %c1) {
    %0 = nm_tile.matmul #nm_sparse.encoding<8:16, block = [1, 32]> schedule = #panels
      indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>]
      ins(%x, %v, %i : memref<1x128xf16>, memref<64x64xf16>, memref<64x2xi8>)
      acc(%zero : vector<1x64xf32>) -> vector<1x64xf32>
    %1 = nm_tile.sum_warps %0 : vector<1x64xf32>
    vector.transfer_write %1, %y[%c0, %c0] {in_bounds = [true, true]} : vector<1x64xf32>, memref<1x64xf32>
    gpu.terminator
  }
  return
}

// -----

#schedule = #nm_tile.schedule<tile = [8, 16, 8], product = simt<warps = [1, 1]>, transfers = {x = copy, values = copy, index = staged}, pipeline = async_groups<stages = 2>>
func.func @one_warp_owns_each(%x: memref<16x8xf32, 3>, %v: memref<8x16xf32, 3>, %i: memref<8x16xi8, 3>, %y: memref<8x16xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %zero = arith.constant dense<0.0> : vector<8x16xf32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c32, %sy = %c1, %sz = %c1) {
    %0 = nm_tile.matmul #nm_sparse.encoding<2:4> schedule = #schedule
      ins(%x, %v, %i : memref<16x8xf32, 3>, memref<8x16xf32, 3>, memref<8x16xi8, 3>)
      acc(%zero : vector<8x16xf32>) -> vector<8x16xf32>
    // expected-error @below {{is for products whose warps have shares of every element, got #nm_tile.schedule<tile = [8, 16, 8], product = simt}}
    // expected-error @below {{failed to legalize operation 'nm_tile.sum_warps'}}
    %1 = nm_tile.sum_warps %0 : vector<8x16xf32>
    vector.transfer_write %1, %y[%c0, %c0] {in_bounds = [true, true]} : vector<8x16xf32>, memref<8x16xf32>
    gpu.terminator
  }
  return
}
