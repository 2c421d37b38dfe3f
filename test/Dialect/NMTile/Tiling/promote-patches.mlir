// RUN: nm-opt %s --nm-sparse-tile --nm-sparse-promote --split-input-file | FileCheck %s

// A kernel that gathers reads patches where they lie in the image: from the row of a
// K step and the first token of the CTA on.

// CHECK-LABEL: func @gather
// CHECK-SAME: %[[IMAGE:.*]]: tensor<64x10x10x16xf16>
// CHECK-NOT: nm_sparse.patches
// CHECK: scf.forall (%[[TOKEN:.*]], %{{.*}}) = (0, 0) to (1600, 64) step (64, 64)
// CHECK: nm_tile.k_loop
// CHECK: nm_tile.async_gather {{.*}} patches = <kernel = [3, 3], low = [1, 1], high = [1, 1]> slice[%[[ROW:.*]], %[[TOKEN]], %c128, %c64] ins(%[[IMAGE]],
#w = #nm_sparse.encoding<8:32, block = [1, 64]>
#s = #nm_tile.schedule<tile = [64, 64, 32], product = mma<warps = [2, 2]>, transfers = {x = gather, values = copy, index = resident}, pipeline = async_groups<stages = 3>, grid = flat>
#x = affine_map<(m, n, k) -> (k, m)>
#k = affine_map<(m, n, k) -> (k, n)>
#y = affine_map<(m, n, k) -> (n, m)>
func.func @gather(%image: tensor<64x10x10x16xf16>, %v: tensor<128x64xf16>, %i: tensor<128x1xi8>, %init: tensor<64x1600xf32>) -> tensor<64x1600xf32> {
  %x = nm_sparse.patches <kernel = [3, 3], low = [1, 1], high = [1, 1]> %image : tensor<64x10x10x16xf16> -> tensor<576x1600xf16>
  %p = tensor.extract_slice %x[0, 0] [512, 1600] [1, 1] : tensor<576x1600xf16> to tensor<512x1600xf16>
  %r = nm_sparse.matmul #w indexing_maps = [#x, #k, #y] config = #s
      ins(%p, %v, %i : tensor<512x1600xf16>, tensor<128x64xf16>, tensor<128x1xi8>)
      outs(%init : tensor<64x1600xf32>) -> tensor<64x1600xf32>
  return %r : tensor<64x1600xf32>
}

// -----

// So does one that copies whole windows.

// CHECK-LABEL: func @copy
// CHECK-SAME: %[[IMAGE:.*]]: tensor<64x10x10x16xf16>
// CHECK-NOT: nm_sparse.patches
// CHECK: scf.forall (%[[TOKEN:.*]], %{{.*}}) = (0, 0) to (1600, 64) step (64, 64)
// CHECK: nm_tile.k_loop
// CHECK: nm_tile.async_copy patches = <kernel = [3, 3], low = [1, 1], high = [1, 1]> slice[%{{.*}}, %[[TOKEN]], %{{.*}}, %c64] ins(%[[IMAGE]] :
// CHECK-SAME: outs(%{{.*}} : tensor<128x64xf16>)
// CHECK-NOT: nm_tile.async_gather
#w = #nm_sparse.encoding<8:32, block = [1, 64]>
#s = #nm_tile.schedule<tile = [64, 64, 32], product = mma<warps = [2, 2]>, transfers = {x = copy, values = copy, index = resident}, pipeline = async_groups<stages = 3>, grid = flat>
#x = affine_map<(m, n, k) -> (k, m)>
#k = affine_map<(m, n, k) -> (k, n)>
#y = affine_map<(m, n, k) -> (n, m)>
func.func @copy(%image: tensor<64x10x10x16xf16>, %v: tensor<144x64xf16>, %i: tensor<144x1xi8>, %init: tensor<64x1600xf32>) -> tensor<64x1600xf32> {
  %x = nm_sparse.patches <kernel = [3, 3], low = [1, 1], high = [1, 1]> %image : tensor<64x10x10x16xf16> -> tensor<576x1600xf16>
  %r = nm_sparse.matmul #w indexing_maps = [#x, #k, #y] config = #s
      ins(%x, %v, %i : tensor<576x1600xf16>, tensor<144x64xf16>, tensor<144x1xi8>)
      outs(%init : tensor<64x1600xf32>) -> tensor<64x1600xf32>
  return %r : tensor<64x1600xf32>
}

// -----

// Token-major patches are gathered by parts of tokens, where the product has tokens as
// rows of its tile.

