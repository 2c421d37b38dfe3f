// RUN: nm-opt %s --nm-sparse-persist --canonicalize --cse --split-input-file | FileCheck %s

#w = #nm_sparse.encoding<8:32, block = [1, 128]>
#s = #nm_tile.schedule<tile = [64, 128, 16], product = mma<warps = [2, 4]>, transfers = {x = gather, values = copy, index = resident}, pipeline = ring<stages = 3, producers = 4>, grid = persistent>

// 64 x 32 tiles on the 132 SMs of the chip.

// CHECK-LABEL: func @tiles
// CHECK: gpu.launch blocks(%[[BX:.*]], %{{.*}}, %{{.*}}) in (%[[GX:.*]] = %c132, %{{.*}} = %c1, %{{.*}} = %c1)
// CHECK-NOT: affine.apply
// CHECK: %[[RING:.*]] = nm_tile.ring

// The consumers. Groups of 16 tiles are 1024 tokens.
// CHECK: nm_tile.warp_specialize consumers = 256 registers = 216 {
// CHECK: %[[BEGIN:.*]] = nm_tile.ring_begin full %[[RING]]
// CHECK: nm_tile.tile_loop %[[TILE:.*]] = %[[BX]] to %c2048 step %[[GX]] iter_args(%[[AT:.*]] = %[[BEGIN]])
// CHECK: %[[SUM:.*]]:2 = nm_tile.k_loop {{.*}} iter_args(%{{.*}} = %{{.*}}, %{{.*}} = %[[AT]])
// CHECK: nm_tile.matmul
// CHECK: nm_tile.yield
// What the epilogue alone needs stands behind the K loop.
// CHECK-DAG: arith.divui %{{.*}}, %c512_i32
// CHECK-DAG: arith.minui %{{.*}}, %c16_i32
// CHECK: vector.transfer_write %[[SUM]]#0
// CHECK: nm_tile.yield %[[SUM]]#1

// The producers wait until all have left the index of the tile before.
// CHECK: } producers = 128 registers = 72 {
// CHECK: %[[BEGIN:.*]] = nm_tile.ring_begin empty %[[RING]]
// CHECK: nm_tile.tile_loop %{{.*}} = %[[BX]] to %c2048 step %[[GX]] iter_args(%[[AT:.*]] = %[[BEGIN]])
// CHECK: nm_tile.role_barrier
// CHECK-NEXT: nm_tile.async_copy
// CHECK-NEXT: nm_tile.role_barrier
// CHECK: %[[END:.*]] = nm_tile.k_loop {{.*}} iter_args(%{{.*}} = %[[AT]])
// CHECK: nm_tile.yield %[[END]]
func.func @tiles(%i: memref<64x32xi8>, %out: memref<4096x4096xf32>) {
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  %c384 = arith.constant 384 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c64, %gy = %c32, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c384, %sy = %c1, %sz = %c1) {
    %c0 = arith.constant 0 : index
    %c2 = arith.constant 2 : index
    %c8 = arith.constant 8 : index
    %zero = arith.constant dense<0.0> : vector<64x128xf32>
    %m = affine.apply affine_map<(d0) -> (d0 * 64)>(%bx)
    %n = affine.apply affine_map<(d0) -> (d0 * 128)>(%by)
    %it = memref.alloc() : memref<64x1xi8, 3>
    %vt = memref.alloc() : memref<16x128xf16, #nm_tile.shared<swizzled_rows>>
    %xt = memref.alloc() : memref<16x64xf16, #nm_tile.shared<swizzled_rows>>
    %ip = memref.subview %i[0, %by] [64, 1] [1, 1]
      : memref<64x32xi8> to memref<64x1xi8, strided<[32, 1], offset: ?>>
    %ring = nm_tile.ring full = 132 empty = 8 : !nm_tile.ring<3>
    nm_tile.warp_specialize consumers = 256 registers = 216 {
      %begin = nm_tile.ring_begin full %ring : !nm_tile.ring<3>
      %sum:2 = nm_tile.k_loop %k = %c0 to %c8 step %c2 iter_args(%acc = %zero, %at = %begin)
          -> (vector<64x128xf32>, !nm_tile.ring_position) {
        nm_tile.ring_wait full %ring[%at] : !nm_tile.ring<3>
        %r = nm_tile.matmul #w schedule = #s condensed
          ins(%xt, %vt : memref<16x64xf16, #nm_tile.shared<swizzled_rows>>, memref<16x128xf16, #nm_tile.shared<swizzled_rows>>)
          acc(%acc : vector<64x128xf32>) -> vector<64x128xf32>
        %next = nm_tile.ring_advance %ring[%at] by 1 : !nm_tile.ring<3>
        nm_tile.yield %r, %next : vector<64x128xf32>, !nm_tile.ring_position
      }
      vector.transfer_write %sum#0, %out[%m, %n] {in_bounds = [true, true]}
        : vector<64x128xf32>, memref<4096x4096xf32>
    } producers = 128 registers = 72 {
      nm_tile.async_copy threads = [256, 128]
        ins(%ip : memref<64x1xi8, strided<[32, 1], offset: ?>>) outs(%it : memref<64x1xi8, 3>)
      nm_tile.role_barrier
      %begin = nm_tile.ring_begin empty %ring : !nm_tile.ring<3>
      %end = nm_tile.k_loop %k = %c0 to %c8 step %c2 iter_args(%at = %begin)
          -> (!nm_tile.ring_position) {
        nm_tile.ring_wait empty %ring[%at] : !nm_tile.ring<3>
        %next = nm_tile.ring_advance %ring[%at] by 1 : !nm_tile.ring<3>
        nm_tile.yield %next : !nm_tile.ring_position
      }
    }
    gpu.terminator
  }
  return
}

