// Damaged panels are found before a kernel reads with them: a panel that begins
// elsewhere, one with a place of another, and a row that the weight does not have.
//
// RUN: nm-run %s --device emulate | FileCheck %s --check-prefix=LEGAL
// RUN: sed 's/\[64, 0, 1, 1\]/[60, 0, 1, 1]/' %s > %t.first.mlir
// RUN: not nm-run %t.first.mlir --device emulate 2>&1 | FileCheck %s --check-prefix=FIRST
// RUN: sed 's/\[64, 0, 1, 1\]/[64, 0, 0, 1]/' %s > %t.place.mlir
// RUN: not nm-run %t.place.mlir --device emulate 2>&1 | FileCheck %s --check-prefix=PLACE
// RUN: sed 's/5 : i32 .. row/9 : i32/' %s > %t.row.mlir
// RUN: not nm-run %t.row.mlir --device emulate 2>&1 | FileCheck %s --check-prefix=ROW

// LEGAL: emulated
// FIRST: check panels: argument 3: panels: row 1 has 0 rows from 60 on: legal is a multiple of 64 from 64 on, where the weight has 64 rows in all
// PLACE: check panels: argument 3: panels: row 1 is of panel 0, whose place is another
// ROW: check panels: argument 3: index: panel 0 has row 9 after -1: rows must increase in steps of 1 and stay below 8

#e = #nm_sparse.encoding<free, block = [1, 8]>
#packed = #nm_sparse.packed<#nm_sparse.ragged<#e>, [8, 16], f16>

func.func private @product(%x: tensor<2x8xf16>,
    %v: tensor<?x8xf16> {nm_sparse.component = #nm_sparse.component<"values", weight = 0, of = #packed>},
    %i: tensor<?x1xi32> {nm_sparse.component = #nm_sparse.component<"index", weight = 0, of = #packed>},
    %p: tensor<2x4xi32> {nm_sparse.component = #nm_sparse.component<"panels", weight = 0, of = #packed>}) -> tensor<2x16xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<2x16xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<2x16xf32>) -> tensor<2x16xf32>
  %y = nm_sparse.matmul #e storage = #nm_sparse.ragged<#e>
         indexing_maps = [affine_map<(m, n, k) -> (m, k)>,
                          affine_map<(m, n, k) -> (k, n)>,
                          affine_map<(m, n, k) -> (m, n)>]
         ins(%x, %v, %i, %p : tensor<2x8xf16>, tensor<?x8xf16>, tensor<?x1xi32>, tensor<2x4xi32>)
         outs(%init : tensor<2x16xf32>) -> tensor<2x16xf32>
  return %y : tensor<2x16xf32>
}

func.func @main(%x: tensor<2x8xf16>, %known: tensor<64x8xf16>) -> tensor<2x16xf32> {
  %none = arith.constant dense<8> : tensor<64x1xi32>
  %zero = arith.constant 0 : index
  %row = arith.constant 5 : i32 // row
  %index = tensor.insert %row into %none[%zero, %zero] : tensor<64x1xi32>
  %panels = arith.constant dense<[[0, 64, 0, 0], [64, 0, 1, 1]]> : tensor<2x4xi32>
  %v = tensor.cast %known : tensor<64x8xf16> to tensor<?x8xf16>
  %i = tensor.cast %index : tensor<64x1xi32> to tensor<?x1xi32>
  %y = call @product(%x, %v, %i, %panels) : (tensor<2x8xf16>, tensor<?x8xf16>, tensor<?x1xi32>, tensor<2x4xi32>) -> tensor<2x16xf32>
  return %y : tensor<2x16xf32>
}
