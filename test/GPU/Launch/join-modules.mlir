// RUN: nm-opt %s --split-input-file --nm-sparse-join-modules -verify-diagnostics | FileCheck %s

// What is equal to an operation of the module goes, and what only has the name of
// one is renamed, with its uses.

// CHECK-LABEL: gpu.module @kernels
// CHECK-COUNT-1: llvm.mlir.global external @shared()
// CHECK: llvm.mlir.global internal constant @format("a\00")
// CHECK: llvm.func @a
// CHECK: llvm.mlir.global internal constant @[[RENAMED:format_[0-9]+]]("b\00")
// CHECK: llvm.func @b
// CHECK: llvm.mlir.addressof @shared
// CHECK: llvm.mlir.addressof @[[RENAMED]]
// CHECK-NOT: gpu.module
gpu.module @kernels {
  llvm.mlir.global external @shared() {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<0 x i8>
  llvm.mlir.global internal constant @format("a\00") {addr_space = 0 : i32}
  llvm.func @a() { llvm.return }
}
gpu.module @kernels_0 attributes {nm_tile.part_of = @kernels} {
  llvm.mlir.global external @shared() {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<0 x i8>
  llvm.mlir.global internal constant @format("b\00") {addr_space = 0 : i32}
  llvm.func @b() {
    %0 = llvm.mlir.addressof @shared : !llvm.ptr<3>
    %1 = llvm.mlir.addressof @format : !llvm.ptr
    llvm.return
  }
}

// -----

// expected-error @below {{nm_tile.part_of is @nothing, expected the name of a gpu.module that is no part itself}}
gpu.module @kernels_0 attributes {nm_tile.part_of = @nothing} {
}

// -----

// expected-error @below {{nm_tile.part_of is "kernels", expected the name of a gpu.module that is no part itself}}
gpu.module @kernels_0 attributes {nm_tile.part_of = "kernels"} {
}
gpu.module @kernels {
}

// -----

// expected-error @below {{nm_tile.part_of is @kernels_0, expected the name of a gpu.module that is no part itself}}
gpu.module @kernels_0 attributes {nm_tile.part_of = @kernels_0} {
}
