// RUN: nm-opt %s --nm-sparse-embed-kernels --split-input-file --verify-diagnostics | FileCheck %s

// The text holds the locations, and ends in a zero byte.

// CHECK: gpu.binary @kernels [#gpu.object<#nvvm.target<O = 3, chip = "sm_90a">,
// CHECK-SAME: properties = {O = 3 : i32},
// CHECK-SAME: assembly = "{{.*}}gpu.module @kernels [#nvvm.target<O = 3, chip = \22sm_90a\22>]
// CHECK-SAME: llvm.func @kernel(%arg0: !llvm.ptr {llvm.noalias} loc({{.*}})) attributes {gpu.kernel, nvvm.kernel}
// CHECK-SAME: #loc{{[0-9]*}} = loc(\22{{[^ ]*}}embed-kernels.mlir\22:{{.*}}\00">]
// CHECK-NOT: gpu.module
module attributes {gpu.container_module} {
  gpu.module @kernels [#nvvm.target<O = 3, chip = "sm_90a">] {
    llvm.func @kernel(%arg0: !llvm.ptr {llvm.noalias}) attributes {gpu.kernel, nvvm.kernel} {
      llvm.return
    }
  }
}

// -----

module attributes {gpu.container_module} {
  // expected-error @below {{nm-sparse-embed-kernels: gpu.module @kernels has no #nvvm.target: attach one}}
  gpu.module @kernels {
  }
}
