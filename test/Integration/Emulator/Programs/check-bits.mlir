// Damaged bits are found before a kernel reads with them: a window that keeps
// too many rows, one that keeps a part of a block, and outputs of a panel that
// differ. 0x33333333 keeps the second of two blocks of two rows, 0xc3333333 the
// first of the first window, and 0x99999999 parts of both.
//
// RUN: nm-run %s --device emulate | FileCheck %s --check-prefix=LEGAL
// RUN: sed 's/dense<0x33333333>/dense<0x33333337>/' %s > %t.many.mlir
// RUN: not nm-run %t.many.mlir --device emulate 2>&1 | FileCheck %s --check-prefix=MANY
// RUN: sed 's/dense<0x33333333>/dense<0x99999999>/' %s > %t.parts.mlir
// RUN: not nm-run %t.parts.mlir --device emulate 2>&1 | FileCheck %s --check-prefix=PARTS
// RUN: sed 's/insert %%same/insert %%other/' %s > %t.panel.mlir
// RUN: not nm-run %t.panel.mlir --device emulate 2>&1 | FileCheck %s --check-prefix=PANEL

// LEGAL: emulated
// MANY: check bits: argument 2: window 7 of output 0 (batch 0) keeps 3 rows: legal is 2; the bits are damaged or of another encoding
// PARTS: check bits: argument 2: window 0 of output 0 (batch 0) keeps a part of a block: legal are whole blocks of 2 rows; the bits are damaged
// PANEL: check bits: argument 2: window 0 of output 5 (batch 0) keeps other rows than output 4 of the same panel; the bits are damaged

#e = #nm_sparse.encoding<1:2, block = [2, 4]>
#packed = #nm_sparse.packed<#nm_sparse.bitmap<#e>, [64, 32], f16>

func.func private @product(%x: tensor<2x64xf16>,
    %v: tensor<1x2x512xf16> {nm_sparse.component = #nm_sparse.component<"values", weight = 0, of = #packed>},
    %b: tensor<1x2x32xi32> {nm_sparse.component = #nm_sparse.component<"bits", weight = 0, of = #packed>}) -> tensor<2x32xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<2x32xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<2x32xf32>) -> tensor<2x32xf32>
  %y = nm_sparse.matmul #e storage = #nm_sparse.bitmap<#e>
         indexing_maps = [affine_map<(m, n, k) -> (m, k)>,
                          affine_map<(m, n, k) -> (k, n)>,
                          affine_map<(m, n, k) -> (m, n)>]
         ins(%x, %v, %b : tensor<2x64xf16>, tensor<1x2x512xf16>, tensor<1x2x32xi32>)
         outs(%init : tensor<2x32xf32>) -> tensor<2x32xf32>
  return %y : tensor<2x32xf32>
}

func.func @main(%x: tensor<2x64xf16>, %v: tensor<1x2x512xf16>) -> tensor<2x32xf32> {
  %all = arith.constant dense<0x33333333> : tensor<1x2x32xi32>
  %zero = arith.constant 0 : index
  %five = arith.constant 5 : index
  %same = arith.constant 0x33333333 : i32
  %other = arith.constant 0xc3333333 : i32
  %b = tensor.insert %same into %all[%zero, %zero, %five] : tensor<1x2x32xi32>
  %y = call @product(%x, %v, %b) : (tensor<2x64xf16>, tensor<1x2x512xf16>, tensor<1x2x32xi32>) -> tensor<2x32xf32>
  return %y : tensor<2x32xf32>
}
