// RUN: nm-opt %s --nm-sparse-to-nvvm --split-input-file --verify-diagnostics

// -----

// expected-error @below {{immediate needs 1 to 32 warps, got 33}}
#s = #nm_tile.schedule<tile = [32, 32, 256], product = immediate<warps = 33>, transfers = {x = direct, values = direct, index = direct}, pipeline = sequential>

// -----

// expected-error @below {{immediate needs shares that divide its 4 warps, got 3}}
#s = #nm_tile.schedule<tile = [32, 32, 256], product = immediate<warps = 4, shares = 3>, transfers = {x = direct, values = direct, index = direct}, pipeline = sequential>

// -----

// expected-error @below {{a tile of immediate must be 64, 128 or 256 tokens for the 2 warps of a share, got 96}}
#s = #nm_tile.schedule<tile = [96, 32, 256], product = immediate<warps = 4, shares = 2>, transfers = {x = direct, values = direct, index = direct}, pipeline = sequential>

// -----

// expected-error @below {{a tile of immediate must be at most 128 outputs and 128 sums of a lane, got 64 outputs and 256 sums}}
#s = #nm_tile.schedule<tile = [128, 64, 256], product = immediate<warps = 1>, transfers = {x = direct, values = direct, index = direct}, pipeline = sequential>

// -----

// expected-error @below {{a tile of immediate must be at most 128 outputs and 128 sums of a lane, got 160 outputs and 160 sums}}
#s = #nm_tile.schedule<tile = [32, 160, 256], product = immediate<warps = 1>, transfers = {x = direct, values = direct, index = direct}, pipeline = sequential>

// -----

// expected-error @below {{a tile of immediate must have as many outputs for each of its 3 shares, got 32}}
#s = #nm_tile.schedule<tile = [32, 32, 256], product = immediate<warps = 3, shares = 3>, transfers = {x = direct, values = direct, index = direct}, pipeline = sequential>

// -----

// expected-error @below {{immediate reads global memory: legal is transfers = {x = direct, values = direct, index = direct}}}
#s = #nm_tile.schedule<tile = [32, 32, 256], product = immediate<warps = 1>, pipeline = async_groups<stages = 2>>

// -----

#w = #nm_sparse.encoding<free>
#s = #nm_tile.schedule<tile = [32, 32, 256], product = immediate<warps = 1>, transfers = {x = direct, values = direct, index = direct}, pipeline = sequential>
func.func @layer(%x: tensor<4x?xi8>, %init: tensor<32x?xi32>) -> tensor<32x?xi32> {
  %w = arith.constant dense<0> : tensor<4x32xi8, #w>
  // expected-error @below {{has a schedule with product = immediate, which multiplies f16, bf16 and f32, but operands of 'i8'}}
  %y = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (n, m)>] {nm_sparse.config = #s} ins(%x, %w : tensor<4x?xi8>, tensor<4x32xi8, #w>) outs(%init : tensor<32x?xi32>) -> tensor<32x?xi32>
  return %y : tensor<32x?xi32>
}

// -----

#w = #nm_sparse.encoding<2:4>
#s = #nm_tile.schedule<tile = [32, 32, 2], product = immediate<warps = 1>, transfers = {x = direct, values = direct, index = direct}, pipeline = sequential>
func.func @layer(%x: tensor<4x?xf32>, %init: tensor<32x?xf32>) -> tensor<32x?xf32> {
  %w = arith.constant dense<0.0> : tensor<4x32xf32, #w>
  // expected-error @below {{has a schedule with product = immediate, which multiplies constants of free elements, but #nm_sparse.encoding<2:4>; --nm-sparse-specialize-constants stores them so}}
  %y = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (n, m)>] {nm_sparse.config = #s} ins(%x, %w : tensor<4x?xf32>, tensor<4x32xf32, #w>) outs(%init : tensor<32x?xf32>) -> tensor<32x?xf32>
  return %y : tensor<32x?xf32>
}

// -----

