// A kernel of upstream dialects, lowered by upstream passes, runs in a tool that
// links the emulator and no dialect of ours: each CTA of four threads reverses
// its numbers through shared memory and adds those that it read itself.

// RUN: mlir-opt-22 %s --pass-pipeline='builtin.module(gpu.module(convert-gpu-to-nvvm{use-bare-ptr-memref-call-conv=1},reconcile-unrealized-casts))' -o %t.mlir
// RUN: nm-test-emulate %t.mlir --kernel=reverse --grid=2 --block=4 \
// RUN:   --array=1,2,3,4,5,6,7,8 --array=0,0,0,0,0,0,0,0 | FileCheck %s
// CHECK: 1 2 3 4 5 6 7 8
// CHECK-NEXT: 14 23 32 41 58 67 76 85

// A thread that reads what no thread wrote is found in any kernel.
// RUN: not nm-test-emulate %t.mlir --kernel=reverse --grid=2 --block=3 \
// RUN:   --array=1,2,3,4,5,6,7,8 --array=0,0,0,0,0,0,0,0 2>&1 | FileCheck %s --check-prefix=UNWRITTEN
// UNWRITTEN: nm-test-emulate: {{.*}}nothing wrote

// RUN: not nm-test-emulate %t.mlir --kernel=missing 2>&1 | FileCheck %s --check-prefix=MISSING
// MISSING: nm-test-emulate: the module has no kernel of this name

gpu.module @kernels {
  gpu.func @reverse(%in: memref<8xf32>, %out: memref<8xf32>)
      workgroup(%tile: memref<4xf32, #gpu.address_space<workgroup>>) kernel {
    %c3 = arith.constant 3 : index
    %c4 = arith.constant 4 : index
    %ten = arith.constant 1.0e+01 : f32
    %thread = gpu.thread_id x
    %cta = gpu.block_id x
    %begin = arith.muli %cta, %c4 : index
    %place = arith.addi %begin, %thread : index
    %own = memref.load %in[%place] : memref<8xf32>
    memref.store %own, %tile[%thread] : memref<4xf32, #gpu.address_space<workgroup>>
    gpu.barrier
    %opposite = arith.subi %c3, %thread : index
    %other = memref.load %tile[%opposite] : memref<4xf32, #gpu.address_space<workgroup>>
    %tens = arith.mulf %own, %ten : f32
    %sum = arith.addf %tens, %other : f32
    memref.store %sum, %out[%place] : memref<8xf32>
    gpu.return
  }
}