// -----

#w = #nm_sparse.encoding<8:32, block = [1, 128]>
#s = #nm_tile.schedule<tile = [64, 128, 16], product = mma<warps = [2, 4]>, transfers = {x = gather, values = copy, index = resident}, pipeline = ring<stages = 3, producers = 4>, grid = persistent>

// Where panels have K steps of their own, 9 tiles along tokens by all 32 along
// outputs are a group, for two turns of all CTAs, of which the second goes back.

// CHECK-LABEL: func @ragged
// CHECK: producers = 128
// CHECK: nm_tile.tile_loop %[[TILE:.*]] = %{{.*}} to %c2048 step
// CHECK: %[[CTAS:.*]] = arith.index_castui %{{.*}} : index to i32
// CHECK: %[[NUMBER:.*]] = arith.index_castui %[[TILE]] : index to i32
// CHECK: %[[TURN:.*]] = arith.divui %[[NUMBER]], %[[CTAS]]
// CHECK: %[[SIDE:.*]] = arith.remui %[[TURN]], %c2_i32
// CHECK: %[[ODD:.*]] = arith.cmpi eq, %[[SIDE]], %c1_i32
// CHECK: %[[NEXT:.*]] = arith.addi %[[NUMBER]], %c1_i32
// CHECK: %[[BACK:.*]] = arith.subi %{{.*}}, %[[NEXT]] : i32
// CHECK: %[[TAKEN:.*]] = arith.select %[[ODD]], %[[BACK]], %[[NUMBER]]
// CHECK: %[[GROUP:.*]] = arith.divui %[[TAKEN]], %c288_i32
// CHECK: %[[FIRST:.*]] = arith.muli %[[GROUP]], %c9_i32
// CHECK: %[[LEFT:.*]] = arith.subi %c64_i32, %[[FIRST]]
// CHECK: %[[WIDTH:.*]] = arith.minui %[[LEFT]], %c9_i32
// CHECK: %[[PLACE:.*]] = arith.remui %[[TAKEN]], %c288_i32
// CHECK: arith.divui %[[PLACE]], %[[WIDTH]]
func.func @ragged(%i: memref<64x32xi8>, %out: memref<4096x4096xf32>, %steps: index) {
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  %c384 = arith.constant 384 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c64, %gy = %c32, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c384, %sy = %c1, %sz = %c1) {
    %c0 = arith.constant 0 : index
    %c2 = arith.constant 2 : index
    %zero = arith.constant dense<0.0> : vector<64x128xf32>
    %m = affine.apply affine_map<(d0) -> (d0 * 64)>(%bx)
    %n = affine.apply affine_map<(d0) -> (d0 * 128)>(%by)
    %it = memref.alloc() : memref<64x1xi8, 3>
    %vt = memref.alloc() : memref<16x128xf16, #nm_tile.shared<swizzled_rows>>
    %xt = memref.alloc() : memref<16x64xf16, #nm_tile.shared<swizzled_rows>>
    %ip = memref.subview %i[0, %by] [64, 1] [1, 1]
      : memref<64x32xi8> to memref<64x1xi8, strided<[32, 1], offset: ?>>
    %ring = nm_tile.ring full = 132 empty = 8 : !nm_tile.ring<3>
    nm_tile.warp_specialize consumers = 256 registers = 216 {
      %begin = nm_tile.ring_begin full %ring : !nm_tile.ring<3>
      %sum:2 = nm_tile.k_loop %k = %c0 to %steps step %c2 iter_args(%acc = %zero, %at = %begin)
          -> (vector<64x128xf32>, !nm_tile.ring_position) {
        nm_tile.ring_wait full %ring[%at] : !nm_tile.ring<3>
        %r = nm_tile.matmul #w schedule = #s condensed
          ins(%xt, %vt : memref<16x64xf16, #nm_tile.shared<swizzled_rows>>, memref<16x128xf16, #nm_tile.shared<swizzled_rows>>)
          acc(%acc : vector<64x128xf32>) -> vector<64x128xf32>
        %next = nm_tile.ring_advance %ring[%at] by 1 : !nm_tile.ring<3>
        nm_tile.yield %r, %next : vector<64x128xf32>, !nm_tile.ring_position
      }
      vector.transfer_write %sum#0, %out[%m, %n] {in_bounds = [true, true]}
        : vector<64x128xf32>, memref<4096x4096xf32>
    } producers = 128 registers = 72 {
      nm_tile.async_copy threads = [256, 128]
        ins(%ip : memref<64x1xi8, strided<[32, 1], offset: ?>>) outs(%it : memref<64x1xi8, 3>)
      nm_tile.role_barrier
      %begin = nm_tile.ring_begin empty %ring : !nm_tile.ring<3>
      %end = nm_tile.k_loop %k = %c0 to %steps step %c2 iter_args(%at = %begin)
          -> (!nm_tile.ring_position) {
        nm_tile.ring_wait empty %ring[%at] : !nm_tile.ring<3>
        %next = nm_tile.ring_advance %ring[%at] by 1 : !nm_tile.ring<3>
        nm_tile.yield %next : !nm_tile.ring_position
      }
    }
    gpu.terminator
  }
  return
}
