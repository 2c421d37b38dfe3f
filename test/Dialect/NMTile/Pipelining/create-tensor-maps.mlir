// RUN: nm-opt %s --nm-sparse-create-tensor-maps --canonicalize --split-input-file --verify-diagnostics | FileCheck %s
// RUN: nm-opt %s --nm-sparse-create-tensor-maps --nm-sparse-assign-stages --nm-sparse-specialize-warps --split-input-file --verify-diagnostics | FileCheck %s --check-prefix=RING

#w = #nm_sparse.encoding<8:16, block = [1, 128]>
#s = #nm_tile.schedule<tile = [64, 128, 32], product = wgmma<warps = [1, 8]>, transfers = {x = gather, values = bulk, index = resident}, pipeline = ring<stages = 3, producers = 4>, grid = flat>
!tile = memref<32x128xf16, #nm_tile.shared<swizzled_blocks>>

// The map has the batch dimension of the values; the coordinates are those of
// the launch's view and of the step's in it.

// CHECK-LABEL: func @batch(
// CHECK-SAME: %[[V:[a-z0-9]+]]: memref<3x64x4096xf16>
// CHECK: %[[ANY:.*]] = memref.cast %[[V]] : memref<3x64x4096xf16> to memref<*xf16>
// CHECK: %[[MAP:.*]] = nvgpu.tma.create.descriptor %[[ANY]] box[%c1, %c32, %c64]
// CHECK-SAME: -> <tensor = memref<1x32x64xf16, 3>, swizzle = swizzle_128b, l2promo = l2promo_128b, oob = zero, interleave = none>
// CHECK: gpu.launch blocks(%{{[a-z0-9]+}}, %[[BY:[a-z0-9]+]], %[[BZ:[a-z0-9]+]]) in
// CHECK: nm_tile.k_loop
// CHECK: %[[N:.*]] = affine.apply {{.*}}[%[[BY]]]
// CHECK: nm_tile.bulk_copy ins(%[[MAP]][%[[BZ]], %{{[a-z0-9]+}}, %[[N]]] :
// CHECK-NOT: async_copy

