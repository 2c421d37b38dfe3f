// A damaged index is found before a kernel reads with it: once a position that
// m does not allow, once positions that do not increase.
//
// RUN: not nm-run %s --device emulate 2>&1 | FileCheck %s
// RUN: sed 's/dense<40>/dense<5>/' %s > %t.mlir
// RUN: not nm-run %t.mlir --device emulate 2>&1 | FileCheck %s --check-prefix=EQUAL

// CHECK: check index: argument 2: window 0, panel 0: slot 0 holds position 40, which is not below m = 32: positions are 0 to 31
// EQUAL: slot 1 holds position 5, which is not above that of the slot before, 5

#packed = #nm_sparse.packed<#nm_sparse.encoding<16:32, block = [1, 32]>, [64, 64], f32>

func.func private @product(%x: tensor<8x64xf32>,
    %v: tensor<32x64xf32> {nm_sparse.component = #nm_sparse.component<"values", weight = 0, of = #packed>},
    %i: tensor<32x2xi8> {nm_sparse.component = #nm_sparse.component<"index", weight = 0, of = #packed>}) -> tensor<8x64xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<8x64xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<8x64xf32>) -> tensor<8x64xf32>
  %y = nm_sparse.matmul #nm_sparse.encoding<16:32, block = [1, 32]>
         indexing_maps = [affine_map<(m, n, k) -> (m, k)>,
                          affine_map<(m, n, k) -> (k, n)>,
                          affine_map<(m, n, k) -> (m, n)>]
         ins(%x, %v, %i : tensor<8x64xf32>, tensor<32x64xf32>, tensor<32x2xi8>)
         outs(%init : tensor<8x64xf32>) -> tensor<8x64xf32>
  return %y : tensor<8x64xf32>
}

func.func @main(%x: tensor<8x64xf32>, %v: tensor<32x64xf32>) -> tensor<8x64xf32> {
  %i = arith.constant dense<40> : tensor<32x2xi8>
  %y = call @product(%x, %v, %i) : (tensor<8x64xf32>, tensor<32x64xf32>, tensor<32x2xi8>) -> tensor<8x64xf32>
  return %y : tensor<8x64xf32>
}
