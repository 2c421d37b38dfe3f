// RUN: nm-opt %s --nm-sparse-tile --nm-sparse-promote --canonicalize --cse | FileCheck %s
// RUN: nm-opt %s --nm-sparse-tile --nm-sparse-promote --nm-sparse-vectorize --nm-sparse-bufferize --nm-sparse-map-to-gpu --nm-sparse-create-tensor-maps --canonicalize --cse | FileCheck %s --check-prefix=MAPS
// RUN: nm-opt %s --nm-sparse-tile --nm-sparse-promote --nm-sparse-vectorize --nm-sparse-bufferize --nm-sparse-map-to-gpu --nm-sparse-create-tensor-maps --nm-sparse-assign-stages --nm-sparse-specialize-warps --canonicalize --cse | FileCheck %s --check-prefix=ROLES

#x = affine_map<(m, n, k) -> (m, k)>
#xf = affine_map<(m, n, k) -> (k, m)>
#w = affine_map<(m, n, k) -> (k, n)>
#y = affine_map<(m, n, k) -> (m, n)>
#e = #nm_sparse.encoding<8:16>
#s = #nm_tile.schedule<tile = [40, 64, 32], product = wgmma_expand<warps = 4>, transfers = {x = bulk, values = bulk, index = bulk}, pipeline = ring<stages = 2, producers = 4>>

// The components of the weight keep the shape that they are stored in; whole
// lines of activations, 64 rows of each token or 64 tokens of each row.

// CHECK-LABEL: func @token_major
// CHECK: nm_tile.k_loop
// CHECK: nm_tile.async_copy ins(%{{.*}} : tensor<?x2x512xf16>) outs(%{{.*}} : tensor<2x2x512xf16>)
// CHECK: nm_tile.async_copy ins(%{{.*}} : tensor<?x2x32xi32>) outs(%{{.*}} : tensor<2x2x32xi32>)
// CHECK: nm_tile.async_copy ins(%{{.*}} : tensor<?x64xf16>) outs(%{{.*}} : tensor<40x64xf16>)
// CHECK: nm_tile.matmul #{{.*}} storage = {{.*}} ins(%{{.*}}, %{{.*}}, %{{.*}} : {{.*}}, tensor<2x2x32xi32>)

// Each is a box of its own map; values are two, of 256 elements. Of 100 tokens
// the last tile has 20, which come in 5 boxes.
// MAPS-LABEL: func @token_major
// MAPS-DAG: nvgpu.tma.create.descriptor %{{.*}} box[%c40, %c64] : {{.*}} swizzle = swizzle_128b
// MAPS-DAG: %[[PARTS:.*]] = nvgpu.tma.create.descriptor %{{.*}} box[%c8, %c64] : {{.*}} swizzle = swizzle_128b
// MAPS-DAG: nvgpu.tma.create.descriptor %{{.*}} box[%c2{{.*}}, %c2{{.*}}, %c256{{.*}}] : {{.*}} <tensor = memref<2x2x256xf16, 3>, swizzle = none
// MAPS-DAG: nvgpu.tma.create.descriptor %{{.*}} box[%c2{{.*}}, %c2{{.*}}, %c32{{.*}}] : {{.*}} <tensor = memref<2x2x32xi32, 3>, swizzle = none
// MAPS: nm_tile.k_loop
// MAPS-NOT: nm_tile.async_copy
// MAPS-COUNT-2: nm_tile.bulk_copy
// MAPS: nm_tile.bulk_copy {{.*}} outs({{.*}} : memref<40x64xf16, {{.*}}>) within(%c100{{.*}} by %[[PARTS]] :

// Three copies arrive by themselves, and no thread does.
// ROLES-LABEL: func @token_major
// ROLES: nm_tile.ring full = 3 empty = 4 bulk
// ROLES: nm_tile.matmul {{.*}} in_flight
// ROLES: nm_tile.ring_release late by_threads
// ROLES: nm_tile.ring_drain by_threads
// ROLES: producers = 128
// ROLES-COUNT-3: nm_tile.bulk_copy threads = [128, 128]
// ROLES-NOT: nm_tile.ring_commit
// ROLES: return
func.func @token_major(%x: tensor<100x256xf16>, %v: tensor<5x8x512xf16>, %b: tensor<5x8x32xi32>, %o: tensor<100x160xf32>) -> tensor<100x160xf32> {
  %0 = nm_sparse.matmul #e storage = #nm_sparse.bitmap<#e> indexing_maps = [#x, #w, #y] config = #s
    ins(%x, %v, %b : tensor<100x256xf16>, tensor<5x8x512xf16>, tensor<5x8x32xi32>) outs(%o : tensor<100x160xf32>) -> tensor<100x160xf32>
  return %0 : tensor<100x160xf32>
}

