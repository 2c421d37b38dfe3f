// RUN: nm-opt %s --pass-pipeline="builtin.module(gpu.module(nm-sparse-overlap-launches{chip=sm_90a}))" | FileCheck %s
// RUN: nm-opt %s --pass-pipeline="builtin.module(gpu.module(nm-sparse-overlap-launches{chip=sm_89}))" | FileCheck %s --check-prefix=OLD

// OLD-NOT: griddepcontrol
// OLD-NOT: _waits
// OLD-NOT: nm_tile.hints

module attributes {gpu.container_module} {
gpu.module @kernels {
  // All mbarriers are set up before the wait, and nothing is read; a prefetch
  // is no read.
  // The runtime looks for the symbol.
  // CHECK: llvm.mlir.global external @ring_waits(1 : i8) {addr_space = 1 : i32} : i8
  // CHECK: gpu.func @ring
  // CHECK-NEXT: llvm.inline_asm has_side_effects {{.*}}"griddepcontrol.launch_dependents;", "~{memory}"
  // CHECK-NEXT: nm_tile.prefetch
  // CHECK: nvvm.mbarrier.init
  // CHECK: nvvm.fence.mbarrier.init
  // CHECK: gpu.barrier
  // CHECK-NEXT: llvm.inline_asm has_side_effects {{.*}}"griddepcontrol.wait;", "~{memory}"
  // CHECK-NEXT: memref.load
  gpu.func @ring(%x: memref<4xf32>, %bar: !llvm.ptr<3>) kernel {
    nm_tile.prefetch %x, 2048 of 132 : memref<4xf32>
    %c0 = arith.constant 0 : index
    %count = arith.constant 4 : i32
    %id = gpu.thread_id x
    %first = arith.cmpi eq, %id, %c0 : index
    scf.if %first {
      nvvm.mbarrier.init %bar, %count : !llvm.ptr<3>, i32
      nvvm.fence.mbarrier.init
    }
    gpu.barrier
    %v = memref.load %x[%c0] : memref<4xf32>
    memref.store %v, %x[%id] : memref<4xf32>
    nm_tile.hints has_sm
    gpu.return
  }

  // A branch that reads is behind the wait as a whole.
  // CHECK: gpu.func @branch
  // CHECK: arith.cmpi
  // CHECK-NEXT: {{.*}}griddepcontrol.wait
  // CHECK-NEXT: scf.if
  gpu.func @branch(%x: memref<4xf32>) kernel {
    %c0 = arith.constant 0 : index
    %id = gpu.thread_id x
    %first = arith.cmpi eq, %id, %c0 : index
    scf.if %first {
      %v = memref.load %x[%c0] : memref<4xf32>
      memref.store %v, %x[%id] : memref<4xf32>
    }
    nm_tile.hints has_sm
    gpu.return
  }

  // A kernel of which an SM holds several CTAs neither starts early nor lets
  // others do so.
  // CHECK-NOT: @several_waits
  // CHECK: gpu.func @several
  // CHECK-NOT: griddepcontrol
  // CHECK-NOT: nm_tile.hints
  gpu.func @several(%x: memref<4xf32>) kernel {
    %id = gpu.thread_id x
    %v = memref.load %x[%id] : memref<4xf32>
    memref.store %v, %x[%id] : memref<4xf32>
    nm_tile.hints accumulators = 4
    gpu.return
  }
}
}
