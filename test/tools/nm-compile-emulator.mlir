// The kernels as text that the emulator takes in place of PTX.

// RUN: nm-compile %s -o - --emit emulator --manifest %t.json | FileCheck %s
// RUN: FileCheck %s --input-file %t.json --check-prefix=MANIFEST
// RUN: echo 'func.func @f() { return }' | not nm-compile - -o - --emit emulator 2>&1 | FileCheck %s --check-prefix=NONE

// CHECK: "gpu.module"
// CHECK: "llvm.func"
// CHECK-SAME: sym_name = "f_kernel"
// MANIFEST: "kernel": "f_kernel"
// NONE: nm-compile: - has no contraction with an encoded weight, so there is no kernel

#w = #nm_sparse.encoding<8:32, block = [1, 64]>

func.func @f(%x: tensor<256x512xf16>, %w: tensor<512x512xf16, #w>,
             %init: tensor<256x512xf16>) -> tensor<256x512xf16> {
  %y = linalg.matmul ins(%x, %w : tensor<256x512xf16>, tensor<512x512xf16, #w>)
      outs(%init : tensor<256x512xf16>) -> tensor<256x512xf16>
  return %y : tensor<256x512xf16>
}
