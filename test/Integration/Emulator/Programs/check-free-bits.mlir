// Damaged bits of free elements are found before a kernel reads with them: an
// output that lacks its last row, a block that says that it has another piece,
// and values that are not there. All 32 outputs keep the 8 rows there are, in
// one piece each; the fourth output can be told otherwise.
//
// RUN: nm-run %s --device emulate | FileCheck %s --check-prefix=LEGAL
// RUN: sed 's/0xff000000 : i32 .. fourth/0xfe000000 : i32/' %s > %t.row.mlir
// RUN: not nm-run %t.row.mlir --device emulate 2>&1 | FileCheck %s --check-prefix=ROW
// RUN: sed 's/1 : i32 .. pieces/2 : i32/' %s > %t.pieces.mlir
// RUN: not nm-run %t.pieces.mlir --device emulate 2>&1 | FileCheck %s --check-prefix=PIECES
// RUN: sed 's/tensor<256xf16>/tensor<512xf16>/' %s > %t.more.mlir
// RUN: not nm-run %t.more.mlir --device emulate 2>&1 | FileCheck %s --check-prefix=MORE
// RUN: sed 's/tensor<256xf16>/tensor<0xf16>/' %s > %t.none.mlir
// RUN: not nm-run %t.none.mlir --device emulate 2>&1 | FileCheck %s --check-prefix=NONE

// LEGAL: emulated
// ROW: check bits: argument 2: output 3 (batch 0) keeps row 6, as its last one, before others of its block end; the bits are damaged or of another shape
// PIECES: check bits: argument 2: word 2 behind the bits of block 0 (batch 0) is 2, but they say 1; they are damaged or of another shape
// MORE: check bits: argument 2: there are 2 pieces of each output, but the bits name 1
// NONE: check bits: argument 2: block 0 (batch 0) ends with piece 1, but there are 0; values and bits belong to different weights

#e = #nm_sparse.encoding<free>
#packed = #nm_sparse.packed<#nm_sparse.bitmap<#e>, [8, 32], f16>

func.func private @product(%x: tensor<2x8xf16>,
    %v: tensor<?xf16> {nm_sparse.component = #nm_sparse.component<"values", weight = 0, of = #packed>},
    %b: tensor<1x1x296xi32> {nm_sparse.component = #nm_sparse.component<"bits", weight = 0, of = #packed>}) -> tensor<2x32xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<2x32xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<2x32xf32>) -> tensor<2x32xf32>
  %y = nm_sparse.matmul #e storage = #nm_sparse.bitmap<#e>
         indexing_maps = [affine_map<(m, n, k) -> (m, k)>,
                          affine_map<(m, n, k) -> (k, n)>,
                          affine_map<(m, n, k) -> (m, n)>]
         ins(%x, %v, %b : tensor<2x8xf16>, tensor<?xf16>, tensor<1x1x296xi32>)
         outs(%init : tensor<2x32xf32>) -> tensor<2x32xf32>
  return %y : tensor<2x32xf32>
}

func.func @main(%x: tensor<2x8xf16>, %known: tensor<256xf16>) -> tensor<2x32xf32> {
  %none = arith.constant dense<0> : tensor<1x1x296xi32>
  %all = arith.constant dense<0xff000000> : tensor<1x1x32xi32>
  %zero = arith.constant 0 : index
  %three = arith.constant 3 : index
  %whole = arith.constant 257 : index
  %count = arith.constant 258 : index
  %one = arith.constant 1 : i32
  %rows = arith.constant 0xff000000 : i32 // fourth
  %pieces = arith.constant 1 : i32 // pieces
  %0 = tensor.insert_slice %all into %none[0, 0, 0] [1, 1, 32] [1, 1, 1] : tensor<1x1x32xi32> into tensor<1x1x296xi32>
  %1 = tensor.insert %rows into %0[%zero, %zero, %three] : tensor<1x1x296xi32>
  %2 = tensor.insert %one into %1[%zero, %zero, %whole] : tensor<1x1x296xi32>
  %b = tensor.insert %pieces into %2[%zero, %zero, %count] : tensor<1x1x296xi32>
  %v = tensor.cast %known : tensor<256xf16> to tensor<?xf16>
  %y = call @product(%x, %v, %b) : (tensor<2x8xf16>, tensor<?xf16>, tensor<1x1x296xi32>) -> tensor<2x32xf32>
  return %y : tensor<2x32xf32>
}
