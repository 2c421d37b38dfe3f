// A kernel that declares its cluster has it in every launch.

// RUN: nm-test-emulate %s --kernel=ranks --grid=6 --array=0,0,0,0,0,0 | FileCheck %s
// CHECK: 0 1 0 1 0 1

// RUN: not nm-test-emulate %s --kernel=ranks --grid=3 --array=0,0,0 2>&1 | FileCheck %s --check-prefix=GRID
// GRID: nm-test-emulate: the cluster does not divide the grid

// RUN: not nm-test-emulate %s --kernel=ranks --grid=2 --array=0,0 --chip=sm_80 2>&1 | FileCheck %s --check-prefix=CHIP
// CHIP: nm-test-emulate: sm_80 has no clusters

gpu.module @kernels {
  llvm.func @ranks(%out: !llvm.ptr) attributes {
      nvvm.kernel, nvvm.cluster_dim = array<i32: 2, 1, 1>} {
    %cta = nvvm.read.ptx.sreg.ctaid.x : i32
    %rank = nvvm.read.ptx.sreg.cluster.ctarank : i32
    %value = llvm.uitofp %rank : i32 to f32
    %place = llvm.getelementptr %out[%cta] : (!llvm.ptr, i32) -> !llvm.ptr, f32
    llvm.store %value, %place : f32, !llvm.ptr
    llvm.return
  }
}
