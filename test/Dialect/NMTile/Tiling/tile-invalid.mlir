// RUN: nm-opt %s --nm-sparse-tile --split-input-file --verify-diagnostics

#xm = affine_map<(m, n, k) -> (m, k)>
#wm = affine_map<(m, n, k) -> (k, n)>
#ym = affine_map<(m, n, k) -> (m, n)>
#s = #nm_tile.schedule<tile = [128, 64, 8], product = mma<warps = [2, 4]>, transfers = {x = gather, values = copy, index = resident}, pipeline = async_groups<stages = 3>, grid = flat>

func.func @misaligned(%x: tensor<128x64xf16>, %v: tensor<16x192xf16>,
                      %i: tensor<16x2xi8>, %out: tensor<128x192xf32>)
    -> tensor<128x192xf32> {
  // expected-error @+1 {{has a schedule with product = mma and tiles of 64 outputs, which do not align with panels of 96; one must be a multiple of the other (or use a product of the CUDA cores)}}
  %y = nm_sparse.matmul #nm_sparse.encoding<8:32, block = [1, 96]>
    indexing_maps = [#xm, #wm, #ym] config = #s
    ins(%x, %v, %i : tensor<128x64xf16>, tensor<16x192xf16>, tensor<16x2xi8>)
    outs(%out : tensor<128x192xf32>) -> tensor<128x192xf32>
  return %y : tensor<128x192xf32>
}

// -----

#xm = affine_map<(m, n, k) -> (m, k)>
#wm = affine_map<(m, n, k) -> (k, n)>
#ym = affine_map<(m, n, k) -> (m, n)>
#s = #nm_tile.schedule<tile = [128, 64, 8], product = mma<warps = [2, 4]>, transfers = {x = gather, values = copy, index = resident}, pipeline = async_groups<stages = 3>, grid = flat>

func.func @element(%x: tensor<128x64xf32>, %v: tensor<16x128xf32>,
                   %i: tensor<16x1xi8>, %out: tensor<128x128xf32>)
    -> tensor<128x128xf32> {
  // expected-error @+1 {{has a schedule with product = mma, which multiplies f16 or bf16, but operands of 'f32'; use a product of the CUDA cores}}
  %y = nm_sparse.matmul #nm_sparse.encoding<8:32, block = [1, 128]>
    indexing_maps = [#xm, #wm, #ym] config = #s
    ins(%x, %v, %i : tensor<128x64xf32>, tensor<16x128xf32>, tensor<16x1xi8>)
    outs(%out : tensor<128x128xf32>) -> tensor<128x128xf32>
  return %y : tensor<128x128xf32>
}

// -----

#xm = affine_map<(m, n, k) -> (m, k)>
#wm = affine_map<(m, n, k) -> (k, n)>
#ym = affine_map<(m, n, k) -> (m, n)>
#s = #nm_tile.schedule<tile = [128, 128, 8], product = wgmma<warps = [1, 4]>, transfers = {x = gather, values = copy, index = resident}, pipeline = async_groups<stages = 3>, grid = flat>

func.func @narrow_panels(%x: tensor<128x64xf16>, %v: tensor<16x128xf16>,
                  %i: tensor<16x4xi8>, %out: tensor<128x128xf32>)
    -> tensor<128x128xf32> {
  // expected-error @+1 {{has a schedule with product = wgmma, whose 64 outputs of a product share their rows, but panels of 32 outputs; legal are multiples of 64 (or use product = mma)}}
  %y = nm_sparse.matmul #nm_sparse.encoding<8:32, block = [1, 32]>
    indexing_maps = [#xm, #wm, #ym] config = #s
    ins(%x, %v, %i : tensor<128x64xf16>, tensor<16x128xf16>, tensor<16x4xi8>)
    outs(%out : tensor<128x128xf32>) -> tensor<128x128xf32>
  return %y : tensor<128x128xf32>
}

// -----

#xm = affine_map<(m, n, k) -> (m, k)>
#wm = affine_map<(m, n, k) -> (k, n)>
#ym = affine_map<(m, n, k) -> (m, n)>
#s = #nm_tile.schedule<tile = [128, 128, 8], product = wgmma<warps = [1, 4]>, transfers = {x = gather, values = copy, index = resident}, pipeline = async_groups<stages = 3>, grid = flat>

func.func @misaligned_warpgroups(%x: tensor<128x64xf16>, %v: tensor<16x192xf16>,
                  %i: tensor<16x1xi8>, %out: tensor<128x192xf32>)
    -> tensor<128x192xf32> {
  // expected-error @+1 {{has a schedule with product = wgmma and tiles of 128 outputs, which do not align with panels of 192; one must be a multiple of the other (or use a product of the CUDA cores)}}
  %y = nm_sparse.matmul #nm_sparse.encoding<8:32, block = [1, 192]>
    indexing_maps = [#xm, #wm, #ym] config = #s
    ins(%x, %v, %i : tensor<128x64xf16>, tensor<16x192xf16>, tensor<16x1xi8>)
    outs(%out : tensor<128x192xf32>) -> tensor<128x192xf32>
  return %y : tensor<128x192xf32>
}

// -----

#xm = affine_map<(m, n, k) -> (m, k)>
#wm = affine_map<(m, n, k) -> (k, n)>
#ym = affine_map<(m, n, k) -> (m, n)>
#s = #nm_tile.schedule<tile = [128, 128, 16], product = mma<warps = [2, 4]>, transfers = {x = copy, values = copy, index = resident}, pipeline = async_groups<stages = 3>>

func.func @parts_of_copied_windows(%x: tensor<128x128xf16>, %v: tensor<112x128xf16>,
                  %i: tensor<112x1xi8>, %out: tensor<128x128xf32>)
    -> tensor<128x128xf32> {
  // expected-error @+1 {{has a schedule whose K steps of 16 kept rows are no whole windows of 7, which only index = rows can divide}}
  %y = nm_sparse.matmul #nm_sparse.encoding<7:8, block = [1, 128]>
    indexing_maps = [#xm, #wm, #ym] config = #s
    ins(%x, %v, %i : tensor<128x128xf16>, tensor<112x128xf16>, tensor<112x1xi8>)
    outs(%out : tensor<128x128xf32>) -> tensor<128x128xf32>
  return %y : tensor<128x128xf32>
}

// -----

#xm = affine_map<(m, n, k) -> (m, k)>
#wm = affine_map<(m, n, k) -> (k, n)>
#ym = affine_map<(m, n, k) -> (m, n)>
#s = #nm_tile.schedule<tile = [128, 128, 24], product = mma<warps = [2, 4]>, transfers = {x = gather, values = copy, index = rows}, pipeline = async_groups<stages = 3>>

func.func @uneven_steps(%x: tensor<128x128xf16>, %v: tensor<112x128xf16>,
                  %i: tensor<112x1xi8>, %out: tensor<128x128xf32>)
    -> tensor<128x128xf32> {
  // expected-error @+1 {{has a schedule with index = rows whose K steps of 24 kept rows are no multiple of 16}}
  %y = nm_sparse.matmul #nm_sparse.encoding<7:8, block = [1, 128]>
    indexing_maps = [#xm, #wm, #ym] config = #s
    ins(%x, %v, %i : tensor<128x128xf16>, tensor<112x128xf16>, tensor<112x1xi8>)
    outs(%out : tensor<128x128xf32>) -> tensor<128x128xf32>
  return %y : tensor<128x128xf32>
}
