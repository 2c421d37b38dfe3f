// RUN: nm-opt %s --canonicalize --cse --sccp --loop-invariant-code-motion | FileCheck %s

// What the passes look for stays: a loop of one iteration, a step that comes to
// the same slot again, two rings of the same kind, events without a result.

// CHECK-LABEL: func @keeps
// CHECK-COUNT-2: nm_tile.ring full = 1 empty = 1
// CHECK: nm_tile.warp_specialize
// CHECK: nm_tile.tile_loop
// CHECK: nm_tile.k_loop %{{.*}} = %c0 to %c1 step %c1
// CHECK: nm_tile.ring_wait full
// CHECK: nm_tile.ring_wait full
// CHECK: nm_tile.ring_release
// CHECK: nm_tile.role_barrier
// CHECK-NEXT: nm_tile.role_barrier
// CHECK: } producers
// CHECK: nm_tile.ring_commit
func.func @keeps(%zero: f32, %out: memref<1xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %ring = nm_tile.ring full = 1 empty = 1 : !nm_tile.ring<2>
  %other = nm_tile.ring full = 1 empty = 1 : !nm_tile.ring<2>
  nm_tile.warp_specialize consumers = 32 {
    %begin = nm_tile.ring_begin full %ring : !nm_tile.ring<2>
    %end = nm_tile.tile_loop %t = %c0 to %c1 step %c1 iter_args(%at = %begin)
        -> (!nm_tile.ring_position) {
      %sum:2 = nm_tile.k_loop %k = %c0 to %c1 step %c1 iter_args(%acc = %zero, %here = %at)
          -> (f32, !nm_tile.ring_position) {
        nm_tile.ring_wait full %ring[%here] : !nm_tile.ring<2>
        nm_tile.ring_wait full %ring[%here] : !nm_tile.ring<2>
        %more = arith.addf %acc, %acc : f32
        nm_tile.ring_release %ring[%here] : !nm_tile.ring<2>
        %next = nm_tile.ring_advance %ring[%here] by 1 : !nm_tile.ring<2>
        nm_tile.yield %more, %next : f32, !nm_tile.ring_position
      }
      memref.store %sum#0, %out[%c0] : memref<1xf32>
      nm_tile.yield %sum#1 : !nm_tile.ring_position
    }
    nm_tile.role_barrier
    nm_tile.role_barrier
  } producers = 32 {
    %begin = nm_tile.ring_begin empty %ring : !nm_tile.ring<2>
    nm_tile.ring_commit %ring[%begin] : !nm_tile.ring<2>
  }
  return
}
