// RUN: nm-opt %s --nm-sparse-pin-reads | FileCheck %s

// Nontemporal reads of shared memory become volatile; others stay as they are.

gpu.module @kernels {
  // CHECK-LABEL: llvm.func @kernel
  // CHECK-SAME: (%[[SHARED:.*]]: !llvm.ptr<3>, %[[GLOBAL:.*]]: !llvm.ptr<1>)
  llvm.func @kernel(%shared: !llvm.ptr<3>, %global: !llvm.ptr<1>) {
    // CHECK: llvm.load volatile %[[SHARED]] {alignment = 16 : i64} :
    %0 = llvm.load %shared {alignment = 16 : i64, nontemporal} : !llvm.ptr<3> -> vector<4xf32>
    // CHECK: llvm.load %[[SHARED]] :
    %1 = llvm.load %shared : !llvm.ptr<3> -> vector<4xf32>
    // CHECK: llvm.load %[[GLOBAL]] {nontemporal} :
    %2 = llvm.load %global {nontemporal} : !llvm.ptr<1> -> vector<4xf32>
    llvm.return
  }
}
