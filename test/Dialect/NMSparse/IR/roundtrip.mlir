// RUN: nm-opt %s --verify-roundtrip | FileCheck %s
// RUN: nm-opt %s -emit-bytecode | nm-opt | FileCheck %s

#w = #nm_sparse.encoding<8:32, block = [1, 128]>
#t = #nm_sparse.encoding<2:4, dim = 1>
#f = #nm_sparse.encoding<free, block = [1, 64], order = shuffled>
#v = #nm_sparse.encoding<[4:10, block = [1, 64]], [2:4]>
#b = #nm_sparse.encoding<[2:5, block = [4, 32]], [1:4, block = [2, 8]], dim = 1>
#one = #nm_sparse.encoding<[2:4, block = [1, 2]], order = shuffled>

// Every attribute that a type or an operation holds is printed once, as an alias.
// CHECK-DAG: #schedule{{[0-9]*}} = #nm_tile.schedule<tile = [128, 128, 32], product = mma<warps = [2, 4]>, transfers = {x = gather, values = copy, index = resident}, pipeline = async_groups<stages = 3>, grid = flat>
// CHECK-DAG: #schedule{{[0-9]*}} = #nm_tile.schedule<tile = [128, 128, 32], product = mma<warps = [2, 4]>, transfers = {x = gather, values = copy, index = resident}, pipeline = ring<stages = 3, producers = 4>, grid = flat>
// CHECK-DAG: #[[$W:sparse[0-9]*]] = #nm_sparse.encoding<8:32, block = [1, 128]>
// CHECK-DAG: #[[$T:sparse[0-9]*]] = #nm_sparse.encoding<2:4, dim = 1>
// CHECK-DAG: #[[$F:sparse[0-9]*]] = #nm_sparse.encoding<free, block = [1, 64], order = shuffled>
// CHECK-DAG: #[[$V:sparse[0-9]*]] = #nm_sparse.encoding<[4:10, block = [1, 64]], [2:4]>
// CHECK-DAG: #[[$B:sparse[0-9]*]] = #nm_sparse.encoding<[2:5, block = [4, 32]], [1:4, block = [2, 8]], dim = 1>
// A list of one level is that level.
// CHECK-DAG: #[[$ONE:sparse[0-9]*]] = #nm_sparse.encoding<2:4, block = [1, 2], order = shuffled>
// CHECK-DAG: #[[$SWAP:map[0-9]*]] = affine_map<(d0, d1) -> (d1, d0)>
// CHECK-DAG: #[[$SAME:map[0-9]*]] = affine_map<(d0, d1) -> (d0, d1)>
// CHECK-DAG: #packed = #nm_sparse.packed<#[[$T]], [64, 32], f32>

