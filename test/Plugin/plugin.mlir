// The stock mlir-opt with our plugin: dialect, passes and pipelines.

// RUN: mlir-opt --load-dialect-plugin=%nm_lib_dir/NMSparsePlugin.so \
// RUN:   --pass-pipeline='builtin.module(convert-linalg-to-nm-sparse,cse)' %s | FileCheck %s
// RUN: mlir-opt --load-dialect-plugin=%nm_lib_dir/NMSparsePlugin.so \
// RUN:   --load-pass-plugin=%nm_lib_dir/NMSparsePlugin.so \
// RUN:   --pass-pipeline='builtin.module(nm-sparse-to-nvvm{chip=sm_90a})' %s | FileCheck %s --check-prefix=NVVM

// The example of README.md. As an option, no pass of a plugin is known.
// RUN: mlir-opt --load-dialect-plugin=%nm_lib_dir/NMSparsePlugin.so \
// RUN:   --pass-pipeline='builtin.module(nm-sparse-to-nvvm{chip=sm_90a})' %nm_src/examples/linear.mlir | FileCheck %s --check-prefix=NVVM
// RUN: not mlir-opt --load-dialect-plugin=%nm_lib_dir/NMSparsePlugin.so \
// RUN:   --load-pass-plugin=%nm_lib_dir/NMSparsePlugin.so \
// RUN:   --convert-linalg-to-nm-sparse %s 2>&1 | FileCheck %s --check-prefix=OPTION
// OPTION: Unknown command line argument '--convert-linalg-to-nm-sparse'

// CHECK: nm_sparse.pack
// CHECK: nm_sparse.matmul
// NVVM: gpu.module @kernels [#nvvm.target

#w = #nm_sparse.encoding<2:4, block = [1, 32]>
func.func @linear(%x: tensor<?x128xf32>, %w: tensor<128x64xf32, #w>, %init: tensor<?x64xf32>) -> tensor<?x64xf32> {
  %y = linalg.matmul ins(%x, %w : tensor<?x128xf32>, tensor<128x64xf32, #w>) outs(%init : tensor<?x64xf32>) -> tensor<?x64xf32>
  return %y : tensor<?x64xf32>
}
