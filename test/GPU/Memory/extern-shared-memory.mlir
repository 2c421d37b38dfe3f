// RUN: nm-opt %s --nm-sparse-extern-shared-memory | FileCheck %s
// RUN: nm-opt %s --nm-sparse-extern-shared-memory=alignment=128 | FileCheck %s --check-prefix=ALIGN
// RUN: not nm-opt %s --nm-sparse-extern-shared-memory=alignment=100 2>&1 | FileCheck %s --check-prefix=ERROR

// ERROR: alignment is 100, expected a power of two

gpu.module @kernels {
  // CHECK: llvm.mlir.global external @dynamic() {addr_space = 3 : i32, alignment = 1024 : i64}
  // ALIGN: llvm.mlir.global external @dynamic() {addr_space = 3 : i32, alignment = 128 : i64}
  llvm.mlir.global internal @dynamic() {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<0 x i8>
  // CHECK: llvm.mlir.global internal @fixed() {addr_space = 3 : i32, alignment = 16 : i64}
  llvm.mlir.global internal @fixed() {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<64 x i8>
}
