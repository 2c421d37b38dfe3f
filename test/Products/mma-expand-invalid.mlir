// RUN: nm-opt %s --nm-sparse-tile --split-input-file --verify-diagnostics

// expected-error @below {{mma_expand needs 1 to 32 warps, got 33}}
#s = #nm_tile.schedule<tile = [8, 32, 64], product = mma_expand<warps = 33>, transfers = {x = direct, values = direct, index = direct}, pipeline = sequential>

// -----

// expected-error @below {{mma_expand needs shares that divide its 4 warps, got 3}}
#s = #nm_tile.schedule<tile = [8, 32, 64], product = mma_expand<warps = 4, shares = 3>, transfers = {x = direct, values = direct, index = direct}, pipeline = sequential>

// -----

// expected-error @below {{mma_expand needs shares that divide its 4 warps, got 0}}
#s = #nm_tile.schedule<tile = [8, 32, 64], product = mma_expand<warps = 4, shares = 0>, transfers = {x = direct, values = direct, index = direct}, pipeline = sequential>

// -----

// expected-error @below {{a tile of mma_expand must be 8, 16, 32 or 64 tokens, got 24}}
#s = #nm_tile.schedule<tile = [24, 64, 64], product = mma_expand<warps = 2>, transfers = {x = direct, values = direct, index = direct}, pipeline = sequential>

// -----

// expected-error @below {{a tile of mma_expand must be 32 outputs for each of the 2 warps of a share, got 128}}
#s = #nm_tile.schedule<tile = [8, 128, 64], product = mma_expand<warps = 4, shares = 2>, transfers = {x = direct, values = direct, index = direct}, pipeline = sequential>

// -----

// expected-error @below {{mma_expand reads global memory: legal is transfers = {x = direct, values = direct, index = direct}}}
#s = #nm_tile.schedule<tile = [8, 64, 64], product = mma_expand<warps = 2>, pipeline = async_groups<stages = 2>>

// -----

#x = affine_map<(m, n, k) -> (m, k)>
#w = affine_map<(m, n, k) -> (k, n)>
#y = affine_map<(m, n, k) -> (m, n)>

func.func @singles(%x: tensor<1x128xf32>, %v: tensor<2x4x512xf32>, %b: tensor<2x4x32xi32>, %init: tensor<1x64xf32>) -> tensor<1x64xf32> {
  // expected-error @below {{has a schedule with product = mma_expand, which multiplies f16, bf16, e4m3, e5m2 or i8, but operands of 'f32'}}
  %0 = nm_sparse.matmul #nm_sparse.encoding<8:16> storage = #nm_sparse.bitmap<#nm_sparse.encoding<8:16>> indexing_maps = [#x, #w, #y]
    config = #nm_tile.schedule<tile = [8, 64, 64], product = mma_expand<warps = 2>, transfers = {x = direct, values = direct, index = direct}, pipeline = sequential>
    ins(%x, %v, %b : tensor<1x128xf32>, tensor<2x4x512xf32>, tensor<2x4x32xi32>) outs(%init : tensor<1x64xf32>) -> tensor<1x64xf32>
  return %0 : tensor<1x64xf32>
}

// -----

#x = affine_map<(m, n, k) -> (m, k)>
#w = affine_map<(m, n, k) -> (k, n)>
#y = affine_map<(m, n, k) -> (m, n)>

func.func @free(%x: tensor<1x300xf16>, %v: tensor<?xf16>, %b: tensor<3x2x296xi32>, %init: tensor<1x96xf32>) -> tensor<1x96xf32> {
  // expected-error @below {{has a schedule with product = mma_expand, which multiplies n:m weights, but #nm_sparse.encoding<free>; legal is product = dot}}
  %0 = nm_sparse.matmul #nm_sparse.encoding<free> storage = #nm_sparse.bitmap<#nm_sparse.encoding<free>> indexing_maps = [#x, #w, #y]
    config = #nm_tile.schedule<tile = [8, 64, 512], product = mma_expand<warps = 2>, transfers = {x = direct, values = direct, index = direct}, pipeline = sequential>
    ins(%x, %v, %b : tensor<1x300xf16>, tensor<?xf16>, tensor<3x2x296xi32>) outs(%init : tensor<1x96xf32>) -> tensor<1x96xf32>
  return %0 : tensor<1x96xf32>
}

// -----

#x = affine_map<(m, n, k) -> (m, k)>
#w = affine_map<(m, n, k) -> (k, n)>
#y = affine_map<(m, n, k) -> (m, n)>

func.func @many_values(%x: tensor<1x144xf16>, %v: tensor<2x1x2560xf16>, %b: tensor<2x1x160xi32>, %init: tensor<1x64xf32>) -> tensor<1x64xf32> {
  // expected-error @below {{has a schedule with product = mma_expand, whose lanes expand up to 64 values to 256 rows at a time, but the least whole windows of #nm_sparse.encoding<5:9> that fill 16 bytes are 80 values of 144 rows; legal is product = dot}}
  %0 = nm_sparse.matmul #nm_sparse.encoding<5:9> storage = #nm_sparse.bitmap<#nm_sparse.encoding<5:9>> indexing_maps = [#x, #w, #y]
    config = #nm_tile.schedule<tile = [8, 64, 80], product = mma_expand<warps = 2>, transfers = {x = direct, values = direct, index = direct}, pipeline = sequential>
    ins(%x, %v, %b : tensor<1x144xf16>, tensor<2x1x2560xf16>, tensor<2x1x160xi32>) outs(%init : tensor<1x64xf32>) -> tensor<1x64xf32>
  return %0 : tensor<1x64xf32>
}

