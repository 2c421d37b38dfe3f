// RUN: nm-opt %s --nm-sparse-compile-kernels --split-input-file --verify-diagnostics | FileCheck %s

// Each kernel is compiled for itself: what both use is declared once, and what
// only the host looks up is there too.

// CHECK: gpu.binary @kernels [#gpu.object<#nvvm.target<O = 3, chip = "sm_90a"
// CHECK-SAME: properties = {O = 3 : i32}
// CHECK-SAME: assembly = "
// CHECK-SAME: .version
// CHECK-SAME: .extern .shared .align 1024 .b8 shared[];
// CHECK-SAME: .visible .global .align 1 .u8 a_waits = 1;
// CHECK-NOT: .extern .shared
// CHECK-NOT: .version
// CHECK-SAME: .visible .entry a(
// CHECK-NOT: .version
// CHECK-SAME: .visible .entry b(
// CHECK-SAME: \00

module attributes {gpu.container_module} {
  gpu.module @kernels [#nvvm.target<O = 3, chip = "sm_90a", features = "+ptx80">] {
    llvm.mlir.global external @shared() {addr_space = 3 : i32, alignment = 1024 : i64} : !llvm.array<0 x i8>
    llvm.mlir.global external @a_waits(1 : i8) {addr_space = 1 : i32} : i8
    llvm.func @a(%x: f32) attributes {gpu.kernel, nvvm.kernel} {
      %0 = llvm.mlir.addressof @shared : !llvm.ptr<3>
      llvm.store %x, %0 : f32, !llvm.ptr<3>
      llvm.return
    }
    llvm.func @b(%x: f32) attributes {gpu.kernel, nvvm.kernel} {
      %0 = llvm.mlir.addressof @shared : !llvm.ptr<3>
      llvm.store volatile %x, %0 : f32, !llvm.ptr<3>
      llvm.return
    }
  }
}

// -----

module attributes {gpu.container_module} {
  // expected-error @below {{gpu.module @kernels needs exactly one target, an #nvvm.target; --nvvm-attach-target sets it}}
  gpu.module @kernels {
    llvm.func @a() attributes {gpu.kernel, nvvm.kernel} {
      llvm.return
    }
  }
}
