// Passes on GPU code run in a tool that links no dialect of ours, and what they
// make runs in the emulator: four threads compute an error function, which
// neither PTX nor upstream passes have without a device library.

// RUN: nm-test-gpu %s --nm-sparse-lower-math -o %t.mlir
// RUN: FileCheck %s --input-file=%t.mlir --check-prefix=LOWERED
// RUN: mlir-opt-22 %t.mlir --pass-pipeline='builtin.module(gpu.module(convert-gpu-to-nvvm{use-bare-ptr-memref-call-conv=1},reconcile-unrealized-casts))' -o %t.nvvm.mlir
// RUN: nm-test-emulate %t.nvvm.mlir --kernel=erf --block=4 --array=-1,0,0.5,3 | FileCheck %s

// LOWERED-NOT: math.
// LOWERED: gpu.return
// CHECK: -0.842701 0 0.5205 0.999978

gpu.module @kernels {
  gpu.func @erf(%values: memref<4xf32>) kernel {
    %thread = gpu.thread_id x
    %old = memref.load %values[%thread] : memref<4xf32>
    %new = math.erf %old : f32
    memref.store %new, %values[%thread] : memref<4xf32>
    gpu.return
  }
}
