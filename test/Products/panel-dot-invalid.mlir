// RUN: nm-opt %s --nm-sparse-tile --split-input-file --verify-diagnostics

// expected-error @below {{panel_dot needs 1 to 32 warps, got 33}}
#s = #nm_tile.schedule<tile = [1, 256, 64], product = panel_dot<warps = 33, shares = 33>, transfers = {x = direct, values = direct, index = direct}, pipeline = sequential>

// -----

// expected-error @below {{panel_dot needs shares of 1, 2, 4, 8, 16 or 32 lanes each, got 3 of 1 warps}}
#s = #nm_tile.schedule<tile = [1, 256, 64], product = panel_dot<warps = 1, shares = 3>, transfers = {x = direct, values = direct, index = direct}, pipeline = sequential>

// -----

// expected-error @below {{panel_dot needs shares of 1, 2, 4, 8, 16 or 32 lanes each, got 1 of 2 warps}}
#s = #nm_tile.schedule<tile = [1, 256, 64], product = panel_dot<warps = 2, shares = 1>, transfers = {x = direct, values = direct, index = direct}, pipeline = sequential>

// -----

// expected-error @below {{panel_dot needs shares of 1, 2, 4, 8, 16 or 32 lanes each, got 0 of 2 warps}}
#s = #nm_tile.schedule<tile = [1, 256, 64], product = panel_dot<warps = 2, shares = 0>, transfers = {x = direct, values = direct, index = direct}, pipeline = sequential>

// -----

// expected-error @below {{a tile of panel_dot must be at most 8 tokens and a multiple of the 16 lanes of a share in outputs, got 9 x 128}}
#s = #nm_tile.schedule<tile = [9, 128, 64], product = panel_dot<warps = 2, shares = 4>, transfers = {x = direct, values = direct, index = direct}, pipeline = sequential>

// -----

// expected-error @below {{a tile of panel_dot must be at most 8 tokens and a multiple of the 16 lanes of a share in outputs, got 1 x 24}}
#s = #nm_tile.schedule<tile = [1, 24, 64], product = panel_dot<warps = 2, shares = 4>, transfers = {x = direct, values = direct, index = direct}, pipeline = sequential>

// -----

// expected-error @below {{panel_dot reads global memory: legal is transfers = {x = direct, values = direct, index = direct}}}
#s = #nm_tile.schedule<tile = [1, 128, 64], product = panel_dot<warps = 2, shares = 4>, pipeline = async_groups<stages = 2>>

// -----

#x = affine_map<(m, n, k) -> (m, k)>
#w = affine_map<(m, n, k) -> (k, n)>
#y = affine_map<(m, n, k) -> (m, n)>

func.func @integers(%x: tensor<1x128xi8>, %v: tensor<64x256xi8>, %i: tensor<64x1xi8>, %init: tensor<1x256xi32>) -> tensor<1x256xi32> {
  // expected-error @below {{has a schedule with product = panel_dot, which multiplies f16, bf16 and f32, but operands of 'i8'}}
  %0 = nm_sparse.matmul #nm_sparse.encoding<8:16, block = [1, 256]> indexing_maps = [#x, #w, #y]
    config = #nm_tile.schedule<tile = [1, 256, 64], product = panel_dot<warps = 2, shares = 4>, transfers = {x = direct, values = direct, index = direct}, pipeline = sequential>
    ins(%x, %v, %i : tensor<1x128xi8>, tensor<64x256xi8>, tensor<64x1xi8>) outs(%init : tensor<1x256xi32>) -> tensor<1x256xi32>
  return %0 : tensor<1x256xi32>
}

// -----

#x = affine_map<(m, n, k) -> (m, k)>
#w = affine_map<(m, n, k) -> (k, n)>
#y = affine_map<(m, n, k) -> (m, n)>

func.func @half_of_sixteen_bytes(%x: tensor<1x128xf32>, %v: tensor<64x256xf32>, %i: tensor<64x1xi8>, %init: tensor<1x256xf32>) -> tensor<1x256xf32> {
  // expected-error @below {{has a schedule with product = panel_dot, whose 16 lanes of a share have 4 outputs each of 'f32', but a tile of 128 outputs; legal is 64}}
  %0 = nm_sparse.matmul #nm_sparse.encoding<8:16, block = [1, 256]> indexing_maps = [#x, #w, #y]
    config = #nm_tile.schedule<tile = [1, 128, 64], product = panel_dot<warps = 2, shares = 4>, transfers = {x = direct, values = direct, index = direct}, pipeline = sequential>
    ins(%x, %v, %i : tensor<1x128xf32>, tensor<64x256xf32>, tensor<64x1xi8>) outs(%init : tensor<1x256xf32>) -> tensor<1x256xf32>
  return %0 : tensor<1x256xf32>
}

// -----

#x = affine_map<(m, n, k) -> (m, k)>
#w = affine_map<(m, n, k) -> (k, n)>
#y = affine_map<(m, n, k) -> (m, n)>

func.func @narrow_panels(%x: tensor<1x128xf16>, %v: tensor<64x256xf16>, %i: tensor<64x64xi8>, %init: tensor<1x256xf32>) -> tensor<1x256xf32> {
  // expected-error @below {{has a schedule with product = panel_dot, which reads 8 outputs of one panel at once, but panels of 4; legal are multiples of 8}}
  %0 = nm_sparse.matmul #nm_sparse.encoding<8:16, block = [1, 4]> indexing_maps = [#x, #w, #y]
    config = #nm_tile.schedule<tile = [1, 128, 64], product = panel_dot<warps = 2, shares = 4>, transfers = {x = direct, values = direct, index = direct}, pipeline = sequential>
    ins(%x, %v, %i : tensor<1x128xf16>, tensor<64x256xf16>, tensor<64x64xi8>) outs(%init : tensor<1x256xf32>) -> tensor<1x256xf32>
  return %0 : tensor<1x256xf32>
}