// -----

#x = affine_map<(m, n, k) -> (m, k)>
#w = affine_map<(m, n, k) -> (k, n)>
#y = affine_map<(m, n, k) -> (m, n)>

func.func @many_rows(%x: tensor<1x512xf16>, %v: tensor<2x1x256xf16>, %b: tensor<2x1x512xi32>, %init: tensor<1x64xf32>) -> tensor<1x64xf32> {
  // expected-error @below {{has a schedule with product = mma_expand, whose lanes expand up to 64 values to 256 rows at a time, but the least whole windows of #nm_sparse.encoding<1:64> that fill 16 bytes are 8 values of 512 rows; legal is product = dot}}
  %0 = nm_sparse.matmul #nm_sparse.encoding<1:64> storage = #nm_sparse.bitmap<#nm_sparse.encoding<1:64>> indexing_maps = [#x, #w, #y]
    config = #nm_tile.schedule<tile = [8, 64, 32], product = mma_expand<warps = 2>, transfers = {x = direct, values = direct, index = direct}, pipeline = sequential>
    ins(%x, %v, %b : tensor<1x512xf16>, tensor<2x1x256xf16>, tensor<2x1x512xi32>) outs(%init : tensor<1x64xf32>) -> tensor<1x64xf32>
  return %0 : tensor<1x64xf32>
}

// -----

#x = affine_map<(m, n, k) -> (m, k)>
#w = affine_map<(m, n, k) -> (k, n)>
#y = affine_map<(m, n, k) -> (m, n)>

func.func @part_of_a_share(%x: tensor<1x128xf16>, %v: tensor<2x4x512xf16>, %b: tensor<2x4x32xi32>, %init: tensor<1x64xf32>) -> tensor<1x64xf32> {
  // expected-error @below {{has a schedule with product = mma_expand and K steps of 32 kept rows, which the 4 lanes of each of 2 shares do not divide; legal are multiples of 64}}
  %0 = nm_sparse.matmul #nm_sparse.encoding<8:16> storage = #nm_sparse.bitmap<#nm_sparse.encoding<8:16>> indexing_maps = [#x, #w, #y]
    config = #nm_tile.schedule<tile = [8, 64, 32], product = mma_expand<warps = 4, shares = 2>, transfers = {x = direct, values = direct, index = direct}, pipeline = sequential>
    ins(%x, %v, %b : tensor<1x128xf16>, tensor<2x4x512xf16>, tensor<2x4x32xi32>) outs(%init : tensor<1x64xf32>) -> tensor<1x64xf32>
  return %0 : tensor<1x64xf32>
}

// -----

#x = affine_map<(m, n, k) -> (m, k)>
#w = affine_map<(m, n, k) -> (k, n)>
#y = affine_map<(m, n, k) -> (m, n)>

func.func @long_step(%x: tensor<1x2048xf16>, %v: tensor<2x64x512xf16>, %b: tensor<2x64x32xi32>, %init: tensor<1x64xf32>) -> tensor<1x64xf32> {
  // expected-error @below {{has a schedule with product = mma_expand and K steps of 512 kept rows, of which a lane reads 128 values of each output at once; legal are at most 64}}
  %0 = nm_sparse.matmul #nm_sparse.encoding<8:16> storage = #nm_sparse.bitmap<#nm_sparse.encoding<8:16>> indexing_maps = [#x, #w, #y]
    config = #nm_tile.schedule<tile = [8, 64, 512], product = mma_expand<warps = 2>, transfers = {x = direct, values = direct, index = direct}, pipeline = sequential>
    ins(%x, %v, %b : tensor<1x2048xf16>, tensor<2x64x512xf16>, tensor<2x64x32xi32>) outs(%init : tensor<1x64xf32>) -> tensor<1x64xf32>
  return %0 : tensor<1x64xf32>
}

// -----

#x = affine_map<(m, n, k) -> (m, k)>
#w = affine_map<(m, n, k) -> (k, n)>
#y = affine_map<(m, n, k) -> (m, n)>

func.func @long_windows_of_bytes(%x: tensor<1x272xi8>, %v: tensor<2x1x4608xi8>, %b: tensor<2x1x288xi32>, %init: tensor<1x64xi32>) -> tensor<1x64xi32> {
  // expected-error @below {{whose lanes expand up to 128 values to 512 rows at a time, but the least whole windows of #nm_sparse.encoding<9:17> that fill 16 bytes are 144 values of 272 rows; legal is product = dot}}
  %0 = nm_sparse.matmul #nm_sparse.encoding<9:17> storage = #nm_sparse.bitmap<#nm_sparse.encoding<9:17>> indexing_maps = [#x, #w, #y]
    config = #nm_tile.schedule<tile = [8, 64, 576], product = mma_expand<warps = 2>, transfers = {x = direct, values = direct, index = direct}, pipeline = sequential>
    ins(%x, %v, %b : tensor<1x272xi8>, tensor<2x1x4608xi8>, tensor<2x1x288xi32>) outs(%init : tensor<1x64xi32>) -> tensor<1x64xi32>
  return %0 : tensor<1x64xi32>
}
