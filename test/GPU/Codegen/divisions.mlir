// RUN: nm-translate --nm-sparse-to-ptx %s | FileCheck %s

// LLVM finds that 16 bits hold these numbers. ptxas makes a call of such a
// division, so they are divided in 32 bits.

// CHECK-LABEL: .entry divide
// CHECK-NOT: div.{{[us]}}16
// CHECK: div.u32
// CHECK-NOT: rem.{{[us]}}16
// CHECK: st.global

gpu.module @kernels [#nvvm.target<chip = "sm_90a", features = "+ptx80", O = 3>] {
  llvm.func @divide(%to: !llvm.ptr<1>, %number: i32, %by: i32) attributes {gpu.kernel, nvvm.kernel} {
    %mask = llvm.mlir.constant(127 : i32) : i32
    %few = llvm.mlir.constant(4 : i32) : i32
    %one = llvm.mlir.constant(1 : i32) : i32
    %small = llvm.and %number, %mask : i32
    %atMost = llvm.intr.umin(%by, %few) : (i32, i32) -> i32
    %divisor = llvm.intr.umax(%atMost, %one) : (i32, i32) -> i32
    %quotient = llvm.udiv %small, %divisor : i32
    %rest = llvm.urem %small, %divisor : i32
    %sum = llvm.xor %quotient, %rest : i32
    llvm.store %sum, %to : i32, !llvm.ptr<1>
    llvm.return
  }
}
