// A function that selects by its number of tokens names those that it selects
// between, which the manifest describes as any other. Up to which number the kernels for
// 8 tokens are faster, the model says.
// RUN: nm-compile %s --tokens 8,4096 -o %t.ptx --manifest %t.json
// RUN: FileCheck %s --input-file %t.json
// RUN: FileCheck %s --check-prefix=PTX --input-file %t.ptx

// One copy is enough where one number is asked for.
// RUN: nm-compile %s --tokens 64 -o - --manifest %t.one.json | FileCheck %s --check-prefix=ONE
// RUN: FileCheck %s --check-prefix=VERSION --input-file %t.one.json

// CHECK: "functions": [
// CHECK: "arguments": [
// CHECK: "cases": [
// CHECK-NEXT: {
// CHECK-NEXT: "at_most": 128,
// CHECK-NEXT: "function": "layer_tokens_8"
// CHECK-NEXT: },
// CHECK-NEXT: {
// CHECK-NEXT: "function": "layer_tokens_4096"
// CHECK-NEXT: }
// CHECK-NEXT: ],
// CHECK-NEXT: "name": "layer",
// CHECK-NEXT: "tokens": "(arg0.size[0] * arg0.size[1])",
// CHECK-NEXT: "weights": [
// CHECK: "kernel": "layer_tokens_8_kernel",
// CHECK: "name": "layer_tokens_8",
// CHECK: "kernel": "layer_tokens_4096_kernel",
// CHECK: "name": "layer_tokens_4096",
// CHECK: "manifest_version": 3,
// CHECK: "function": "layer_tokens_8",

// PTX-DAG: .visible .entry layer_tokens_8_kernel(
// PTX-DAG: .visible .entry layer_tokens_4096_kernel(

// ONE: .visible .entry layer_kernel(
// ONE-NOT: .visible .entry
// VERSION-NOT: "cases"
// VERSION: "manifest_version": 2,

#w = #nm_sparse.encoding<16:32, block = [1, 128]>
func.func @layer(%x: tensor<?x?x512xf16>, %w: tensor<512x512xf16, #w>) -> tensor<?x?x512xf16> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f16
  %b = tensor.dim %x, %c0 : tensor<?x?x512xf16>
  %s = tensor.dim %x, %c1 : tensor<?x?x512xf16>
  %flat = tensor.collapse_shape %x [[0, 1], [2]] : tensor<?x?x512xf16> into tensor<?x512xf16>
  %m = arith.muli %b, %s : index
  %empty = tensor.empty(%m) : tensor<?x512xf16>
  %init = linalg.fill ins(%zero : f16) outs(%empty : tensor<?x512xf16>) -> tensor<?x512xf16>
  %y = linalg.matmul ins(%flat, %w : tensor<?x512xf16>, tensor<512x512xf16, #w>)
                     outs(%init : tensor<?x512xf16>) -> tensor<?x512xf16>
  %r = tensor.expand_shape %y [[0, 1], [2]] output_shape [%b, %s, 512]
    : tensor<?x512xf16> into tensor<?x?x512xf16>
  return %r : tensor<?x?x512xf16>
}
