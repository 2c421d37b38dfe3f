// RUN: nm-opt %s --nm-sparse-select-schedule=chip=sm_90a --split-input-file --verify-diagnostics | FileCheck %s

#xm = affine_map<(m, n, k) -> (m, k)>
#wm = affine_map<(m, n, k) -> (k, n)>
#ym = affine_map<(m, n, k) -> (m, n)>
#w32 = #nm_sparse.encoding<16:32, block = [1, 32]>
#w128 = #nm_sparse.encoding<8:32, block = [1, 128]>
#w4 = #nm_sparse.encoding<8:32, block = [1, 4]>

// One token leaves most SMs idle: its tile is small and K is split.

// CHECK-DAG: #[[F32:.*]] = #nm_tile.schedule<{{.*}} product = simt<
// CHECK-DAG: #[[F16:.*]] = #nm_tile.schedule<tile = [{{[0-9][0-9]+}}, {{.*}} product = mma<{{.*}}grid = flat>
// CHECK-DAG: #[[ONE:.*]] = #nm_tile.schedule<tile = [{{8|16}}, {{.*}} product = mma<{{.*}}grid = flat<split_k = {{[0-9]+}}>>
// CHECK-DAG: #[[PANELS:.*]] = #nm_tile.schedule<tile = [{{[1-8]}}, {{.*}} product = panel_dot<
// CHECK-DAG: #[[GIVEN:.*]] = #nm_tile.schedule<tile = [64, 64, 32], product = mma<warps = [2, 2]>, transfers = {x = copy, values = copy, index = staged}, pipeline = async_groups<stages = 5>, grid = flat<split_k = 3>>

// CHECK-LABEL: func @f32
// CHECK: config = #[[F32]]
func.func @f32(%x: tensor<?x1024xf32>, %v: tensor<512x1024xf32>, %i: tensor<512x32xi8>,
               %y: tensor<?x1024xf32>) -> tensor<?x1024xf32> {
  %r = nm_sparse.matmul #w32 indexing_maps = [#xm, #wm, #ym]
    ins(%x, %v, %i : tensor<?x1024xf32>, tensor<512x1024xf32>, tensor<512x32xi8>)
    outs(%y : tensor<?x1024xf32>) -> tensor<?x1024xf32>
  return %r : tensor<?x1024xf32>
}

// CHECK-LABEL: func @f16
// CHECK: config = #[[F16]]
func.func @f16(%x: tensor<?x4096xf16>, %v: tensor<1024x4096xf16>, %i: tensor<1024x32xi8>,
               %y: tensor<?x4096xf32>) -> tensor<?x4096xf32> {
  %r = nm_sparse.matmul #w128 indexing_maps = [#xm, #wm, #ym]
    ins(%x, %v, %i : tensor<?x4096xf16>, tensor<1024x4096xf16>, tensor<1024x32xi8>)
    outs(%y : tensor<?x4096xf32>) -> tensor<?x4096xf32>
  return %r : tensor<?x4096xf32>
}

// CHECK-LABEL: func @one_token
// CHECK: config = #[[ONE]]
func.func @one_token(%x: tensor<1x4096xf16>, %v: tensor<1024x4096xf16>, %i: tensor<1024x1024xi8>,
                     %y: tensor<1x4096xf32>) -> tensor<1x4096xf32> {
  %r = nm_sparse.matmul #w4 indexing_maps = [#xm, #wm, #ym]
    ins(%x, %v, %i : tensor<1x4096xf16>, tensor<1024x4096xf16>, tensor<1024x1024xi8>)
    outs(%y : tensor<1x4096xf32>) -> tensor<1x4096xf32>
  return %r : tensor<1x4096xf32>
}

// Wider panels are read from memory to registers.

// CHECK-LABEL: func @one_token_of_panels
// CHECK: config = #[[PANELS]]
func.func @one_token_of_panels(%x: tensor<1x4096xf16>, %v: tensor<1024x4096xf16>, %i: tensor<1024x32xi8>,
                               %y: tensor<1x4096xf32>) -> tensor<1x4096xf32> {
  %r = nm_sparse.matmul #w128 indexing_maps = [#xm, #wm, #ym]
    ins(%x, %v, %i : tensor<1x4096xf16>, tensor<1024x4096xf16>, tensor<1024x32xi8>)
    outs(%y : tensor<1x4096xf32>) -> tensor<1x4096xf32>
  return %r : tensor<1x4096xf32>
}

// A schedule that is there stays.