// CHECK-LABEL: func @feature_major
// CHECK: nm_tile.async_copy ins(%{{.*}} : tensor<64x?xf16>) outs(%{{.*}} : tensor<64x64xf16>)
// MAPS-LABEL: func @feature_major
// MAPS-DAG: nvgpu.tma.create.descriptor %{{.*}} box[%c64{{.*}}, %c64{{.*}}]
func.func @feature_major(%x: tensor<256x96xf16>, %v: tensor<5x8x512xf16>, %b: tensor<5x8x32xi32>, %o: tensor<96x160xf32>) -> tensor<96x160xf32> {
  %0 = nm_sparse.matmul #e storage = #nm_sparse.bitmap<#e> indexing_maps = [#xf, #w, #y] config = #s
    ins(%x, %v, %b : tensor<256x96xf16>, tensor<5x8x512xf16>, tensor<5x8x32xi32>) outs(%o : tensor<96x160xf32>) -> tensor<96x160xf32>
  return %0 : tensor<96x160xf32>
}

// Rows of activations, and values, come as lanes read them: pairs of rows of four
// segments, and lines of 8 outputs of which each segment has two, for two blocks.
// MAPS-LABEL: func @segments
// MAPS-SAME: (%[[X:[a-z0-9]+]]: memref<256x96xf16>, %[[V:[a-z0-9]+]]: memref<5x8x512xf16>,
// MAPS-DAG: %[[PAIRS:.*]] = memref.expand_shape %[[X]] {{\[}}[0, 1, 2, 3], [4]] output_shape [4, 4, 8, 2, 96]
// MAPS-DAG: %[[ROWS:.*]] = memref.transpose %[[PAIRS]] (d0, d1, d2, d3, d4) -> (d0, d2, d1, d3, d4)
// MAPS-DAG: %[[ANY_X:.*]] = memref.cast %[[ROWS]]
// MAPS-DAG: %[[X_MAP:.*]] = nvgpu.tma.create.descriptor %[[ANY_X]] {{.*}} <tensor = memref<1x8x4x2x64xf16, 3>, swizzle = swizzle_128b
// MAPS-DAG: %[[PIECES:.*]] = memref.expand_shape %[[V]] {{\[}}[0], [1], [2, 3, 4]] output_shape [5, 8, 2, 1, 256]
// MAPS-DAG: %[[LINES:.*]] = memref.transpose %[[PIECES]] (d0, d1, d2, d3, d4) -> (d3, d1, d2, d0, d4)
// MAPS-DAG: %[[ANY_V:.*]] = memref.cast %[[LINES]]
// MAPS-DAG: %[[V_MAP:.*]] = nvgpu.tma.create.descriptor %[[ANY_V]] {{.*}} <tensor = memref<1x2x2x2x64xf16, 3>, swizzle = swizzle_128b
// MAPS-DAG: nvgpu.tma.create.descriptor {{.*}} <tensor = memref<2x2x32xi32, 3>, swizzle = none
// MAPS: nm_tile.k_loop %[[K:.*]] = %
// MAPS: nm_tile.bulk_copy boxes = [1, 1, 1, 1, 4] ins(%[[V_MAP]][%c0{{.*}}, %{{.*}}, %c0{{.*}}, %{{.*}}, %c0{{.*}}]
// MAPS: nm_tile.bulk_copy ins(
// MAPS: nm_tile.bulk_copy ins(%[[X_MAP]][%[[GROUP:.*]], %c0{{.*}}, %c0{{.*}}, %c0{{.*}}, %
#segments = #nm_tile.schedule<tile = [40, 64, 32], product = wgmma_expand<warps = 4, segments = true>, transfers = {x = bulk, values = bulk, index = bulk}, pipeline = ring<stages = 2, producers = 4>>
func.func @segments(%x: tensor<256x96xf16>, %v: tensor<5x8x512xf16>, %b: tensor<5x8x32xi32>, %o: tensor<96x160xf32>) -> tensor<96x160xf32> {
  %0 = nm_sparse.matmul #e storage = #nm_sparse.bitmap<#e> indexing_maps = [#xf, #w, #y] config = #segments
    ins(%x, %v, %b : tensor<256x96xf16>, tensor<5x8x512xf16>, tensor<5x8x32xi32>) outs(%o : tensor<96x160xf32>) -> tensor<96x160xf32>
  return %0 : tensor<96x160xf32>
}
