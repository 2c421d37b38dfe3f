// RUN: nm-opt %s --nm-sparse-tile --canonicalize --cse | FileCheck %s --check-prefix=TILE
// RUN: nm-opt %s --nm-sparse-tile --nm-sparse-promote --canonicalize --cse | FileCheck %s
// RUN: nm-opt %s --nm-sparse-tile --nm-sparse-promote --nm-sparse-vectorize --nm-sparse-bufferize --nm-sparse-map-to-gpu --nm-sparse-create-tensor-maps --canonicalize --cse | FileCheck %s --check-prefix=MAPS

#x = affine_map<(m, n, k) -> (k, m)>
#w = affine_map<(m, n, k) -> (k, n)>
#y = affine_map<(m, n, k) -> (m, n)>
#e = #nm_sparse.encoding<16:32, block = [1, 128]>
#windows = #nm_tile.schedule<tile = [128, 128, 128], product = wgmma_rs<warps = [4, 1]>,
  transfers = {x = gather, values = bulk, index = resident}, pipeline = ring<stages = 2, producers = 4>>
#rows = #nm_tile.schedule<tile = [128, 128, 128], product = wgmma_rs<warps = [4, 1]>,
  transfers = {x = gather, values = bulk, index = rows}, pipeline = ring<stages = 2, producers = 4>>

// Values are cut along their last dimension, by whole windows or by rows, and their
// tile has a row for each output.

// TILE-LABEL: func @windows
// TILE: nm_tile.k_loop
// TILE: tensor.extract_slice %{{.*}}[0, %{{.*}}] [128, %{{.*}}] [1, 1] : tensor<128x304xf8E4M3FN> to tensor<128x?xf8E4M3FN>
// CHECK-LABEL: func @windows
// CHECK: nm_tile.k_loop
// CHECK: nm_tile.async_copy ins(%{{.*}} : tensor<128x?xf8E4M3FN>) outs(%{{.*}} : tensor<128x128xf8E4M3FN>)
// CHECK: nm_tile.async_gather {{.*}} -> tensor<128x128xf8E4M3FN>
// CHECK: nm_tile.matmul #{{.*}} storage = #nm_sparse.k_major<#{{.*}}> {{.*}}indexing_maps = [#[[X:.*]], #[[V:.*]]]
// MAPS-LABEL: func @windows
// MAPS: nvgpu.tma.create.descriptor %{{.*}} box[%c128{{.*}}, %c128{{.*}}] : {{.*}} swizzle = swizzle_128b
// MAPS: nm_tile.bulk_copy {{.*}} outs({{.*}} : memref<128x128xf8E4M3FN, #nm_tile.shared<swizzled_blocks>>)
func.func @windows(%x: tensor<600x96xf8E4M3FN>, %v: tensor<256x304xf8E4M3FN>, %i: tensor<304x2xi8>, %o: tensor<96x256xf32>) -> tensor<96x256xf32> {
  %0 = nm_sparse.matmul #e storage = #nm_sparse.k_major<#e> indexing_maps = [#x, #w, #y] config = #windows
    ins(%x, %v, %i : tensor<600x96xf8E4M3FN>, tensor<256x304xf8E4M3FN>, tensor<304x2xi8>) outs(%o : tensor<96x256xf32>) -> tensor<96x256xf32>
  return %0 : tensor<96x256xf32>
}

// TILE-LABEL: func @rows
// TILE: nm_tile.k_loop
// TILE: tensor.extract_slice %{{.*}}[0, %{{.*}}] [128, %{{.*}}] [1, 1]
// TILE: at(first_row = %{{.*}})
// CHECK-LABEL: func @rows
// CHECK: nm_tile.async_copy ins(%{{.*}}) outs(%{{.*}} : tensor<128x128xf8E4M3FN>)
func.func @rows(%x: tensor<600x96xf8E4M3FN>, %v: tensor<256x304xf8E4M3FN>, %i: tensor<304x2xi8>, %o: tensor<96x256xf32>) -> tensor<96x256xf32> {
  %0 = nm_sparse.matmul #e storage = #nm_sparse.k_major<#e> indexing_maps = [#x, #w, #y] config = #rows
    ins(%x, %v, %i : tensor<600x96xf8E4M3FN>, tensor<256x304xf8E4M3FN>, tensor<304x2xi8>) outs(%o : tensor<96x256xf32>) -> tensor<96x256xf32>
  return %0 : tensor<96x256xf32>
}