// CHECK-LABEL: func @given
// CHECK: config = #[[GIVEN]]
func.func @given(%x: tensor<?x4096xf16>, %v: tensor<1024x4096xf16>, %i: tensor<1024x32xi8>,
                 %y: tensor<?x4096xf32>) -> tensor<?x4096xf32> {
  %r = nm_sparse.matmul #w128 indexing_maps = [#xm, #wm, #ym]
    config = #nm_tile.schedule<tile = [64, 64, 32], product = mma<warps = [2, 2]>, transfers = {x = copy, values = copy, index = staged}, pipeline = async_groups<stages = 5>, grid = flat<split_k = 3>>
    ins(%x, %v, %i : tensor<?x4096xf16>, tensor<1024x4096xf16>, tensor<1024x32xi8>)
    outs(%y : tensor<?x4096xf32>) -> tensor<?x4096xf32>
  return %r : tensor<?x4096xf32>
}

// -----

#xm = affine_map<(m, n, k) -> (m, k)>
#wm = affine_map<(m, n, k) -> (k, n)>
#ym = affine_map<(m, n, k) -> (m, n)>
func.func @too_large(%x: tensor<?x4096xf16>, %v: tensor<1024x4096xf16>, %i: tensor<1024x32xi8>,
                     %y: tensor<?x4096xf32>) -> tensor<?x4096xf32> {
  // expected-error @below {{has a schedule that needs 264192 bytes of shared memory, sm_90a has 232448 for a CTA}}
  %r = nm_sparse.matmul <8:32, block = [1, 128]> indexing_maps = [#xm, #wm, #ym]
    config = #nm_tile.schedule<tile = [128, 256, 64], product = mma<warps = [2, 4]>, transfers = {x = gather, values = copy, index = resident}, pipeline = async_groups<stages = 4>, grid = flat>
    ins(%x, %v, %i : tensor<?x4096xf16>, tensor<1024x4096xf16>, tensor<1024x32xi8>)
    outs(%y : tensor<?x4096xf32>) -> tensor<?x4096xf32>
  return %r : tensor<?x4096xf32>
}

// -----

#xm = affine_map<(m, n, k) -> (m, k)>
#wm = affine_map<(m, n, k) -> (k, n)>
#ym = affine_map<(m, n, k) -> (m, n)>
func.func @int8(%x: tensor<?x64xi8>, %v: tensor<32x64xi8>, %i: tensor<32x64xi8>,
                %y: tensor<?x64xi32>) -> tensor<?x64xi32> {
  // expected-error @below {{of 'i8' has no schedule: products of 'i8' read weights that are stored as bitmaps, but this one is stored as values and positions; legal are storage = auto or bitmap, of a weight with order = identity that is a constant or an argument that only products read, or elements of f32, f16 or bf16}}
  %r = nm_sparse.matmul <2:4> indexing_maps = [#xm, #wm, #ym]
    ins(%x, %v, %i : tensor<?x64xi8>, tensor<32x64xi8>, tensor<32x64xi8>)
    outs(%y : tensor<?x64xi32>) -> tensor<?x64xi32>
  return %r : tensor<?x64xi32>
}

// -----

#xm = affine_map<(m, n, k) -> (m, k)>
#wm = affine_map<(m, n, k) -> (k, n)>
#ym = affine_map<(m, n, k) -> (m, n)>
func.func @narrow_panels(%x: tensor<?x64xf16>, %v: tensor<32x66xf16>, %i: tensor<32x22xi8>,
                         %y: tensor<?x64xf32>) -> tensor<?x64xf32> {
  // expected-error @below {{its panels have 3 outputs, legal are multiples and divisors of 8}}
  %r = nm_sparse.matmul <2:4, block = [1, 3]> indexing_maps = [#xm, #wm, #ym]
    ins(%x, %v, %i : tensor<?x64xf16>, tensor<32x66xf16>, tensor<32x22xi8>)
    outs(%y : tensor<?x64xf32>) -> tensor<?x64xf32>
  return %r : tensor<?x64xf32>
}

// -----

#xm = affine_map<(b, m, n, k) -> (b, m, k)>
#wm = affine_map<(b, m, n, k) -> (b, k, n)>
#ym = affine_map<(b, m, n, k) -> (b, m, n)>
#s = #nm_tile.schedule<tile = [8, 32, 8], product = simt<warps = [1, 1]>, transfers = {x = copy, values = copy, index = resident}, pipeline = async_groups<stages = 2>, grid = flat<split_k = 64>>
func.func @parts_of_batches(%x: tensor<1100x4x64xf32>, %v: tensor<1100x32x32xf32>,
                            %i: tensor<1100x32x1xi8>, %y: tensor<1100x4x32xf32>) -> tensor<1100x4x32xf32> {
  // expected-error @below {{has a schedule with split_k = 64, which makes 70400 CTAs of its 1100 batches in grid dimension z, where at most 65535 can be launched; legal is split_k of at most 59}}
  %r = nm_sparse.matmul <2:4, block = [1, 32]> indexing_maps = [#xm, #wm, #ym] config = #s
    ins(%x, %v, %i : tensor<1100x4x64xf32>, tensor<1100x32x32xf32>, tensor<1100x32x1xi8>)
    outs(%y : tensor<1100x4x32xf32>) -> tensor<1100x4x32xf32>
  return %r : tensor<1100x4x32xf32>
}

// -----

// Persistent CTAs are a grid of one dimension, which takes more of them.
// CHECK-LABEL: func.func @persistent_parts
#xm = affine_map<(b, m, n, k) -> (b, m, k)>
#wm = affine_map<(b, m, n, k) -> (b, k, n)>
#ym = affine_map<(b, m, n, k) -> (b, m, n)>
#s = #nm_tile.schedule<tile = [8, 32, 8], product = simt<warps = [1, 1]>, transfers = {x = copy, values = copy, index = resident}, pipeline = ring<stages = 2, producers = 1>, grid = persistent<split_k = 64>>
func.func @persistent_parts(%x: tensor<1100x4x64xf32>, %v: tensor<1100x32x32xf32>,
                            %i: tensor<1100x32x1xi8>, %y: tensor<1100x4x32xf32>) -> tensor<1100x4x32xf32> {
  %r = nm_sparse.matmul <2:4, block = [1, 32]> indexing_maps = [#xm, #wm, #ym] config = #s
    ins(%x, %v, %i : tensor<1100x4x64xf32>, tensor<1100x32x32xf32>, tensor<1100x32x1xi8>)
    outs(%y : tensor<1100x4x32xf32>) -> tensor<1100x4x32xf32>
  return %r : tensor<1100x4x32xf32>
}

// -----

#xm = affine_map<(b, m, n, k) -> (b, m, k)>
#wm = affine_map<(b, m, n, k) -> (b, k, n)>
#ym = affine_map<(b, m, n, k) -> (b, m, n)>
#s = #nm_tile.schedule<tile = [8, 32, 8], product = simt<warps = [1, 1]>, transfers = {x = copy, values = copy, index = resident}, pipeline = async_groups<stages = 2>, grid = flat>
func.func @batches(%x: tensor<65536x4x64xf32>, %v: tensor<65536x32x32xf32>,
                   %i: tensor<65536x32x1xi8>, %y: tensor<65536x4x32xf32>) -> tensor<65536x4x32xf32> {
  // expected-error @below {{has 65536 batches, of which at most 65535 can be launched at once: split them over several products}}
  %r = nm_sparse.matmul <2:4, block = [1, 32]> indexing_maps = [#xm, #wm, #ym] config = #s
    ins(%x, %v, %i : tensor<65536x4x64xf32>, tensor<65536x32x32xf32>, tensor<65536x32x1xi8>)
    outs(%y : tensor<65536x4x32xf32>) -> tensor<65536x4x32xf32>
  return %r : tensor<65536x4x32xf32>
}

// -----

#xm = affine_map<(m, n, k) -> (m, k)>
#wm = affine_map<(m, n, k) -> (k, n)>
#ym = affine_map<(m, n, k) -> (m, n)>
#s = #nm_tile.schedule<tile = [32, 64, 8], product = simt<warps = [1, 2]>, transfers = {x = gather, values = copy, index = resident}, pipeline = async_groups<stages = 2>, grid = flat>
func.func @simt_f16(%x: tensor<?x64xf16>, %v: tensor<16x64xf16>, %i: tensor<16x1xi8>,
                    %y: tensor<?x64xf32>) -> tensor<?x64xf32> {
  // expected-error @below {{has a schedule with product = simt, which multiplies f32, but operands of 'f16'; use a product of tensor cores}}
  %r = nm_sparse.matmul <8:32, block = [1, 64]> indexing_maps = [#xm, #wm, #ym] config = #s
    ins(%x, %v, %i : tensor<?x64xf16>, tensor<16x64xf16>, tensor<16x1xi8>)
    outs(%y : tensor<?x64xf32>) -> tensor<?x64xf32>
  return %r : tensor<?x64xf32>
}

// -----

#xm = affine_map<(m, n, k) -> (m, k)>
#wm = affine_map<(m, n, k) -> (k, n)>
#ym = affine_map<(m, n, k) -> (m, n)>
#s = #nm_tile.schedule<tile = [64, 64, 8], product = mma<warps = [2, 2]>, transfers = {x = gather, values = bulk, index = resident}, pipeline = ring<stages = 2, producers = 4>, grid = flat>
func.func @steps_of_tma(%x: tensor<?x64xf16>, %v: tensor<16x64xf16>, %i: tensor<16x1xi8>,
                        %y: tensor<?x64xf32>) -> tensor<?x64xf32> {
  // expected-error @below {{has a schedule with values = bulk, whose K steps must be a multiple of 16, at most 256, kept rows, but steps of 8; change the tile, or use values = copy}}
  %r = nm_sparse.matmul <8:32, block = [1, 64]> indexing_maps = [#xm, #wm, #ym] config = #s
    ins(%x, %v, %i : tensor<?x64xf16>, tensor<16x64xf16>, tensor<16x1xi8>)
    outs(%y : tensor<?x64xf32>) -> tensor<?x64xf32>
  return %r : tensor<?x64xf32>
}

// -----

#xm = affine_map<(m, n, k) -> (m, k)>
#wm = affine_map<(m, n, k) -> (k, n)>
#ym = affine_map<(m, n, k) -> (m, n)>
#s = #nm_tile.schedule<tile = [64, 32, 16], product = mma<warps = [2, 2]>, transfers = {x = gather, values = bulk, index = resident}, pipeline = ring<stages = 2, producers = 4>, grid = flat>
func.func @outputs_of_tma(%x: tensor<?x64xf16>, %v: tensor<16x64xf16>, %i: tensor<16x1xi8>,
                          %y: tensor<?x64xf32>) -> tensor<?x64xf32> {
  // expected-error @below {{has a schedule with values = bulk, whose tiles must be a multiple of 64 outputs, but tiles of 32; change them, or use values = copy}}
  %r = nm_sparse.matmul <8:32, block = [1, 64]> indexing_maps = [#xm, #wm, #ym] config = #s
    ins(%x, %v, %i : tensor<?x64xf16>, tensor<16x64xf16>, tensor<16x1xi8>)
    outs(%y : tensor<?x64xf32>) -> tensor<?x64xf32>
  return %r : tensor<?x64xf32>
}

// -----

#xm = affine_map<(m, n, k) -> (m, k)>
#wm = affine_map<(m, n, k) -> (k, n)>
#ym = affine_map<(m, n, k) -> (m, n)>
#s = #nm_tile.schedule<tile = [32, 64, 8], product = simt<warps = [1, 2]>, transfers = {x = gather, values = copy, index = resident}, pipeline = async_groups<stages = 2>, grid = flat>
func.func @simt_i8(%x: tensor<?x64xi8>, %v: tensor<16x64xi8>, %i: tensor<16x1xi8>,
                   %y: tensor<?x64xi32>) -> tensor<?x64xi32> {
  // expected-error @below {{has a schedule with product = simt, which multiplies f32, but operands of 'i8'; use product = dot, of a weight that is stored as bitmaps}}
  %r = nm_sparse.matmul <8:32, block = [1, 64]> indexing_maps = [#xm, #wm, #ym] config = #s
    ins(%x, %v, %i : tensor<?x64xi8>, tensor<16x64xi8>, tensor<16x1xi8>)
    outs(%y : tensor<?x64xi32>) -> tensor<?x64xi32>
  return %r : tensor<?x64xi32>
}

// -----

#xm = affine_map<(m, n, k) -> (m, k)>
#wm = affine_map<(m, n, k) -> (k, n)>
#ym = affine_map<(m, n, k) -> (m, n)>
#s = #nm_tile.schedule<tile = [32, 64, 16], product = mma<warps = [1, 2]>, transfers = {x = gather, values = copy, index = resident}, pipeline = async_groups<stages = 2>, grid = flat>
func.func @mma_i8(%x: tensor<?x64xi8>, %v: tensor<16x64xi8>, %i: tensor<16x1xi8>,
                  %y: tensor<?x64xi32>) -> tensor<?x64xi32> {
  // expected-error @below {{has a schedule with product = mma, which multiplies f16 or bf16, but operands of 'i8'; use product = dot, of a weight that is stored as bitmaps}}
  %r = nm_sparse.matmul <8:32, block = [1, 64]> indexing_maps = [#xm, #wm, #ym] config = #s
    ins(%x, %v, %i : tensor<?x64xi8>, tensor<16x64xi8>, tensor<16x1xi8>)
    outs(%y : tensor<?x64xi32>) -> tensor<?x64xi32>
  return %r : tensor<?x64xi32>
}