// One thread arrives for the accelerator, beside the 128 that gather and their
// warps: 16-bit elements may be stored one by one.
// RING-LABEL: func @batch(
// RING: %[[RING:.*]] = nm_tile.ring full = 133 empty = {{[0-9]+}} bulk
// RING: %[[FULL:.*]] = nm_tile.ring_mbarrier full %[[RING]]
// RING-NEXT: nm_tile.bulk_copy threads = [256, 128] ins({{.*}}) mbarrier(%[[FULL]] : !llvm.ptr<3>)
// RING: nm_tile.async_gather
func.func @batch(%v: memref<3x64x4096xf16>, %x: memref<128x64xf16>, %i: memref<64x1xi8>) {
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c32 = arith.constant 32 : index
  %c384 = arith.constant 384 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c32, %gz = %c3)
             threads(%tx, %ty, %tz) in (%sx = %c384, %sy = %c1, %sz = %c1) {
    %c0 = arith.constant 0 : index
    %c4 = arith.constant 4 : index
    %c8 = arith.constant 8 : index
    %zero = arith.constant dense<0.0> : vector<64x128xf32>
    %n = affine.apply affine_map<()[s0] -> (s0 * 128)>()[%by]
    %vt = memref.alloc() : !tile
    %xt = memref.alloc() : memref<32x64xf16, #nm_tile.shared<swizzled_blocks>>
    %panel = memref.subview %v[%bz, 0, %n] [1, 64, 128] [1, 1, 1]
      : memref<3x64x4096xf16> to memref<64x128xf16, strided<[4096, 1], offset: ?>>
    %sum = nm_tile.k_loop %k = %c0 to %c8 step %c4 iter_args(%acc = %zero) -> (vector<64x128xf32>) {
      %row = affine.apply affine_map<(d0) -> (d0 * 8)>(%k)
      %first = affine.apply affine_map<(d0) -> (d0 * 16)>(%k)
      %vs = memref.subview %panel[%row, 0] [32, 128] [1, 1]
        : memref<64x128xf16, strided<[4096, 1], offset: ?>> to memref<32x128xf16, strided<[4096, 1], offset: ?>>
      %xs = memref.subview %x[%first, 0] [64, 64] [1, 1]
        : memref<128x64xf16> to memref<64x64xf16, strided<[64, 1], offset: ?>>
      %is = memref.subview %i[%row, 0] [32, 1] [1, 1]
        : memref<64x1xi8> to memref<32x1xi8, strided<[1, 1], offset: ?>>
      nm_tile.async_copy ins(%vs : memref<32x128xf16, strided<[4096, 1], offset: ?>>) outs(%vt : !tile)
      nm_tile.async_gather #w ins(%xs, %is : memref<64x64xf16, strided<[64, 1], offset: ?>>, memref<32x1xi8, strided<[1, 1], offset: ?>>)
        outs(%xt : memref<32x64xf16, #nm_tile.shared<swizzled_blocks>>)
      %r = nm_tile.matmul #w schedule = #s condensed
        ins(%xt, %vt : memref<32x64xf16, #nm_tile.shared<swizzled_blocks>>, !tile)
        acc(%acc : vector<64x128xf32>) -> vector<64x128xf32>
      nm_tile.yield %r : vector<64x128xf32>
    }
    gpu.terminator
  }
  return
}

// -----

#w = #nm_sparse.encoding<8:16, block = [1, 128]>
#s = #nm_tile.schedule<tile = [64, 128, 32], product = wgmma<warps = [1, 8]>, transfers = {x = gather, values = bulk, index = resident}, pipeline = ring<stages = 3, producers = 4>, grid = flat>
!tile = memref<32x128xf16, #nm_tile.shared<swizzled_blocks>>

// Rows may lie apart, which the map says; elements of a row may not.

// CHECK-LABEL: func @rows_with_gaps(
// CHECK: nvgpu.tma.create.descriptor {{.*}} box[%c32, %c64]
// CHECK: nm_tile.bulk_copy
// CHECK-NOT: nm_tile.async_copy
func.func @rows_with_gaps(%v: memref<64x128xf16, strided<[4096, 1]>>, %xt: memref<32x64xf16, #nm_tile.shared<swizzled_blocks>>) {
  %c1 = arith.constant 1 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %c0 = arith.constant 0 : index
    %c2 = arith.constant 2 : index
    %c4 = arith.constant 4 : index
    %zero = arith.constant dense<0.0> : vector<64x128xf32>
    %vt = memref.alloc() : !tile
    %sum = nm_tile.k_loop %k = %c0 to %c4 step %c2 iter_args(%acc = %zero) -> (vector<64x128xf32>) {
      %row = affine.apply affine_map<(d0) -> (d0 * 16)>(%k)
      %vs = memref.subview %v[%row, 0] [32, 128] [1, 1]
        : memref<64x128xf16, strided<[4096, 1]>> to memref<32x128xf16, strided<[4096, 1], offset: ?>>
      nm_tile.async_copy ins(%vs : memref<32x128xf16, strided<[4096, 1], offset: ?>>) outs(%vt : !tile)
      %r = nm_tile.matmul #w schedule = #s condensed
        ins(%xt, %vt : memref<32x64xf16, #nm_tile.shared<swizzled_blocks>>, !tile)
        acc(%acc : vector<64x128xf32>) -> vector<64x128xf32>
      nm_tile.yield %r : vector<64x128xf32>
    }
    gpu.terminator
  }
  return
}

// -----

#w = #nm_sparse.encoding<8:16, block = [1, 128]>
#s = #nm_tile.schedule<tile = [64, 128, 32], product = wgmma<warps = [1, 8]>, transfers = {x = gather, values = bulk, index = resident}, pipeline = ring<stages = 3, producers = 4>, grid = flat>
!tile = memref<32x128xf16, #nm_tile.shared<swizzled_blocks>>

func.func @strided(%v: memref<64x128xf16, strided<[4096, 2]>>, %xt: memref<32x64xf16, #nm_tile.shared<swizzled_blocks>>) {
  %c1 = arith.constant 1 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %zero = arith.constant dense<0.0> : vector<64x128xf32>
    %vt = memref.alloc() : !tile
    %vs = memref.subview %v[0, 0] [32, 128] [1, 1]
      : memref<64x128xf16, strided<[4096, 2]>> to memref<32x128xf16, strided<[4096, 2]>>
    // expected-error @below {{cannot become a bulk copy: its source must be a view of a buffer of contiguous rows, got 'memref<64x128xf16, strided<[4096, 2]>>'}}
    nm_tile.async_copy ins(%vs : memref<32x128xf16, strided<[4096, 2]>>) outs(%vt : !tile)
    %r = nm_tile.matmul #w schedule = #s condensed
      ins(%xt, %vt : memref<32x64xf16, #nm_tile.shared<swizzled_blocks>>, !tile)
      acc(%zero : vector<64x128xf32>) -> vector<64x128xf32>
    gpu.terminator
  }
  return
}

// -----

#w = #nm_sparse.encoding<8:16, block = [1, 128]>
#s = #nm_tile.schedule<tile = [64, 128, 24], product = wgmma<warps = [1, 8]>, transfers = {x = gather, values = bulk, index = resident}, pipeline = ring<stages = 3, producers = 4>, grid = flat>
!tile = memref<32x128xf16, #nm_tile.shared<swizzled_blocks>>

func.func @rows(%v: memref<64x128xf16>, %xt: memref<32x64xf16, #nm_tile.shared<swizzled_blocks>>) {
  %c1 = arith.constant 1 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %zero = arith.constant dense<0.0> : vector<64x128xf32>
    %vt = memref.alloc() : !tile
    %vs = memref.subview %v[0, 0] [24, 128] [1, 1] : memref<64x128xf16> to memref<24x128xf16, strided<[128, 1]>>
    nm_tile.async_copy ins(%vs : memref<24x128xf16, strided<[128, 1]>>) outs(%vt : !tile)
    // expected-error @below {{with values = bulk needs K steps of a multiple of 16, at most 256 kept rows, got 24: change the windows of the tile or use values = copy}}
    %r = nm_tile.matmul #w schedule = #s condensed
      ins(%xt, %vt : memref<32x64xf16, #nm_tile.shared<swizzled_blocks>>, !tile)
      acc(%zero : vector<64x128xf32>) -> vector<64x128xf32>
    gpu.terminator
  }
  return
}

// -----

#w = #nm_sparse.encoding<8:16, block = [1, 128]>
#s = #nm_tile.schedule<tile = [64, 128, 512], product = wgmma<warps = [1, 8]>, transfers = {x = gather, values = bulk, index = resident}, pipeline = ring<stages = 3, producers = 4>, grid = flat>
!tile = memref<512x128xf16, #nm_tile.shared<swizzled_blocks>>

func.func @long_boxes(%v: memref<1024x128xf16>, %xt: memref<512x64xf16, #nm_tile.shared<swizzled_blocks>>) {
  %c1 = arith.constant 1 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %zero = arith.constant dense<0.0> : vector<64x128xf32>
    %vt = memref.alloc() : !tile
    %vs = memref.subview %v[0, 0] [512, 128] [1, 1] : memref<1024x128xf16> to memref<512x128xf16, strided<[128, 1]>>
    nm_tile.async_copy ins(%vs : memref<512x128xf16, strided<[128, 1]>>) outs(%vt : !tile)
    // expected-error @below {{with values = bulk needs K steps of a multiple of 16, at most 256 kept rows, got 512: change the windows of the tile or use values = copy}}
    %r = nm_tile.matmul #w schedule = #s condensed
      ins(%xt, %vt : memref<512x64xf16, #nm_tile.shared<swizzled_blocks>>, !tile)
      acc(%zero : vector<64x128xf32>) -> vector<64x128xf32>
    gpu.terminator
  }
  return
}

// -----

#e = #nm_sparse.encoding<8:16>
#s = #nm_tile.schedule<tile = [64, 64, 32], product = wgmma_expand<warps = 4, segments = true>, transfers = {x = bulk, values = bulk, index = bulk}, pipeline = ring<stages = 2, producers = 4>>
!values = memref<2x2x512xf16, #nm_tile.shared<segment_lines>>
!bits = memref<2x2x32xi32, #nm_tile.shared<column_blocks>>
!rows = memref<64x64xf16, #nm_tile.shared<swizzled_blocks>>

// A map has five dimensions, which rows of a batch would be one more than.
func.func @segments_of_batches(%x: memref<3x256x64xf16>, %v: memref<2x8x512xf16>, %b: memref<2x8x32xi32>) {
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c256 = arith.constant 256 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c3)
             threads(%tx, %ty, %tz) in (%sx = %c256, %sy = %c1, %sz = %c1) {
    %c0 = arith.constant 0 : index
    %c4 = arith.constant 4 : index
    %c16 = arith.constant 16 : index
    %zero = arith.constant dense<0.0> : vector<64x64xf32>
    %vt = memref.alloc() : !values
    %bt = memref.alloc() : !bits
    %xt = memref.alloc() : !rows
    %sum = nm_tile.k_loop %k = %c0 to %c16 step %c4 iter_args(%acc = %zero) -> (vector<64x64xf32>) {
      %tile = affine.apply affine_map<(d0) -> (d0 floordiv 2)>(%k)
      %row = affine.apply affine_map<(d0) -> (d0 * 16)>(%k)
      %vs = memref.subview %v[0, %tile, 0] [2, 2, 512] [1, 1, 1] : memref<2x8x512xf16> to memref<2x2x512xf16, strided<[4096, 512, 1], offset: ?>>
      %bs = memref.subview %b[0, %tile, 0] [2, 2, 32] [1, 1, 1] : memref<2x8x32xi32> to memref<2x2x32xi32, strided<[256, 32, 1], offset: ?>>
      %xs = memref.subview %x[%bz, %row, 0] [1, 64, 64] [1, 1, 1] : memref<3x256x64xf16> to memref<64x64xf16, strided<[64, 1], offset: ?>>
      nm_tile.async_copy ins(%vs : memref<2x2x512xf16, strided<[4096, 512, 1], offset: ?>>) outs(%vt : !values)
      nm_tile.async_copy ins(%bs : memref<2x2x32xi32, strided<[256, 32, 1], offset: ?>>) outs(%bt : !bits)
      // expected-error @below {{cannot become a bulk copy of segments: its source is in a buffer of 3 dimensions, must be of the 2 of the tile}}
      nm_tile.async_copy ins(%xs : memref<64x64xf16, strided<[64, 1], offset: ?>>) outs(%xt : !rows)
      %r = nm_tile.matmul #e storage = #nm_sparse.bitmap<#e> schedule = #s ins(%xt, %vt, %bt : !rows, !values, !bits)
        acc(%acc : vector<64x64xf32>) -> vector<64x64xf32>
      nm_tile.yield %r : vector<64x64xf32>
    }
    gpu.terminator
  }
  return
}