// CHECK-LABEL: func private @encodings(
// CHECK-SAME: tensor<4096x4096xf16, #[[$W]]>, tensor<64x64xf32, #[[$T]]>, tensor<64x64xbf16, #[[$F]]>
func.func private @encodings(tensor<4096x4096xf16, #w>, tensor<64x64xf32, #t>,
                             tensor<64x64xbf16, #f>)

// CHECK-LABEL: func private @levels(
// CHECK-SAME: tensor<4096x4096xf16, #[[$V]]>, tensor<64x64xi8, #[[$B]]>, tensor<8x8xf32, #[[$ONE]]>
func.func private @levels(tensor<4096x4096xf16, #v>, tensor<64x64xi8, #b>,
                          tensor<8x8xf32, #one>)

#p = #nm_sparse.packed<#t, [64, 32], f32>
// CHECK-LABEL: func private @packed(
// CHECK-SAME: tensor<16x64xf32> {nm_sparse.component = #nm_sparse.component<"values", weight = 0, of = #packed>}, tensor<16x64xi8> {nm_sparse.component = #nm_sparse.component<"index", weight = 0, of = #packed>}
func.func private @packed(tensor<16x64xf32> {nm_sparse.component = #nm_sparse.component<"values", weight = 0, of = #p>},
                          tensor<16x64xi8> {nm_sparse.component = #nm_sparse.component<"index", weight = 0, of = #p>})

// Components are known by name and weight, not by their order.
// CHECK-LABEL: func private @two_weights(
// CHECK-SAME: "index", weight = 7, {{.*}}"values", weight = 0, {{.*}}f32, {{.*}}"index", weight = 0, {{.*}}"values", weight = 7,
func.func private @two_weights(tensor<16x64xi8> {nm_sparse.component = #nm_sparse.component<"index", weight = 7, of = #p>},
                               tensor<16x64xf32> {nm_sparse.component = #nm_sparse.component<"values", weight = 0, of = #p>},
                               f32,
                               tensor<16x64xi8> {nm_sparse.component = #nm_sparse.component<"index", weight = 0, of = #p>},
                               tensor<16x64xf32> {nm_sparse.component = #nm_sparse.component<"values", weight = 7, of = #p>})

#xm = affine_map<(m, n, k) -> (m, k)>
#wm = affine_map<(m, n, k) -> (k, n)>
#ym = affine_map<(m, n, k) -> (m, n)>

// CHECK-LABEL: func @matmul
// CHECK: nm_sparse.pack
// CHECK: nm_sparse.matmul
// CHECK-SAME: config = #
func.func @matmul(%x: tensor<?x4096xf16>, %w: tensor<4096x4096xf16, #w>,
                  %init: tensor<?x4096xf32>) -> tensor<?x4096xf32> {
  %v, %i = nm_sparse.pack #w %w : tensor<4096x4096xf16, #w>
    to tensor<1024x4096xf16>, tensor<1024x32xi8>
  %y = nm_sparse.matmul #w indexing_maps = [#xm, #wm, #ym]
    config = #nm_tile.schedule<tile = [128, 128, 32], product = mma<warps = [2, 4]>, transfers = {x = gather, values = copy, index = resident}, pipeline = async_groups<stages = 3>, grid = flat>
    ins(%x, %v, %i : tensor<?x4096xf16>, tensor<1024x4096xf16>, tensor<1024x32xi8>)
    outs(%init : tensor<?x4096xf32>) -> tensor<?x4096xf32>
  return %y : tensor<?x4096xf32>
}

// CHECK-LABEL: func @prune_unpack
func.func @prune_unpack(%w: tensor<8x4xbf16>, %v: tensor<4x4xbf16>, %i: tensor<4x4xi8>)
    -> (tensor<8x4xbf16, #nm_sparse.encoding<2:4>>, tensor<8x4xbf16>) {
  // CHECK: nm_sparse.prune #{{.*}} : tensor<8x4xbf16> to tensor<8x4xbf16, #{{.*}}>
  %p = nm_sparse.prune #nm_sparse.encoding<2:4> %w
    : tensor<8x4xbf16> to tensor<8x4xbf16, #nm_sparse.encoding<2:4>>
  // CHECK: nm_sparse.unpack #{{.*}} : tensor<4x4xbf16>, tensor<4x4xi8> to tensor<8x4xbf16>
  %u = nm_sparse.unpack #nm_sparse.encoding<2:4> %v, %i
    : tensor<4x4xbf16>, tensor<4x4xi8> to tensor<8x4xbf16>
  return %p, %u : tensor<8x4xbf16, #nm_sparse.encoding<2:4>>, tensor<8x4xbf16>
}

// CHECK-LABEL: func @pack_two_levels
func.func @pack_two_levels(%w: tensor<17x70xf16>) -> tensor<17x70xf16> {
  // CHECK: %[[V:.+]], %[[I:.+]], %[[II:.+]] = nm_sparse.pack #[[$V]] %{{.*}} : tensor<17x70xf16> to tensor<4x128xf16>, tensor<8x2xi8>, tensor<4x128xi8>
  %v, %i, %ii = nm_sparse.pack #v %w : tensor<17x70xf16> to tensor<4x128xf16>, tensor<8x2xi8>, tensor<4x128xi8>
  // CHECK: nm_sparse.unpack #[[$V]] %[[V]], %[[I]], %[[II]] :
  %u = nm_sparse.unpack #v %v, %i, %ii : tensor<4x128xf16>, tensor<8x2xi8>, tensor<4x128xi8> to tensor<17x70xf16>
  return %u : tensor<17x70xf16>
}

// CHECK-LABEL: func @tile_ops
func.func @tile_ops(%src: memref<?x?xf16, strided<[4096, 1], offset: ?>>,
                    %i: memref<32x1xi8, 3>, %x: memref<32x128xf16, 3>,
                    %v: memref<32x128xf16, 3>, %acc: vector<128x128xf32>,
                    %rows: memref<32x1xi16, 3>)
    -> vector<128x128xf32> {
  // CHECK: nm_tile.async_copy indexing_maps = [#[[$SWAP]], #[[$SAME]]] ins
  nm_tile.async_copy indexing_maps = [affine_map<(r, c) -> (c, r)>, affine_map<(r, c) -> (r, c)>]
    ins(%src : memref<?x?xf16, strided<[4096, 1], offset: ?>>)
    outs(%v : memref<32x128xf16, 3>)
  // CHECK: nm_tile.async_gather #
  nm_tile.async_gather #w
    ins(%src, %i : memref<?x?xf16, strided<[4096, 1], offset: ?>>, memref<32x1xi8, 3>)
    outs(%x : memref<32x128xf16, 3>)
  // CHECK: nm_tile.async_gather #{{[a-z]*}} indexing_maps = [#[[$SWAP]], #[[$SAME]]] panels = 1 by_row in_bounds ins({{.*}}xi16, 3>) outs
  nm_tile.async_gather #w indexing_maps = [affine_map<(r, c) -> (c, r)>, affine_map<(r, c) -> (r, c)>] panels = 1 by_row in_bounds
    ins(%src, %rows : memref<?x?xf16, strided<[4096, 1], offset: ?>>, memref<32x1xi16, 3>)
    outs(%x : memref<32x128xf16, 3>)
  // CHECK: nm_tile.async_copy rows_of = #{{[a-z]*}} ins({{.*}}xi8, 3>) outs({{.*}}xi16, 3>)
  nm_tile.async_copy rows_of = #w ins(%i : memref<32x1xi8, 3>)
    outs(%rows : memref<32x1xi16, 3>)
  // CHECK: nm_tile.async_copy threads = [256, 128] ins
  nm_tile.async_copy threads = [256, 128]
    ins(%src : memref<?x?xf16, strided<[4096, 1], offset: ?>>)
    outs(%v : memref<32x128xf16, 3>)
  // CHECK: nm_tile.async_gather {{.*}} threads = [256, 128] ins
  nm_tile.async_gather #w threads = [256, 128]
    ins(%src, %i : memref<?x?xf16, strided<[4096, 1], offset: ?>>, memref<32x1xi8, 3>)
    outs(%x : memref<32x128xf16, 3>)
  // CHECK: nm_tile.matmul {{.*}} condensed ins
  %p = nm_tile.matmul #w
    schedule = #nm_tile.schedule<tile = [128, 128, 32], product = mma<warps = [2, 4]>, transfers = {x = gather, values = copy, index = resident}, pipeline = ring<stages = 3, producers = 4>, grid = flat>
    condensed ins(%x, %v : memref<32x128xf16, 3>, memref<32x128xf16, 3>)
    acc(%acc : vector<128x128xf32>) -> vector<128x128xf32>
  // CHECK: nm_tile.matmul {{.*}} condensed ins
  %r = nm_tile.matmul #w
    schedule = #nm_tile.schedule<tile = [128, 128, 32], product = mma<warps = [2, 4]>, transfers = {x = gather, values = copy, index = resident}, pipeline = async_groups<stages = 3>, grid = flat>
    condensed ins(%x, %v : memref<32x128xf16, 3>, memref<32x128xf16, 3>)
    acc(%p : vector<128x128xf32>) -> vector<128x128xf32>
  return %r : vector<128x128xf32>
}

// CHECK-LABEL: @prefetch
func.func @prefetch(%x: memref<1024x?xf16>) {
  // CHECK: nm_tile.prefetch %{{.*}}, 16384 of 132 : memref<1024x?xf16>
  nm_tile.prefetch %x, 16384 of 132 : memref<1024x?xf16>
  return
}
