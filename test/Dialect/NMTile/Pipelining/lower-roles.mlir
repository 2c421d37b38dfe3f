// RUN: nm-opt %s --nm-sparse-lower-roles --canonicalize --cse | FileCheck %s

// The first thread sets up two mbarriers for each slot; all wait for it.

// CHECK-LABEL: func @ring
// CHECK-DAG: %[[FULL:.*]] = memref.alloc() : memref<3xi64, #gpu.address_space<workgroup>>
// CHECK-DAG: %[[EMPTY:.*]] = memref.alloc() : memref<3xi64, #gpu.address_space<workgroup>>
// CHECK: %[[THREAD:.*]] = gpu.thread_id x
// CHECK: %[[FIRST:.*]] = arith.cmpi eq, %[[THREAD]], %c0
// CHECK: scf.if %[[FIRST]] {
// CHECK: nvvm.mbarrier.init %{{.*}}, %c132_i32
// CHECK: nvvm.mbarrier.init %{{.*}}, %c8_i32
// CHECK: nvvm.mbarrier.init %{{.*}}, %c132_i32
// CHECK: nvvm.mbarrier.init %{{.*}}, %c8_i32
// CHECK: nvvm.mbarrier.init %{{.*}}, %c132_i32
// CHECK: nvvm.mbarrier.init %{{.*}}, %c8_i32
// CHECK-NOT: nvvm.mbarrier.init
// CHECK: nvvm.fence.mbarrier.init
// CHECK: gpu.barrier
// The bulk copies of the accelerator alone need that fence.
// CHECK-LABEL: func @roles
// CHECK: %[[ID:.*]] = gpu.thread_id x
// CHECK-COUNT-6: nvvm.mbarrier.init
// CHECK-NOT: mbarrier.init
// CHECK: gpu.barrier
func.func @ring() {
  %ring = nm_tile.ring full = 132 empty = 8 bulk : !nm_tile.ring<3>
  return
}

// Consumers begin with the first phase of `full`, producers with the one before
// the first of `empty`, which is over.

// CHECK: %[[CONSUMES:.*]] = arith.cmpi ult, %[[ID]], %c256
// CHECK: scf.if %[[CONSUMES]] {
// CHECK: nvvm.setmaxregister increase 216
// CHECK: scf.for %{{.*}} = %arg0 to %arg1 step %arg2 iter_args(%[[SLOT:.*]] = %c0, %[[PARITY:.*]] = %c0_i32) -> (index, i32)
// CHECK: %[[LOOP:.*]]:3 = scf.for %[[K:.*]] = %arg0 to %arg1 step %arg2 iter_args(%[[ACC:.*]] = %arg3, %[[AT:.*]] = %[[SLOT]], %[[PHASE:.*]] = %[[PARITY]])
// CHECK: scf.while
// CHECK: nvvm.mbarrier.try_wait %{{.*}}, %[[PHASE]]
// CHECK: memref.store %[[AT]]

// A warp arrives in its first lane, when all lanes have read.
// CHECK: nvvm.bar.warp.sync
// CHECK: scf.if
// CHECK: nvvm.mbarrier.arrive

// A late release is of the slot before, and needs a step before.
// CHECK: %[[LATER:.*]] = arith.cmpi ugt, %[[K]], %arg0
// CHECK: scf.if %[[LATER]] {
// CHECK: %[[IS_FIRST:.*]] = arith.cmpi eq, %[[AT]], %c0
// CHECK: %[[BACK:.*]] = arith.subi %[[AT]], %c1
// CHECK: arith.select %[[IS_FIRST]], %c2, %[[BACK]]
// CHECK-NOT: nvvm.bar.warp.sync
// CHECK: nvvm.mbarrier.arrive

// Around the ring is the next phase.
// CHECK: %[[NEXT:.*]] = arith.addi %[[AT]], %c1
// CHECK: %[[WRAPS:.*]] = arith.cmpi uge, %[[NEXT]], %c3
// CHECK: %[[TURNED:.*]] = arith.extui %[[WRAPS]] : i1 to i32
// CHECK: %[[NEXT_SLOT:.*]] = arith.select %[[WRAPS]], %c0, %[[NEXT]]
// CHECK: %[[NEXT_PHASE:.*]] = arith.xori %[[PHASE]], %[[TURNED]]
// CHECK: %[[SUM:.*]] = arith.addf %[[ACC]], %arg3
// CHECK: scf.yield %[[SUM]], %[[NEXT_SLOT]], %[[NEXT_PHASE]]

