// RUN: nm-opt %s --nm-sparse-stream-k --canonicalize --cse --split-input-file | FileCheck %s

#w = #nm_sparse.encoding<8:32, block = [1, 128]>
#s = #nm_tile.schedule<tile = [64, 128, 16], product = mma<warps = [2, 4]>, transfers = {x = gather, values = copy, index = resident}, pipeline = ring<stages = 3, producers = 4>, grid = persistent<stream_k = true>>

// 200 tiles of 4 K steps, 800 steps for 132 CTAs: 7 each.

// CHECK-LABEL: func @shares
// CHECK: %[[PARTS:.*]] = gpu.alloc (%c132) : memref<?x2x64x128xf32>
// CHECK: %[[COUNTERS:.*]] = gpu.alloc (%c132) : memref<?xi32>
// CHECK: gpu.memset %[[COUNTERS]], %c0_i32
// CHECK: gpu.launch blocks(%[[BX:[^ ]*]], %{{.*}}) in (%{{[^ ]*}} = %c132,
// CHECK: %[[CTA:.*]] = arith.index_castui %[[BX]] : index to i32
// CHECK: %[[AT:.*]] = arith.muli %[[CTA]], %c7_i32
// CHECK: %[[FIRST:.*]] = arith.minui %[[AT]], %c800_i32
// CHECK: %[[NEXT:.*]] = arith.addi %[[FIRST]], %c7_i32
// CHECK: %[[END:.*]] = arith.minui %[[NEXT]], %c800_i32
// CHECK: %[[FIRST_TILE:.*]] = arith.divui %[[FIRST]], %c4_i32
// CHECK: %[[LAST:.*]] = arith.ceildivui %[[END]], %c4_i32
// CHECK: arith.subi %[[LAST]], %[[FIRST_TILE]]

// CHECK: nm_tile.tile_loop %[[ITEM:.*]] = %c0 to %[[ITEMS:.*]] step %c1 iter_args(
// CHECK-DAG: %[[STOP:.*]] = arith.select %{{.*}}, %c4_i32, %{{.*}} : i32
// CHECK-DAG: %[[BEGIN:.*]] = arith.select %{{.*}}, %c0_i32, %{{.*}} : i32
// CHECK: %[[SUM:.*]]:2 = nm_tile.k_loop
// CHECK: %[[NO_BEGIN:.*]] = arith.cmpi ne, %[[BEGIN]], %c0_i32
// CHECK: %[[NO_END:.*]] = arith.cmpi ne, %[[STOP]], %c4_i32
// CHECK: %[[IS_PART:.*]] = arith.ori %[[NO_BEGIN]], %[[NO_END]]
// CHECK: %[[SLOT_WORD:.*]] = arith.select %[[NO_BEGIN]], %[[CTA]],
// CHECK: %[[SLOT:.*]] = arith.index_castui %[[SLOT_WORD]]
// CHECK: %[[PART:.*]] = arith.index_castui %[[NO_BEGIN]] : i1 to index
// CHECK: %[[OTHER:.*]] = arith.index_castui %[[NO_END]] : i1 to index

// Who has the begin of a tile looks first whether the end is there. It leaves
// nothing that the others' accesses must come before, and reads nothing where
// it is not there.
// CHECK: %[[SECOND:.*]] = scf.if %[[IS_PART]] -> (i1)
// CHECK: %[[IS_THERE:.*]] = scf.if %[[NO_BEGIN]] -> (i1)
// CHECK: scf.yield %false
// CHECK-NOT: nm_tile.role_barrier
// CHECK-NOT: nvvm.memory.barrier
// CHECK: %[[THERE:.*]] = memref.atomic_rmw addi %c0_i32, %[[COUNTERS]][%[[SLOT]]]
// CHECK: %[[OTHER_THERE:.*]] = arith.cmpi eq, %[[THERE]], %c1_i32
// CHECK: scf.if %[[OTHER_THERE]]
// CHECK-NEXT: nvvm.memory.barrier <gpu>
// CHECK-NEXT: memref.store %c0_i32, %[[COUNTERS]][%[[SLOT]]]
// CHECK: nm_tile.role_barrier
// CHECK: scf.if %[[IS_THERE]] -> (i1)
// CHECK: scf.yield %true
// CHECK: nm_tile.store_part %[[SUM]]#0, %[[PARTS]][%[[SLOT]], %[[PART]]]
// CHECK: nm_tile.role_barrier
// CHECK: nvvm.memory.barrier <gpu>
// CHECK-NEXT: %[[BEFORE:.*]] = memref.atomic_rmw addi %c1_i32, %[[COUNTERS]][%[[SLOT]]]
// CHECK: %[[LAST_OF_TWO:.*]] = arith.cmpi eq, %[[BEFORE]], %c1_i32
// CHECK: scf.if %[[LAST_OF_TWO]]
// CHECK-NEXT: nvvm.memory.barrier <gpu>
// CHECK-NEXT: memref.store %c0_i32, %[[COUNTERS]][%[[SLOT]]]
// CHECK: nm_tile.role_barrier

