// RUN: nm-opt %s --split-input-file --nm-sparse-weights-to-code --verify-diagnostics | FileCheck %s

#e = #nm_sparse.encoding<free>
#x = affine_map<(m, n, k) -> (k, m)>
#w = affine_map<(m, n, k) -> (k, n)>
#y = affine_map<(m, n, k) -> (n, m)>
#code = #nm_tile.schedule<tile = [32, 32, 256], product = immediate<warps = 1>, transfers = {x = direct, values = direct, index = direct}, pipeline = sequential>
#read = #nm_tile.schedule<tile = [1, 32, 256], product = dot<warps = 1>, transfers = {x = direct, values = direct, index = direct}, pipeline = sequential>

// A weight that keeps nothing: four rows, and the outputs of a whole stored tile.
// A product that reads its weight keeps its components.
// CHECK-LABEL: func.func @layers
// CHECK: nm_sparse.matmul #sparse storage = #nm_sparse.code<#sparse, dense<0.000000e+00> : tensor<4x32xf32>> {{.*}} ins(%{{.*}} : tensor<4x?xf32>) outs(
// CHECK: nm_sparse.matmul #sparse storage = #nm_sparse.bitmap<#sparse> {{.*}} ins(%{{.*}}, %{{.*}}, %{{.*}} :
func.func @layers(%x: tensor<4x?xf32>, %init: tensor<30x?xf32>) -> (tensor<30x?xf32>, tensor<30x?xf32>) {
  %v = arith.constant dense<0.0> : tensor<4xf32>
  %b = arith.constant dense<0> : tensor<1x1x296xi32>
  %0 = nm_sparse.matmul #e storage = #nm_sparse.bitmap<#e> indexing_maps = [#x, #w, #y] config = #code
    ins(%x, %v, %b : tensor<4x?xf32>, tensor<4xf32>, tensor<1x1x296xi32>) outs(%init : tensor<30x?xf32>) -> tensor<30x?xf32>
  %1 = nm_sparse.matmul #e storage = #nm_sparse.bitmap<#e> indexing_maps = [#x, #w, #y] config = #read
    ins(%x, %v, %b : tensor<4x?xf32>, tensor<4xf32>, tensor<1x1x296xi32>) outs(%init : tensor<30x?xf32>) -> tensor<30x?xf32>
  return %0, %1 : tensor<30x?xf32>, tensor<30x?xf32>
}

// -----

#e = #nm_sparse.encoding<free>
#code = #nm_tile.schedule<tile = [32, 32, 256], product = immediate<warps = 1>, transfers = {x = direct, values = direct, index = direct}, pipeline = sequential>

func.func @argument(%x: tensor<4x?xf32>, %v: tensor<?xf32>, %b: tensor<1x1x296xi32>, %init: tensor<30x?xf32>) -> tensor<30x?xf32> {
  // expected-error @below {{has a schedule with product = immediate, which needs a constant weight, but it is 'tensor<?xf32>' of the caller; give its data as a constant, or use product = dot}}
  %0 = nm_sparse.matmul #e storage = #nm_sparse.bitmap<#e>
    indexing_maps = [affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (n, m)>] config = #code
    ins(%x, %v, %b : tensor<4x?xf32>, tensor<?xf32>, tensor<1x1x296xi32>) outs(%init : tensor<30x?xf32>) -> tensor<30x?xf32>
  return %0 : tensor<30x?xf32>
}
