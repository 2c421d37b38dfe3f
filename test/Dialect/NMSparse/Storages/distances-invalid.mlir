// RUN: nm-test-opt %s --split-input-file --verify-diagnostics --nm-sparse-to-nvvm="chip=sm_90a storage=nm_test_storages.distances"

// A schedule says which of its parts cannot read a storage, and what could.

#w = #nm_sparse.encoding<4:8, block = [1, 32]>

func.func @gather(%x: tensor<32x64xf32>, %w: tensor<64x64xf32, #w>, %init: tensor<32x64xf32>) -> tensor<32x64xf32> {
  // expected-error @below {{whose positions have a form of their own, but a schedule with x = gather and index = resident, which look rows of x up before the product; legal is x = copy, index = staged or resident}}
  %y = linalg.matmul {nm_sparse.config = #nm_tile.schedule<tile = [32, 32, 8], product = simt<warps = [2, 2]>,
      transfers = {x = gather, values = copy, index = resident}, pipeline = async_groups<stages = 3>>}
    ins(%x, %w : tensor<32x64xf32>, tensor<64x64xf32, #w>) outs(%init : tensor<32x64xf32>) -> tensor<32x64xf32>
  return %y : tensor<32x64xf32>
}

// -----

#w = #nm_sparse.encoding<4:8, block = [1, 128]>

func.func @panel_dot(%x: tensor<1x64xf32>, %w: tensor<64x128xf32, #w>, %init: tensor<1x128xf32>) -> tensor<1x128xf32> {
  // expected-error @below {{whose positions have a form of their own, but a schedule with product = panel_dot, which reads those of the canonical form; legal are products that decode positions, such as simt}}
  %y = linalg.matmul {nm_sparse.config = #nm_tile.schedule<tile = [1, 128, 32], product = panel_dot<warps = 1, shares = 1>,
      transfers = {x = direct, values = direct, index = direct}, pipeline = sequential>}
    ins(%x, %w : tensor<1x64xf32>, tensor<64x128xf32, #w>) outs(%init : tensor<1x128xf32>) -> tensor<1x128xf32>
  return %y : tensor<1x128xf32>
}

// -----

#w = #nm_sparse.encoding<4:8>

func.func @dot(%x: tensor<1x64xf32>, %w: tensor<64x64xf32, #w>, %init: tensor<1x64xf32>) -> tensor<1x64xf32> {
  // expected-error @below {{which reads weights that are stored as bitmaps, but values and positions; run --nm-sparse-select-storage=storage=bitmap before, or take a product that reads these, such as simt}}
  %y = linalg.matmul {nm_sparse.config = #nm_tile.schedule<tile = [1, 32, 32], product = dot<warps = 1>,
      transfers = {x = direct, values = direct, index = direct}, pipeline = sequential>}
    ins(%x, %w : tensor<1x64xf32>, tensor<64x64xf32, #w>) outs(%init : tensor<1x64xf32>) -> tensor<1x64xf32>
  return %y : tensor<1x64xf32>
}

// -----

// expected-error @below {{distances are those of one n:m level of at most 256 blocks, with order = identity, got #nm_sparse.encoding<free>}}
#p = #nm_sparse.packed<#nm_test_storages.distances<#nm_sparse.encoding<free>>, [4, 4], f32>
func.func private @free(tensor<4x4xf32> {nm_sparse.component = #nm_sparse.component<"values", weight = 0, of = #p>})