// CHECK: %[[BOTH:.*]] = scf.if %[[SECOND]] -> (vector<64x128xf32>)
// CHECK: %[[READ:.*]] = nm_tile.load_part %[[PARTS]][%[[SLOT]], %[[OTHER]]]
// CHECK: arith.addf %[[SUM]]#0, %[[READ]]
// CHECK: %[[IS_ALL:.*]] = arith.xori %[[IS_PART]], %true
// CHECK: %[[DONE:.*]] = arith.ori %[[SECOND]], %[[IS_ALL]]
// CHECK: scf.if %[[DONE]]
// What the epilogue alone needs stands behind the K loop.
// CHECK: %[[NUMBER:.*]] = arith.select
// CHECK: %[[TILE:.*]] = arith.index_castui %[[NUMBER]]
// CHECK: vector.transfer_write %[[BOTH]], %{{.*}}[%[[TILE]], %[[TILE]]]
// CHECK: nm_tile.yield %[[SUM]]#1

// CHECK: } producers
// CHECK: nm_tile.tile_loop %{{.*}} = %c0 to %[[ITEMS]] step %c1
// CHECK: nm_tile.k_loop
// CHECK: gpu.dealloc %[[PARTS]]
// CHECK: gpu.dealloc %[[COUNTERS]]
func.func @shares(%x: memref<16x64xf16, #nm_tile.shared<swizzled_rows>>, %v: memref<16x128xf16, #nm_tile.shared<swizzled_rows>>, %out: memref<4096x4096xf32>) {
  %c1 = arith.constant 1 : index
  %c132 = arith.constant 132 : index
  %c384 = arith.constant 384 : index
  %c200 = arith.constant 200 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c132, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c384, %sy = %c1, %sz = %c1) {
    %c0 = arith.constant 0 : index
    %c2 = arith.constant 2 : index
    %c8 = arith.constant 8 : index
    %zero = arith.constant dense<0.0> : vector<64x128xf32>
    %ring = nm_tile.ring full = 132 empty = 8 : !nm_tile.ring<3>
    nm_tile.warp_specialize consumers = 256 {
      %begin = nm_tile.ring_begin full %ring : !nm_tile.ring<3>
      %end = nm_tile.tile_loop %tile = %bx to %c200 step %gx iter_args(%here = %begin)
          -> (!nm_tile.ring_position) {
        %sum:2 = nm_tile.k_loop %k = %c0 to %c8 step %c2
            iter_args(%acc = %zero, %at = %here) -> (vector<64x128xf32>, !nm_tile.ring_position) {
          %r = nm_tile.matmul #w schedule = #s condensed
            ins(%x, %v : memref<16x64xf16, #nm_tile.shared<swizzled_rows>>, memref<16x128xf16, #nm_tile.shared<swizzled_rows>>)
            acc(%acc : vector<64x128xf32>) -> vector<64x128xf32>
          nm_tile.ring_release %ring[%at] : !nm_tile.ring<3>
          %next = nm_tile.ring_advance %ring[%at] by 1 : !nm_tile.ring<3>
          nm_tile.yield %r, %next : vector<64x128xf32>, !nm_tile.ring_position
        }
        vector.transfer_write %sum#0, %out[%tile, %tile] {in_bounds = [true, true]}
          : vector<64x128xf32>, memref<4096x4096xf32>
        nm_tile.yield %sum#1 : !nm_tile.ring_position
      }
    } producers = 128 {
      %begin = nm_tile.ring_begin empty %ring : !nm_tile.ring<3>
      %end = nm_tile.tile_loop %tile = %bx to %c200 step %gx iter_args(%here = %begin)
          -> (!nm_tile.ring_position) {
        %filled = nm_tile.k_loop %k = %c0 to %c8 step %c2 iter_args(%at = %here)
            -> (!nm_tile.ring_position) {
          nm_tile.ring_commit %ring[%at] : !nm_tile.ring<3>
          %next = nm_tile.ring_advance %ring[%at] by 1 : !nm_tile.ring<3>
          nm_tile.yield %next : !nm_tile.ring_position
        }
        nm_tile.yield %filled : !nm_tile.ring_position
      }
    }
    gpu.terminator
  }
  return
}

