// RUN: nm-opt %s --split-input-file --verify-diagnostics --nm-sparse-tile

// expected-error @below {{code is of free elements with order = identity, got #nm_sparse.encoding<2:4>}}
#c = #nm_sparse.code<#nm_sparse.encoding<2:4>, dense<0.0> : tensor<4x4xf32>>
func.func private @pattern() attributes {c = #c}

// -----

// expected-error @below {{the weight of code must have rank 2, got 'tensor<2x4x4xf32>'}}
#c = #nm_sparse.code<#nm_sparse.encoding<free>, dense<0.0> : tensor<2x4x4xf32>>
func.func private @rank() attributes {c = #c}

// -----

#e = #nm_sparse.encoding<free>
#x = affine_map<(m, n, k) -> (k, m)>
#w = affine_map<(m, n, k) -> (k, n)>
#y = affine_map<(m, n, k) -> (n, m)>

func.func @rows(%x: tensor<5x8xf32>, %init: tensor<30x8xf32>) -> tensor<30x8xf32> {
  // expected-error @below {{contraction size 5, but its code is of a weight with 4 rows}}
  %0 = nm_sparse.matmul #e storage = #nm_sparse.code<#e, dense<0.0> : tensor<4x32xf32>> indexing_maps = [#x, #w, #y]
    ins(%x : tensor<5x8xf32>) outs(%init : tensor<30x8xf32>) -> tensor<30x8xf32>
  return %0 : tensor<30x8xf32>
}

// -----

#e = #nm_sparse.encoding<free>
#x = affine_map<(m, n, k) -> (k, m)>
#w = affine_map<(m, n, k) -> (k, n)>
#y = affine_map<(m, n, k) -> (n, m)>

func.func @type(%x: tensor<4x8xf16>, %init: tensor<30x8xf32>) -> tensor<30x8xf32> {
  // expected-error @below {{has its weight as code, which is one 'tensor<4x32xf32>' for all of x, got 'tensor<4x8xf16>'}}
  %0 = nm_sparse.matmul #e storage = #nm_sparse.code<#e, dense<0.0> : tensor<4x32xf32>> indexing_maps = [#x, #w, #y]
    ins(%x : tensor<4x8xf16>) outs(%init : tensor<30x8xf32>) -> tensor<30x8xf32>
  return %0 : tensor<30x8xf32>
}

// -----

#e = #nm_sparse.encoding<free>
#x = affine_map<(m, n, k) -> (k, m)>
#w = affine_map<(m, n, k) -> (k, n)>
#y = affine_map<(m, n, k) -> (n, m)>

func.func @outputs(%x: tensor<4x8xf32>, %init: tensor<40x8xf32>) -> tensor<40x8xf32> {
  // expected-error @below {{result has 40 outputs, values holds 32}}
  %0 = nm_sparse.matmul #e storage = #nm_sparse.code<#e, dense<0.0> : tensor<4x32xf32>> indexing_maps = [#x, #w, #y]
    ins(%x : tensor<4x8xf32>) outs(%init : tensor<40x8xf32>) -> tensor<40x8xf32>
  return %0 : tensor<40x8xf32>
}

// -----

#e = #nm_sparse.encoding<free>
#x = affine_map<(m, n, k) -> (k, m)>
#w = affine_map<(m, n, k) -> (k, n)>
#y = affine_map<(m, n, k) -> (n, m)>

func.func @components(%x: tensor<4x8xf32>, %v: tensor<8xf32>, %init: tensor<30x8xf32>) -> tensor<30x8xf32> {
  // expected-error @below {{has no components, got 1}}
  %0 = nm_sparse.matmul #e storage = #nm_sparse.code<#e, dense<0.0> : tensor<4x32xf32>> indexing_maps = [#x, #w, #y]
    ins(%x, %v : tensor<4x8xf32>, tensor<8xf32>) outs(%init : tensor<30x8xf32>) -> tensor<30x8xf32>
  return %0 : tensor<30x8xf32>
}

// -----

#e = #nm_sparse.encoding<free>
#x = affine_map<(m, n, k) -> (k, m)>
#w = affine_map<(m, n, k) -> (k, n)>
#y = affine_map<(m, n, k) -> (n, m)>
#dot = #nm_tile.schedule<tile = [1, 32, 256], product = dot<warps = 1>, transfers = {x = direct, values = direct, index = direct}, pipeline = sequential>

func.func @reads(%x: tensor<4x8xf32>, %init: tensor<30x8xf32>) -> tensor<30x8xf32> {
  // expected-error @below {{has its weight as code, but a schedule with product = dot, which reads it; legal is product = immediate}}
  %0 = nm_sparse.matmul #e storage = #nm_sparse.code<#e, dense<0.0> : tensor<4x32xf32>> indexing_maps = [#x, #w, #y] config = #dot
    ins(%x : tensor<4x8xf32>) outs(%init : tensor<30x8xf32>) -> tensor<30x8xf32>
  return %0 : tensor<30x8xf32>
}

// -----

#e = #nm_sparse.encoding<free>
#x = affine_map<(m, n, k) -> (k, m)>
#w = affine_map<(m, n, k) -> (k, n)>
#y = affine_map<(m, n, k) -> (n, m)>
#code = #nm_tile.schedule<tile = [32, 32, 256], product = immediate<warps = 1>, transfers = {x = direct, values = direct, index = direct}, pipeline = sequential>

func.func @components_left(%x: tensor<4x8xf32>, %init: tensor<30x8xf32>) -> tensor<30x8xf32> {
  %v = arith.constant dense<0.0> : tensor<4xf32>
  %b = arith.constant dense<0> : tensor<1x1x296xi32>
  // expected-error @below {{has a schedule with product = immediate, whose weight is code; run --nm-sparse-weights-to-code before}}
  %0 = nm_sparse.matmul #e storage = #nm_sparse.bitmap<#e> indexing_maps = [#x, #w, #y] config = #code
    ins(%x, %v, %b : tensor<4x8xf32>, tensor<4xf32>, tensor<1x1x296xi32>) outs(%init : tensor<30x8xf32>) -> tensor<30x8xf32>
  return %0 : tensor<30x8xf32>
}
