// RUN: nm-opt %s --nm-sparse-embed-kernels --split-input-file --verify-diagnostics | FileCheck %s

// The text holds the locations, is generic, as every operation is parsed in that
// form, and ends in a zero byte.

// CHECK: gpu.binary @kernels [#gpu.object<#nvvm.target<O = 3, chip = "sm_90a">,
// CHECK-SAME: properties = {O = 3 : i32},
// CHECK-SAME: assembly = "{{.*}}\22gpu.module\22() <{{.*}}sym_name = \22kernels\22, targets = [#nvvm.target<O = 3, chip = \22sm_90a\22>]
// CHECK-SAME: \22llvm.func\22() <{{.*}}arg_attrs = [{llvm.noalias}],{{.*}}sym_name = \22kernel\22
// CHECK-SAME: ^bb0(%arg0: !llvm.ptr loc({{.*}})):
// CHECK-SAME: }) {gpu.kernel, nvvm.kernel} :
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

// The location behind a named barrier is not taken for one of its attributes.

// CHECK: gpu.binary @named
// CHECK-SAME: \22nvvm.barrier\22(%0, %1) <{operandSegmentSizes = array<i32: 1, 1, 0>}> : (i32, i32) -> () loc(
module attributes {gpu.container_module} {
  gpu.module @named [#nvvm.target<O = 3, chip = "sm_90a">] {
    llvm.func @kernel() attributes {gpu.kernel, nvvm.kernel} {
      %id = llvm.mlir.constant(1 : i32) : i32
      %threads = llvm.mlir.constant(128 : i32) : i32
      nvvm.barrier id = %id number_of_threads = %threads
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