// CHECK: nvvm.wgmma.wait.group.sync.aligned 0
// CHECK: scf.if %arg4
// CHECK: arith.cmpi eq, %[[LOOP]]#1, %c0
// CHECK: nvvm.mbarrier.arrive
// CHECK: nvvm.barrier id = %c1_i32 number_of_threads = %c256_i32
// CHECK: scf.yield %[[LOOP]]#1, %[[LOOP]]#2

// CHECK: } else {
// CHECK: nvvm.setmaxregister decrease 72
// CHECK: nvvm.barrier id = %c2_i32 number_of_threads = %c128_i32
// CHECK: scf.for {{.*}} iter_args(%[[AT:.*]] = %arg0, %[[PHASE:.*]] = %c1_i32)
// CHECK: nvvm.mbarrier.try_wait %{{.*}}, %[[PHASE]]
// CHECK: nvvm.mbarrier.init %{{.*}}, %c7_i32
// CHECK: nvvm.cp.async.mbarrier.arrive %{{.*}} {noinc = true}
// CHECK-NEXT: nvvm.bar.warp.sync
// CHECK: scf.if
// CHECK: nvvm.mbarrier.arrive
// Several steps at a time wrap to where they come out.
// CHECK: %[[NEXT:.*]] = arith.addi %[[AT]], %c2
// CHECK: %[[WRAPS:.*]] = arith.cmpi uge, %[[NEXT]], %c3
// CHECK: %[[WRAPPED:.*]] = arith.addi %[[AT]], %c-1
// CHECK: arith.select %[[WRAPS]], %[[WRAPPED]], %[[NEXT]]
func.func @roles(%lower: index, %upper: index, %step: index, %zero: vector<4x4xf32>, %any: i1,
                 %slots: memref<1xindex>, %out: memref<4x4xf32>) {
  %c0 = arith.constant 0 : index
  %count = arith.constant 7 : i32
  %ring = nm_tile.ring full = 132 empty = 8 : !nm_tile.ring<3>
  nm_tile.warp_specialize consumers = 256 registers = 216 {
    %begin = nm_tile.ring_begin full %ring : !nm_tile.ring<3>
    %end = nm_tile.tile_loop %tile = %lower to %upper step %step iter_args(%at = %begin)
        -> (!nm_tile.ring_position) {
      %sum:2 = nm_tile.k_loop %k = %lower to %upper step %step
          iter_args(%acc = %zero, %here = %at) -> (vector<4x4xf32>, !nm_tile.ring_position) {
        nm_tile.ring_wait full %ring[%here] : !nm_tile.ring<3>
        %slot = nm_tile.ring_slot %here
        memref.store %slot, %slots[%c0] : memref<1xindex>
        nm_tile.ring_release %ring[%here] : !nm_tile.ring<3>
        nm_tile.ring_release late %ring[%here] : !nm_tile.ring<3>
        %next = nm_tile.ring_advance %ring[%here] by 1 : !nm_tile.ring<3>
        %more = arith.addf %acc, %zero : vector<4x4xf32>
        nm_tile.yield %more, %next : vector<4x4xf32>, !nm_tile.ring_position
      }
      nm_tile.ring_drain %ring[%sum#1] release(%any) : !nm_tile.ring<3>
      vector.transfer_write %sum#0, %out[%c0, %c0] {in_bounds = [true, true]}
        : vector<4x4xf32>, memref<4x4xf32>
      scf.if %any {
        nm_tile.role_barrier
      }
      nm_tile.yield %sum#1 : !nm_tile.ring_position
    }
  } producers = 128 registers = 72 {
    nm_tile.role_barrier
    %begin = nm_tile.ring_begin empty %ring at %lower : !nm_tile.ring<3>
    %end = nm_tile.k_loop %k = %lower to %upper step %step iter_args(%here = %begin)
        -> (!nm_tile.ring_position) {
      nm_tile.ring_wait empty %ring[%here] : !nm_tile.ring<3>
      %full = nm_tile.ring_mbarrier full %ring[%here] : !nm_tile.ring<3> -> !llvm.ptr<3>
      nvvm.mbarrier.init %full, %count : !llvm.ptr<3>, i32
      nm_tile.ring_commit stores %ring[%here] : !nm_tile.ring<3>
      %next = nm_tile.ring_advance %ring[%here] by 2 : !nm_tile.ring<3>
      nm_tile.yield %next : !nm_tile.ring_position
    }
  }
  return
}

// A role alone, without registers, and a copy that arrives without stores.

// CHECK-LABEL: func @plain
// CHECK-NOT: setmaxregister
// CHECK: nvvm.cp.async.mbarrier.arrive
// CHECK-NOT: nvvm.mbarrier.arrive
// CHECK: return
func.func @plain() {
  %ring = nm_tile.ring full = 1 empty = 1 : !nm_tile.ring<2>
  nm_tile.warp_specialize consumers = 32 {
  } producers = 32 {
    %begin = nm_tile.ring_begin empty %ring : !nm_tile.ring<2>
    nm_tile.ring_commit %ring[%begin] : !nm_tile.ring<2>
  }
  return
}

// Products that no role fills the ring after are waited for alone. A ring that
// is entered nowhere else starts at its first slot.

// CHECK-LABEL: func @last
// CHECK: nvvm.wgmma.wait.group.sync.aligned 0
// CHECK-NOT: nvvm.mbarrier.arrive
// CHECK: } else {
// CHECK: scf.for {{.*}} iter_args(%{{.*}} = %c0{{[^_i]*}}, %{{.*}} = %c1_i32)
func.func @last(%lower: index, %upper: index, %step: index) {
  %ring = nm_tile.ring full = 1 empty = 1 : !nm_tile.ring<2>
  nm_tile.warp_specialize consumers = 128 {
    %begin = nm_tile.ring_begin full %ring : !nm_tile.ring<2>
    nm_tile.ring_drain %ring[%begin] : !nm_tile.ring<2>
  } producers = 32 {
    %begin = nm_tile.ring_begin empty %ring : !nm_tile.ring<2>
    %end = nm_tile.k_loop %k = %lower to %upper step %step iter_args(%here = %begin)
        -> (!nm_tile.ring_position) {
      nm_tile.ring_wait empty %ring[%here] : !nm_tile.ring<2>
      %next = nm_tile.ring_advance %ring[%here] by 1 : !nm_tile.ring<2>
      nm_tile.yield %next : !nm_tile.ring_position
    }
  }
  return
}

// The mbarriers of a pair of CTAs are ready before either copies into the other;
// a warp arrives on those of both, and neither leaves before the other is done.

// CHECK-LABEL: func @pair
// CHECK: nvvm.fence.mbarrier.init
// CHECK: nvvm.cluster.arrive.relaxed
// CHECK: nvvm.cluster.wait
// CHECK: scf.if
// CHECK: nvvm.mapa
// CHECK: nvvm.mbarrier.arrive %{{.*}} : !llvm.ptr<7>
// CHECK: nvvm.cluster.arrive
// CHECK-NOT: relaxed
// CHECK: nvvm.cluster.wait
// CHECK: return
func.func @pair(%lower: index, %upper: index, %step: index) {
  %ring = nm_tile.ring full = 128 empty = 16 cluster = 2 bulk : !nm_tile.ring<3>
  nm_tile.warp_specialize consumers = 256 registers = 216 {
    %begin = nm_tile.ring_begin full %ring : !nm_tile.ring<3>
    %end = nm_tile.k_loop %k = %lower to %upper step %step iter_args(%here = %begin) -> (!nm_tile.ring_position) {
      nm_tile.ring_wait full %ring[%here] : !nm_tile.ring<3>
      nm_tile.ring_release %ring[%here] : !nm_tile.ring<3>
      %next = nm_tile.ring_advance %ring[%here] by 1 : !nm_tile.ring<3>
      nm_tile.yield %next : !nm_tile.ring_position
    }
  } producers = 128 registers = 72 {
    %begin = nm_tile.ring_begin empty %ring at %lower : !nm_tile.ring<3>
    nm_tile.ring_wait empty %ring[%begin] : !nm_tile.ring<3>
    nm_tile.ring_commit %ring[%begin] : !nm_tile.ring<3>
  }
  return
}
