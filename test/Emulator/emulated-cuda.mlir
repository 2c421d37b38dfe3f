// A C program that knows CUDA alone finds the emulator as its libcuda.so.

// REQUIRES: nm-emulated-cuda
// RUN: rm -f %t.trace
// RUN: clang-22 -std=gnu17 -I/usr/local/cuda/include %S/Inputs/launch.c -o %t.launch -L%emulated_cuda -lcuda -Wl,-rpath,%emulated_cuda
// RUN: env NM_EMULATED_TRACE=%t.trace %t.launch %s add 2 | FileCheck %s
// CHECK: 3 4 5 6 17 18 19 20

// Kernels of PTX are not emulated: they are skipped, and the trace says so.
// RUN: env NM_EMULATED_TRACE=%t.trace %t.launch %S/Inputs/foreign.ptx foreign 1 | FileCheck %s --check-prefix=SKIPPED
// SKIPPED: 0 1 2 3 4 5 6 7

// RUN: FileCheck %s --input-file %t.trace --check-prefix=TRACE
// TRACE: {"args":["0x{{[0-9a-f]+}}","0x3"],"block":[4,1,1],"cluster":[2,1,1],"grid":[2,1,1],"kernel":"add","shared":0}
// TRACE-NEXT: {"args":["0x{{[0-9a-f]+}}","0x3"],"block":[4,1,1],"cluster":[1,1,1],"grid":[1,1,1],"kernel":"foreign","shared":0,"skipped":true}

// Faults are errors of the launch.
// RUN: not env NM_EMULATED_TRACE=%t.trace %t.launch %s add 4 2>&1 | FileCheck %s --check-prefix=FAULT
// FAULT: launch: cuLaunchKernel: NM_SPARSE_ERROR_FAULT: kernel 'add', block (2, 0, 0), thread 0: llvm.load at {{.*}}: read of global memory: {{.*}} behind the end of an allocation of 32 bytes
// RUN: FileCheck %s --input-file %t.trace --check-prefix=ERROR
// ERROR: "error":"kernel 'add', block (2, 0, 0)

// RUN: not %t.launch %s missing 1 2>&1 | FileCheck %s --check-prefix=MISSING
// MISSING: launch: cuModuleGetFunction: CUDA_ERROR_NOT_FOUND: the module has no kernel of this name
// RUN: not %t.launch %S/Inputs/foreign.ptx missing 1 2>&1 | FileCheck %s --check-prefix=MISSING-PTX
// MISSING-PTX: launch: cuModuleGetFunction: CUDA_ERROR_NOT_FOUND: the PTX has no kernel missing
// RUN: not %t.launch %S/Inputs/launch.c add 1 2>&1 | FileCheck %s --check-prefix=IMAGE
// IMAGE: launch: cuModuleLoadData: NM_SPARSE_ERROR_KERNEL: the kernels cannot be emulated: {{.*}}expected
// RUN: not %t.launch %t.launch add 1 2>&1 | FileCheck %s --check-prefix=MACHINE
// MACHINE: launch: cuModuleLoadData: CUDA_ERROR_INVALID_IMAGE: machine code is not emulated
// RUN: not env NM_EMULATED_CHIP=sm_1 %t.launch %s add 1 2>&1 | FileCheck %s --check-prefix=CHIP
// CHIP: launch: cuInit: CUDA_ERROR_NO_DEVICE: NM_EMULATED_CHIP: 'sm_1' is not a known chip
// RUN: not env NM_EMULATED_CHIP=sm_80 %t.launch %s add 2 2>&1 | FileCheck %s --check-prefix=CLUSTER
// CLUSTER: launch: cuLaunchKernel: CUDA_ERROR_INVALID_VALUE: sm_80 has no clusters

gpu.module @kernels {
  // Adds %number to each, and 10 times the rank of the CTA in its cluster.
  llvm.func @add(%array: !llvm.ptr, %number: i32) attributes {
      nvvm.kernel, nvvm.cluster_dim = array<i32: 2, 1, 1>} {
    %cta = nvvm.read.ptx.sreg.ctaid.x : i32
    %tid = nvvm.read.ptx.sreg.tid.x : i32
    %rank = nvvm.read.ptx.sreg.cluster.ctarank : i32
    %four = llvm.mlir.constant(4 : i32) : i32
    %ten = llvm.mlir.constant(10 : i32) : i32
    %begin = llvm.mul %cta, %four : i32
    %at = llvm.add %begin, %tid : i32
    %place = llvm.getelementptr %array[%at] : (!llvm.ptr, i32) -> !llvm.ptr, f32
    %old = llvm.load %place : !llvm.ptr -> f32
    %tens = llvm.mul %rank, %ten : i32
    %added = llvm.add %tens, %number : i32
    %float = llvm.uitofp %added : i32 to f32
    %new = llvm.fadd %old, %float : f32
    llvm.store %new, %place : f32, !llvm.ptr
    llvm.return
  }
}