// -----

#w = #nm_sparse.encoding<8:32, block = [1, 128]>
#s = #nm_tile.schedule<tile = [64, 128, 16], product = wgmma<warps = [1, 8]>, transfers = {x = gather, values = copy, index = resident}, pipeline = ring<stages = 3, producers = 4>, grid = persistent<stream_k = true>>

// The number of tiles is known at run time, and the sum starts from something.
// A CTA has as many whole tiles as leave one to two for each, and at least one
// tile at a time. The tile is over when the last product is.

// CHECK-LABEL: func @dynamic
// CHECK: %[[TILES:.*]] = arith.index_castui %arg4 : index to i32
// CHECK: %[[WAVES:.*]] = arith.divui %[[TILES]], %c132_i32
// CHECK: %[[SOME:.*]] = arith.maxui %[[WAVES]], %c1_i32
// CHECK: %[[WHOLE:.*]] = arith.subi %[[SOME]], %c1_i32
// CHECK: %[[ALL:.*]] = arith.muli %[[WHOLE]], %c132_i32
// CHECK: %[[LEFT:.*]] = arith.subi %[[TILES]], %[[ALL]]
// CHECK: %[[TOTAL:.*]] = arith.muli %[[LEFT]], %c4_i32
// CHECK: %[[EVEN:.*]] = arith.ceildivui %[[TOTAL]], %c132_i32
// CHECK: %[[SHARE:.*]] = arith.maxui %[[EVEN]], %c4_i32
// CHECK: arith.muli %{{.*}}, %[[SHARE]]