#w = #nm_sparse.encoding<free>
#s = #nm_tile.schedule<tile = [32, 32, 256], product = immediate<warps = 1>, transfers = {x = direct, values = direct, index = direct}, pipeline = sequential, grid = flat<split_k = 2>>
func.func @layer(%x: tensor<4x?xf32>, %init: tensor<32x?xf32>) -> tensor<32x?xf32> {
  %w = arith.constant dense<0.0> : tensor<4x32xf32, #w>
  // expected-error @below {{has a schedule with product = immediate, whose tiles have code of their own, but grid = #nm_tile.flat<split_k = 2>; legal is flat}}
  %y = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (n, m)>] {nm_sparse.config = #s} ins(%x, %w : tensor<4x?xf32>, tensor<4x32xf32, #w>) outs(%init : tensor<32x?xf32>) -> tensor<32x?xf32>
  return %y : tensor<32x?xf32>
}

// -----

#w = #nm_sparse.encoding<free>
#s = #nm_tile.schedule<tile = [32, 32, 256], product = immediate<warps = 1>, transfers = {x = direct, values = direct, index = direct}, pipeline = sequential>
func.func @layer(%x: tensor<?x4xf32>, %init: tensor<?x32xf32>) -> tensor<?x32xf32> {
  %w = arith.constant dense<0.0> : tensor<4x32xf32, #w>
  // expected-error @below {{has a schedule with product = immediate, which reads feature-major activations, but they are token-major}}
  %y = linalg.matmul  {nm_sparse.config = #s} ins(%x, %w : tensor<?x4xf32>, tensor<4x32xf32, #w>) outs(%init : tensor<?x32xf32>) -> tensor<?x32xf32>
  return %y : tensor<?x32xf32>
}

// -----

#w = #nm_sparse.encoding<free>
#s = #nm_tile.schedule<tile = [32, 32, 256], product = immediate<warps = 1>, transfers = {x = direct, values = direct, index = direct}, pipeline = sequential>
func.func @layer(%x: tensor<4x?xf32>, %w: tensor<4x32xf32, #w>, %init: tensor<32x?xf32>) -> tensor<32x?xf32> {
  // expected-error @below {{has a schedule with product = immediate, which needs a constant weight, but it is 'tensor<?xf32>' of the caller; give its data as a constant, or use product = dot}}
  %y = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (n, m)>] {nm_sparse.config = #s} ins(%x, %w : tensor<4x?xf32>, tensor<4x32xf32, #w>) outs(%init : tensor<32x?xf32>) -> tensor<32x?xf32>
  return %y : tensor<32x?xf32>
}

// -----

#w = #nm_sparse.encoding<free>
#s = #nm_tile.schedule<tile = [32, 32, 256], product = immediate<warps = 1>, transfers = {x = direct, values = direct, index = direct}, pipeline = sequential>
func.func @layer(%x: tensor<300x?xf32>, %init: tensor<32x?xf32>) -> tensor<32x?xf32> {
  %w = arith.constant dense<0.0> : tensor<300x32xf32, #w>
  // expected-error @below {{has a schedule with product = immediate, whose K step is all rows of the weight, but tile = [32, 32, 256] and activations }}
  %y = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (n, m)>] {nm_sparse.config = #s} ins(%x, %w : tensor<300x?xf32>, tensor<300x32xf32, #w>) outs(%init : tensor<32x?xf32>) -> tensor<32x?xf32>
  return %y : tensor<32x?xf32>
}

// -----

#w = #nm_sparse.encoding<free, dim = 1>
#s = #nm_tile.schedule<tile = [32, 32, 256], product = immediate<warps = 1>, transfers = {x = direct, values = direct, index = direct}, pipeline = sequential>
func.func @layer(%x: tensor<2x4x?xf32>, %init: tensor<2x?x32xf32>) -> tensor<2x?x32xf32> {
  %w = arith.constant dense<0.0> : tensor<2x4x32xf32, #w>
  // expected-error @below {{has a schedule with product = immediate, whose weight has no batches, but its bits are }}
  %y = linalg.batch_matmul indexing_maps = [affine_map<(b, m, n, k) -> (b, k, m)>, affine_map<(b, m, n, k) -> (b, k, n)>, affine_map<(b, m, n, k) -> (b, m, n)>]
    {nm_sparse.config = #s} ins(%x, %w : tensor<2x4x?xf32>, tensor<2x4x32xf32, #w>) outs(%init : tensor<2x?x32xf32>) -> tensor<2x?x32xf32>
  return %y : tensor<2x?x32xf32>
}
