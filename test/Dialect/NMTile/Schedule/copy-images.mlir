// RUN: nm-opt %s --nm-sparse-copy-images --split-input-file | FileCheck %s

// An im2col map is none that a kernel makes: threads copy the image, and no cluster
// shares it.

// CHECK: #[[SCHEDULE:.*]] = #nm_tile.schedule<tile = [128, 64, 32], product = wgmma_sp<warps = 4>, transfers = {x = copy, values = bulk, index = bulk}, pipeline = ring<stages = 3, producers = 4>, grid = persistent>
// CHECK-LABEL: func @image
// CHECK: nm_sparse.matmul {{.*}} config = #[[SCHEDULE]]
#w = #nm_sparse.encoding<2:4>
#s = #nm_tile.schedule<tile = [128, 64, 32], product = wgmma_sp<warps = 4>, transfers = {x = bulk, values = bulk, index = bulk}, pipeline = ring<stages = 3, producers = 4>, grid = persistent<cluster = 2>>
#x = affine_map<(m, n, k) -> (m, k)>
#k = affine_map<(m, n, k) -> (k, n)>
#y = affine_map<(m, n, k) -> (m, n)>
func.func @image(%image: tensor<16x10x10x64xf16>, %v: tensor<2x18x512xf16>, %i: tensor<2x18x32xi32>, %init: tensor<1600x64xf32>) -> tensor<1600x64xf32> {
  %x = nm_sparse.patches <kernel = [3, 3], low = [1, 1], high = [1, 1], image = "bhwc", rows = "rsc"> %image : tensor<16x10x10x64xf16> -> tensor<1600x576xf16>
  %r = nm_sparse.matmul #w storage = #nm_sparse.bitmap<#w> indexing_maps = [#x, #k, #y] config = #s
      ins(%x, %v, %i : tensor<1600x576xf16>, tensor<2x18x512xf16>, tensor<2x18x32xi32>)
      outs(%init : tensor<1600x64xf32>) -> tensor<1600x64xf32>
  return %r : tensor<1600x64xf32>
}

// -----

// Maps of matrices are made by kernels, too; those of images of few channels are such.

// CHECK: transfers = {x = bulk, values = bulk, index = bulk}
// CHECK-LABEL: func @matrix
#w = #nm_sparse.encoding<2:4>
#s = #nm_tile.schedule<tile = [128, 64, 32], product = wgmma_sp<warps = 4>, transfers = {x = bulk, values = bulk, index = bulk}, pipeline = ring<stages = 3, producers = 4>, grid = flat>
#x = affine_map<(m, n, k) -> (m, k)>
#k = affine_map<(m, n, k) -> (k, n)>
#y = affine_map<(m, n, k) -> (m, n)>
func.func @matrix(%image: tensor<16x10x10x32xf16>, %v: tensor<2x9x512xf16>, %i: tensor<2x9x32xi32>, %init: tensor<1600x64xf32>) -> tensor<1600x64xf32> {
  %x = nm_sparse.patches <kernel = [3, 3], low = [1, 1], high = [1, 1], image = "bhwc", rows = "rsc"> %image : tensor<16x10x10x32xf16> -> tensor<1600x288xf16>
  %r = nm_sparse.matmul #w storage = #nm_sparse.bitmap<#w> indexing_maps = [#x, #k, #y] config = #s
      ins(%x, %v, %i : tensor<1600x288xf16>, tensor<2x9x512xf16>, tensor<2x9x32xi32>)
      outs(%init : tensor<1600x64xf32>) -> tensor<1600x64xf32>
  return %r : tensor<1600x64xf32>
}
