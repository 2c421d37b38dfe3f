// RUN: nm-opt %s --nm-sparse-split-modules | FileCheck %s --check-prefix=SPLIT
// RUN: nm-opt %s --nm-sparse-split-modules --nm-sparse-join-modules | FileCheck %s

// Each kernel but the first gets a module of its own, and goes back.

module attributes {gpu.container_module} {
  // SPLIT-LABEL: gpu.module @kernels [#nvvm.target<chip = "sm_90a">] {
  // SPLIT: gpu.func @a
  // SPLIT-NOT: gpu.func
  // SPLIT: gpu.module @kernels_0 [#nvvm.target<chip = "sm_90a">] attributes {nm_tile.part_of = @kernels}
  // SPLIT-NEXT: gpu.func @b
  // SPLIT: gpu.module @kernels_1 {{.*}} attributes {nm_tile.part_of = @kernels}
  // SPLIT-NEXT: gpu.func @c

  // CHECK-COUNT-1: gpu.module
  // CHECK: gpu.func @a
  // CHECK: gpu.func @b
  // CHECK: gpu.func @c
  gpu.module @kernels [#nvvm.target<chip = "sm_90a">] {
    gpu.func @a() kernel { gpu.return }
    gpu.func @b(%x: f32) kernel { gpu.return }
    gpu.func @c() kernel { gpu.return }
  }
  // Its function may be called by any kernel.
  // SPLIT: gpu.module @shared
  // SPLIT-NEXT: gpu.func @d
  // SPLIT: gpu.func @e
  // CHECK: gpu.module @shared
  gpu.module @shared {
    gpu.func @d() { gpu.return }
    gpu.func @e() kernel { gpu.return }
  }
  // SPLIT-LABEL: func.func @launches
  // SPLIT: @kernels::@a
  // SPLIT: @kernels_0::@b
  // SPLIT: @kernels_1::@c
  // SPLIT: @shared::@e
  // CHECK-LABEL: func.func @launches
  // CHECK: @kernels::@a
  // CHECK: @kernels::@b
  // CHECK: @kernels::@c
  // CHECK: @shared::@e
  func.func @launches(%x: f32) {
    %1 = arith.constant 1 : index
    gpu.launch_func @kernels::@a blocks in (%1, %1, %1) threads in (%1, %1, %1)
    gpu.launch_func @kernels::@b blocks in (%1, %1, %1) threads in (%1, %1, %1) args(%x : f32)
    gpu.launch_func @kernels::@c blocks in (%1, %1, %1) threads in (%1, %1, %1)
    gpu.launch_func @shared::@e blocks in (%1, %1, %1) threads in (%1, %1, %1)
    return
  }
}