// CHECK: nm_tile.tile_loop
// CHECK-NOT: vector.transfer_read
// CHECK: arith.cmpi ult, %{{.*}}, %[[WHOLE]]
// CHECK: %[[BEGIN:.*]] = arith.select %{{.*}}, %c0_i32, %{{.*}} : i32
// CHECK: %[[BEGIN_INDEX:.*]] = arith.index_castui %[[BEGIN]]
// CHECK: %[[LOWER:.*]] = arith.muli %[[BEGIN_INDEX]], %c2
// CHECK: %[[HAS_BEGIN:.*]] = arith.cmpi eq, %[[BEGIN]], %c0_i32
// CHECK: %[[INIT:.*]] = scf.if %[[HAS_BEGIN]] -> (vector<64x128xf32>)
// CHECK-NEXT: vector.transfer_read
// CHECK: nm_tile.k_loop %{{.*}} = %[[LOWER]] to %{{.*}} step %c2 iter_args(%{{.*}} = %[[INIT]],
// CHECK: nm_tile.ring_drain {{.*}} release(%true)
// CHECK: scf.if %{{.*}} -> (i1)
// CHECK: scf.if
// CHECK: vector.transfer_write
func.func @dynamic(%x: memref<16x64xf16, #nm_tile.shared<swizzled_blocks>>, %v: memref<16x128xf16, #nm_tile.shared<swizzled_blocks>>, %out: memref<4096x4096xf32>,
                   %init: memref<64x128xf32>, %tiles: index) {
  %c1 = arith.constant 1 : index
  %c132 = arith.constant 132 : index
  %c384 = arith.constant 384 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c132, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c384, %sy = %c1, %sz = %c1) {
    %c0 = arith.constant 0 : index
    %c2 = arith.constant 2 : index
    %c8 = arith.constant 8 : index
    %padding = arith.constant 0.0 : f32
    %any = arith.constant true
    %ring = nm_tile.ring full = 132 empty = 8 : !nm_tile.ring<3>
    nm_tile.warp_specialize consumers = 256 {
      %begin = nm_tile.ring_begin full %ring : !nm_tile.ring<3>
      %end = nm_tile.tile_loop %tile = %bx to %tiles step %gx iter_args(%here = %begin)
          -> (!nm_tile.ring_position) {
        %start = vector.transfer_read %init[%c0, %c0], %padding {in_bounds = [true, true]}
          : memref<64x128xf32>, vector<64x128xf32>
        %sum:2 = nm_tile.k_loop %k = %c0 to %c8 step %c2
            iter_args(%acc = %start, %at = %here) -> (vector<64x128xf32>, !nm_tile.ring_position) {
          %r = nm_tile.matmul #w schedule = #s condensed in_flight
            ins(%x, %v : memref<16x64xf16, #nm_tile.shared<swizzled_blocks>>, memref<16x128xf16, #nm_tile.shared<swizzled_blocks>>)
            acc(%acc : vector<64x128xf32>) -> vector<64x128xf32>
          nm_tile.ring_release late %ring[%at] : !nm_tile.ring<3>
          %next = nm_tile.ring_advance %ring[%at] by 1 : !nm_tile.ring<3>
          nm_tile.yield %r, %next : vector<64x128xf32>, !nm_tile.ring_position
        }
        nm_tile.ring_drain %ring[%sum#1] release(%any) : !nm_tile.ring<3>
        vector.transfer_write %sum#0, %out[%tile, %tile] {in_bounds = [true, true]}
          : vector<64x128xf32>, memref<4096x4096xf32>
        nm_tile.yield %sum#1 : !nm_tile.ring_position
      }
    } producers = 128 {
      %begin = nm_tile.ring_begin empty %ring : !nm_tile.ring<3>
      %end = nm_tile.tile_loop %tile = %bx to %tiles step %gx iter_args(%here = %begin)
          -> (!nm_tile.ring_position) {
        %filled = nm_tile.k_loop %k = %c0 to %c8 step %c2 iter_args(%at = %here)
            -> (!nm_tile.ring_position) {
          nm_tile.ring_commit %ring[%at] : !nm_tile.ring<3>
          %next = nm_tile.ring_advance %ring[%at] by 1 : !nm_tile.ring<3>
          nm_tile.yield %next : !nm_tile.ring_position
        }
        nm_tile.yield %filled : !nm_tile.ring_position
      }
    }
    gpu.terminator
  }
  return
}

// -----

#w = #nm_sparse.encoding<8:32, block = [1, 128]>
#s = #nm_tile.schedule<tile = [64, 128, 16], product = mma<warps = [2, 4]>, transfers = {x = gather, values = copy, index = resident}, pipeline = ring<stages = 3, producers = 4>, grid = persistent<stream_k = true>>

// Two whole tiles for each CTA.

// CHECK-LABEL: func @even
// CHECK-NOT: gpu.alloc
// CHECK: nm_tile.tile_loop %{{.*}} = %{{.*}} to %c264 step
func.func @even(%x: memref<16x64xf16, #nm_tile.shared<swizzled_rows>>, %v: memref<16x128xf16, #nm_tile.shared<swizzled_rows>>, %out: memref<4096x4096xf32>) {
  %c1 = arith.constant 1 : index
  %c132 = arith.constant 132 : index
  %c384 = arith.constant 384 : index
  %c264 = arith.constant 264 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c132, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c384, %sy = %c1, %sz = %c1) {
    %c0 = arith.constant 0 : index
    %c2 = arith.constant 2 : index
    %c8 = arith.constant 8 : index
    %zero = arith.constant dense<0.0> : vector<64x128xf32>
    %ring = nm_tile.ring full = 132 empty = 8 : !nm_tile.ring<3>
    nm_tile.warp_specialize consumers = 256 {
      %begin = nm_tile.ring_begin full %ring : !nm_tile.ring<3>
      %end = nm_tile.tile_loop %tile = %bx to %c264 step %gx iter_args(%here = %begin)
          -> (!nm_tile.ring_position) {
        %sum:2 = nm_tile.k_loop %k = %c0 to %c8 step %c2
            iter_args(%acc = %zero, %at = %here) -> (vector<64x128xf32>, !nm_tile.ring_position) {
          %r = nm_tile.matmul #w schedule = #s condensed
            ins(%x, %v : memref<16x64xf16, #nm_tile.shared<swizzled_rows>>, memref<16x128xf16, #nm_tile.shared<swizzled_rows>>)
            acc(%acc : vector<64x128xf32>) -> vector<64x128xf32>
          nm_tile.ring_release %ring[%at] : !nm_tile.ring<3>
          %next = nm_tile.ring_advance %ring[%at] by 1 : !nm_tile.ring<3>
          nm_tile.yield %r, %next : vector<64x128xf32>, !nm_tile.ring_position
        }
        vector.transfer_write %sum#0, %out[%tile, %tile] {in_bounds = [true, true]}
          : vector<64x128xf32>, memref<4096x4096xf32>
        nm_tile.yield %sum#1 : !nm_tile.ring_position
      }
    } producers = 128 {
      %begin = nm_tile.ring_begin empty %ring : !nm_tile.ring<3>
      %end = nm_tile.tile_loop %tile = %bx to %c264 step %gx iter_args(%here = %begin)
          -> (!nm_tile.ring_position) {
        %filled = nm_tile.k_loop %k = %c0 to %c8 step %c2 iter_args(%at = %here)
            -> (!nm_tile.ring_position) {
          nm_tile.ring_commit %ring[%at] : !nm_tile.ring<3>
          %next = nm_tile.ring_advance %ring[%at] by 1 : !nm_tile.ring<3>
          nm_tile.yield %next : !nm_tile.ring_position
        }
        nm_tile.yield %filled : !nm_tile.ring_position
      }
    }
    gpu.terminator
  }
  return
}

// -----

#w = #nm_sparse.encoding<8:32, block = [1, 128]>
#s = #nm_tile.schedule<tile = [64, 128, 16], product = mma<warps = [2, 4]>, transfers = {x = gather, values = copy, index = resident}, pipeline = ring<stages = 3, producers = 4>, grid = persistent<stream_k = true>>

// Nothing to share of a tile of one step.

// CHECK-LABEL: func @one_step
// CHECK-NOT: gpu.alloc
// CHECK: nm_tile.tile_loop %{{.*}} = %{{.*}} to %c200 step
func.func @one_step(%x: memref<16x64xf16, #nm_tile.shared<swizzled_rows>>, %v: memref<16x128xf16, #nm_tile.shared<swizzled_rows>>, %out: memref<4096x4096xf32>) {
  %c1 = arith.constant 1 : index
  %c132 = arith.constant 132 : index
  %c384 = arith.constant 384 : index
  %c200 = arith.constant 200 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c132, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c384, %sy = %c1, %sz = %c1) {
    %c0 = arith.constant 0 : index
    %c2 = arith.constant 2 : index
    %c8 = arith.constant 8 : index
    %zero = arith.constant dense<0.0> : vector<64x128xf32>
    %ring = nm_tile.ring full = 132 empty = 8 : !nm_tile.ring<3>
    nm_tile.warp_specialize consumers = 256 {
      %begin = nm_tile.ring_begin full %ring : !nm_tile.ring<3>
      %end = nm_tile.tile_loop %tile = %bx to %c200 step %gx iter_args(%here = %begin)
          -> (!nm_tile.ring_position) {
        %sum:2 = nm_tile.k_loop %k = %c0 to %c2 step %c2
            iter_args(%acc = %zero, %at = %here) -> (vector<64x128xf32>, !nm_tile.ring_position) {
          %r = nm_tile.matmul #w schedule = #s condensed
            ins(%x, %v : memref<16x64xf16, #nm_tile.shared<swizzled_rows>>, memref<16x128xf16, #nm_tile.shared<swizzled_rows>>)
            acc(%acc : vector<64x128xf32>) -> vector<64x128xf32>
          nm_tile.ring_release %ring[%at] : !nm_tile.ring<3>
          %next = nm_tile.ring_advance %ring[%at] by 1 : !nm_tile.ring<3>
          nm_tile.yield %r, %next : vector<64x128xf32>, !nm_tile.ring_position
        }
        vector.transfer_write %sum#0, %out[%tile, %tile] {in_bounds = [true, true]}
          : vector<64x128xf32>, memref<4096x4096xf32>
        nm_tile.yield %sum#1 : !nm_tile.ring_position
      }
    } producers = 128 {
      %begin = nm_tile.ring_begin empty %ring : !nm_tile.ring<3>
      %end = nm_tile.tile_loop %tile = %bx to %c200 step %gx iter_args(%here = %begin)
          -> (!nm_tile.ring_position) {
        %filled = nm_tile.k_loop %k = %c0 to %c2 step %c2 iter_args(%at = %here)
            -> (!nm_tile.ring_position) {
          nm_tile.ring_commit %ring[%at] : !nm_tile.ring<3>
          %next = nm_tile.ring_advance %ring[%at] by 1 : !nm_tile.ring<3>
          nm_tile.yield %next : !nm_tile.ring_position
        }
        nm_tile.yield %filled : !nm_tile.ring_position
      }
    }
    gpu.terminator
  }
  return
}
