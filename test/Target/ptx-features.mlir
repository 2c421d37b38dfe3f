// What the code of a kernel says of it, for models that know no more.

// RUN: nm-compile %s -o - | nm-translate --ptx-to-features | FileCheck %s
// RUN: echo nothing | not nm-translate --ptx-to-features 2>&1 | FileCheck %s --check-prefix=ERROR

// CHECK: "by_depth": [
// CHECK: "max_threads": {{[1-9]}}
// CHECK: "name": "f_kernel"
// CHECK: "total": {
// CHECK: "copied": {{[1-9]}}
// CHECK: "tensor_flops": {{[1-9]}}

// ERROR: nm-translate: <stdin>: line 1: 'nothing' does not end with ';'

#w = #nm_sparse.encoding<8:32, block = [1, 64]>

func.func @f(%x: tensor<256x512xf16>, %w: tensor<512x512xf16, #w>,
             %init: tensor<256x512xf16>) -> tensor<256x512xf16> {
  %y = linalg.matmul ins(%x, %w : tensor<256x512xf16>, tensor<512x512xf16, #w>)
      outs(%init : tensor<256x512xf16>) -> tensor<256x512xf16>
  return %y : tensor<256x512xf16>
}
