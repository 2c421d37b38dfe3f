// One function for any number of tokens: each number runs the kernel of its
// class, and the results are right on both sides of the border between two.
// RUN: nm-compile %s --tokens 8,4096 --emit specialize -o - | FileCheck %s
// RUN: nm-run %s --entry layer --tokens 8,4096 --size 0 --device emulate --check | FileCheck %s --check-prefix=NONE
// RUN: nm-run %s --entry layer --tokens 8,4096 --size 1 --device emulate --check | FileCheck %s --check-prefix=SELECT
// RUN: nm-run %s --entry layer --tokens 8,4096 --size 128 --device emulate --check | FileCheck %s --check-prefix=SELECT
// RUN: nm-run %s --entry layer --tokens 8,4096 --size 129 --device emulate --check | FileCheck %s --check-prefix=SELECT
// RUN: nm-run %s --entry layer --tokens 8,4096 --size 1025 --device emulate --check | FileCheck %s --check-prefix=SELECT
// RUN: nm-run %s --entry twice --tokens 8,4096 --size 7 --device emulate --check | FileCheck %s --check-prefix=SELECT
// RUN: nm-run %s --entry sequences --tokens 8,4096 --size 33 --device emulate --check | FileCheck %s --check-prefix=SELECT

// RUN: nm-compile %s --tokens 8,4096 --explain -o %t.ptx | FileCheck %s --check-prefix=EXPLAIN

// EXPLAIN: specialize
// EXPLAIN-NEXT: @layer selects between 2 copies
// EXPLAIN-NEXT: 0 to {{[0-9]+}} tokens: @layer_tokens_8
// EXPLAIN-NEXT: {{[0-9]+}} and more tokens: @layer_tokens_4096

// CHECK-DAG: func.func private @layer_tokens_8
// CHECK-DAG: func.func private @layer_tokens_4096
// CHECK-DAG: func.func private @sequences_tokens_8

// NONE: every result is empty
// SELECT: schedule @[[NAME:[a-z]+]]_tokens_8: #nm_tile.schedule<tile = [{{[1-8]}}, {{.*}} product = panel_dot<
// SELECT: schedule @[[NAME]]_tokens_4096: #nm_tile.schedule<tile = [{{[0-9][0-9]+}},
// SELECT: PASS

#w = #nm_sparse.encoding<16:32, block = [1, 128]>

func.func @layer(%x: tensor<?x512xf16>, %w: tensor<512x512xf16, #w>) -> tensor<?x512xf16> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f16
  %m = tensor.dim %x, %c0 : tensor<?x512xf16>
  %empty = tensor.empty(%m) : tensor<?x512xf16>
  %init = linalg.fill ins(%zero : f16) outs(%empty : tensor<?x512xf16>) -> tensor<?x512xf16>
  %y = linalg.matmul ins(%x, %w : tensor<?x512xf16>, tensor<512x512xf16, #w>)
                     outs(%init : tensor<?x512xf16>) -> tensor<?x512xf16>
  return %y : tensor<?x512xf16>
}

func.func @twice(%x: tensor<?x512xf16>, %w: tensor<512x512xf16, #w>) -> tensor<?x512xf16> {
  %h = func.call @layer(%x, %w) : (tensor<?x512xf16>, tensor<512x512xf16, #w>) -> tensor<?x512xf16>
  %y = func.call @layer(%h, %w) : (tensor<?x512xf16>, tensor<512x512xf16, #w>) -> tensor<?x512xf16>
  return %y : tensor<?x512xf16>
}

func.func @sequences(%x: tensor<?x?x512xf16>, %w: tensor<512x512xf16, #w>) -> tensor<?x?x512xf16> {
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