// CHECK-LABEL: func @token_major
// CHECK-SAME: %[[IMAGE:.*]]: tensor<16x10x10x64xf16>
// CHECK-NOT: nm_sparse.patches
// CHECK: scf.forall (%[[TOKEN:.*]], %{{.*}}) = (0, 0) to (1600, 64) step (64, 64)
// CHECK: nm_tile.k_loop %[[WINDOW:[^ ]*]] =
// CHECK: nm_tile.async_gather {{.*}} patches = <kernel = [3, 3], low = [1, 1], high = [1, 1], image = "bhwc", rows = "rsc"> slice[%[[TOKEN]], %{{.*}}, %c64{{.*}}, %{{.*}}] ins(%[[IMAGE]],
// CHECK-SAME: tensor<64x64xf16>
#w = #nm_sparse.encoding<2:4, block = [16, 64]>
#s = #nm_tile.schedule<tile = [64, 64, 64], product = mma<warps = [2, 2]>, transfers = {x = gather, values = copy, index = resident}, pipeline = async_groups<stages = 3>, grid = flat>
#x = affine_map<(m, n, k) -> (m, k)>
#k = affine_map<(m, n, k) -> (k, n)>
#y = affine_map<(m, n, k) -> (m, n)>
func.func @token_major(%image: tensor<16x10x10x64xf16>, %v: tensor<288x64xf16>, %i: tensor<18x1xi8>, %init: tensor<1600x64xf32>) -> tensor<1600x64xf32> {
  %x = nm_sparse.patches <kernel = [3, 3], low = [1, 1], high = [1, 1], image = "bhwc", rows = "rsc"> %image : tensor<16x10x10x64xf16> -> tensor<1600x576xf16>
  %r = nm_sparse.matmul #w indexing_maps = [#x, #k, #y] config = #s
      ins(%x, %v, %i : tensor<1600x576xf16>, tensor<288x64xf16>, tensor<18x1xi8>)
      outs(%init : tensor<1600x64xf32>) -> tensor<1600x64xf32>
  return %r : tensor<1600x64xf32>
}

// -----

// The tensor memory accelerator reads token-major patches whose channels are whole lines,
// of 64 elements here.

// CHECK-LABEL: func @bulk
// CHECK-SAME: %[[IMAGE:.*]]: tensor<16x10x10x64xf16>
// CHECK-NOT: nm_sparse.patches
// CHECK: nm_tile.async_copy patches = <kernel = [3, 3], low = [1, 1], high = [1, 1], image = "bhwc", rows = "rsc"> slice[%{{.*}}, %{{.*}}, %{{.*}}, %c64{{.*}}] ins(%[[IMAGE]] :
// CHECK-SAME: outs(%{{.*}} : tensor<128x64xf16>)
#w = #nm_sparse.encoding<2:4>
#s = #nm_tile.schedule<tile = [128, 64, 32], product = wgmma_sp<warps = 4>, transfers = {x = bulk, values = bulk, index = bulk}, pipeline = ring<stages = 3, producers = 4>, grid = flat>
#x = affine_map<(m, n, k) -> (m, k)>
#k = affine_map<(m, n, k) -> (k, n)>
#y = affine_map<(m, n, k) -> (m, n)>
func.func @bulk(%image: tensor<16x10x10x64xf16>, %v: tensor<2x18x512xf16>, %i: tensor<2x18x32xi32>, %init: tensor<1600x64xf32>) -> tensor<1600x64xf32> {
  %x = nm_sparse.patches <kernel = [3, 3], low = [1, 1], high = [1, 1], image = "bhwc", rows = "rsc"> %image : tensor<16x10x10x64xf16> -> tensor<1600x576xf16>
  %r = nm_sparse.matmul #w storage = #nm_sparse.bitmap<#w> indexing_maps = [#x, #k, #y] config = #s
      ins(%x, %v, %i : tensor<1600x576xf16>, tensor<2x18x512xf16>, tensor<2x18x32xi32>)
      outs(%init : tensor<1600x64xf32>) -> tensor<1600x64xf32>
  return %r : tensor<1600x64xf32>
}

// -----

// It reads the matrix of others: a line of these would be of two places.

// CHECK-LABEL: func @bulk_of_few_channels
// CHECK: nm_sparse.patches
// CHECK: nm_tile.async_copy ins(
// CHECK-NOT: nm_tile.async_gather
#w = #nm_sparse.encoding<2:4>
#s = #nm_tile.schedule<tile = [128, 64, 32], product = wgmma_sp<warps = 4>, transfers = {x = bulk, values = bulk, index = bulk}, pipeline = ring<stages = 3, producers = 4>, grid = flat>
#x = affine_map<(m, n, k) -> (m, k)>
#k = affine_map<(m, n, k) -> (k, n)>
#y = affine_map<(m, n, k) -> (m, n)>
func.func @bulk_of_few_channels(%image: tensor<16x10x10x32xf16>, %v: tensor<2x9x512xf16>, %i: tensor<2x9x32xi32>, %init: tensor<1600x64xf32>) -> tensor<1600x64xf32> {
  %x = nm_sparse.patches <kernel = [3, 3], low = [1, 1], high = [1, 1], image = "bhwc", rows = "rsc"> %image : tensor<16x10x10x32xf16> -> tensor<1600x288xf16>
  %r = nm_sparse.matmul #w storage = #nm_sparse.bitmap<#w> indexing_maps = [#x, #k, #y] config = #s
      ins(%x, %v, %i : tensor<1600x288xf16>, tensor<2x9x512xf16>, tensor<2x9x32xi32>)
      outs(%init : tensor<1600x64xf32>) -> tensor<1600x64xf32>
  return %r : tensor<1600x64xf32>
}
