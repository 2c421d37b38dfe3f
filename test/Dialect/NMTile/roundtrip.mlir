// RUN: nm-opt %s --verify-roundtrip | FileCheck %s

// CHECK-LABEL: func @k_loop
// CHECK: nm_tile.k_loop %{{.*}} = %arg0 to %arg1 step %arg2 iter_args(%{{.*}} = %arg3) -> (vector<4x4xf32>) {
// CHECK: nm_tile.yield %{{.*}} : vector<4x4xf32>
// CHECK: nm_tile.k_loop %{{.*}} stages = 3 {
// CHECK: nm_tile.yield
// CHECK: } {note}
func.func @k_loop(%lower: index, %upper: index, %step: index, %zero: vector<4x4xf32>)
    -> vector<4x4xf32> {
  %sum = nm_tile.k_loop %k = %lower to %upper step %step iter_args(%acc = %zero)
      -> (vector<4x4xf32>) {
    %next = arith.addf %acc, %acc : vector<4x4xf32>
    nm_tile.yield %next : vector<4x4xf32>
  }
  nm_tile.k_loop %k = %lower to %upper step %step stages = 3 {
    nm_tile.yield
  } {note}
  return %sum : vector<4x4xf32>
}

// CHECK-LABEL: func @roles
// CHECK: %[[RING:.*]] = nm_tile.ring full = 132 empty = 8 : !nm_tile.ring<3>
// CHECK: nm_tile.warp_specialize consumers = 256 registers = 216 {
// CHECK:   %[[BEGIN:.*]] = nm_tile.ring_begin full %[[RING]] : !nm_tile.ring<3>
// CHECK:   nm_tile.tile_loop %{{.*}} = %arg0 to %arg1 step %arg2 iter_args(%[[AT:.*]] = %[[BEGIN]]) -> (!nm_tile.ring_position) {
// CHECK:     %[[SUM:.*]]:2 = nm_tile.k_loop {{.*}} iter_args(%{{.*}} = %arg3, %[[HERE:.*]] = %[[AT]]) -> (vector<4x4xf32>, !nm_tile.ring_position) {
// CHECK:       nm_tile.ring_wait full %[[RING]][%[[HERE]]] : !nm_tile.ring<3>
// CHECK:       nm_tile.ring_slot %[[HERE]]
// CHECK:       nm_tile.ring_release %[[RING]][%[[HERE]]] : !nm_tile.ring<3>
// CHECK:       nm_tile.ring_release late %[[RING]][%[[HERE]]] : !nm_tile.ring<3>
// CHECK:       nm_tile.ring_release late by_threads %[[RING]][%[[HERE]]] : !nm_tile.ring<3>
// CHECK:       nm_tile.ring_advance %[[RING]][%[[HERE]]] by 1 : !nm_tile.ring<3>
// CHECK:     nm_tile.ring_drain %[[RING]][%[[SUM]]#1] : !nm_tile.ring<3>
// CHECK:     nm_tile.ring_drain %[[RING]][%[[SUM]]#1] release(%arg4) : !nm_tile.ring<3>
// CHECK:     nm_tile.ring_drain by_threads %[[RING]][%[[SUM]]#1] release(%arg4) : !nm_tile.ring<3>
// CHECK:     nm_tile.yield %[[SUM]]#1 : !nm_tile.ring_position
// CHECK:   nm_tile.role_barrier
// CHECK-NOT: nm_tile.yield
// CHECK: } producers = 128 registers = 72 {
// CHECK:   nm_tile.ring_begin empty %[[RING]] at %arg0 : !nm_tile.ring<3>
// CHECK:   nm_tile.ring_wait empty
// CHECK:   nm_tile.ring_mbarrier full %{{.*}} : !nm_tile.ring<3> -> !llvm.ptr<3>
// CHECK:   nm_tile.ring_commit %{{.*}} : !nm_tile.ring<3>
// CHECK:   nm_tile.ring_commit stores %{{.*}} : !nm_tile.ring<3>
func.func @roles(%lower: index, %upper: index, %step: index, %zero: vector<4x4xf32>, %any: i1) {
  %ring = nm_tile.ring full = 132 empty = 8 : !nm_tile.ring<3>
  nm_tile.warp_specialize consumers = 256 registers = 216 {
    %begin = nm_tile.ring_begin full %ring : !nm_tile.ring<3>
    %end = nm_tile.tile_loop %tile = %lower to %upper step %step iter_args(%at = %begin)
        -> (!nm_tile.ring_position) {
      %sum:2 = nm_tile.k_loop %k = %lower to %upper step %step
          iter_args(%acc = %zero, %here = %at) -> (vector<4x4xf32>, !nm_tile.ring_position) {
        nm_tile.ring_wait full %ring[%here] : !nm_tile.ring<3>
        %slot = nm_tile.ring_slot %here
        nm_tile.ring_release %ring[%here] : !nm_tile.ring<3>
        nm_tile.ring_release late %ring[%here] : !nm_tile.ring<3>
        nm_tile.ring_release late by_threads %ring[%here] : !nm_tile.ring<3>
        %next = nm_tile.ring_advance %ring[%here] by 1 : !nm_tile.ring<3>
        nm_tile.yield %acc, %next : vector<4x4xf32>, !nm_tile.ring_position
      }
      nm_tile.ring_drain %ring[%sum#1] : !nm_tile.ring<3>
      nm_tile.ring_drain %ring[%sum#1] release(%any) : !nm_tile.ring<3>
      nm_tile.ring_drain by_threads %ring[%sum#1] release(%any) : !nm_tile.ring<3>
      nm_tile.yield %sum#1 : !nm_tile.ring_position
    }
    nm_tile.role_barrier
  } producers = 128 registers = 72 {
    %begin = nm_tile.ring_begin empty %ring at %lower : !nm_tile.ring<3>
    nm_tile.ring_wait empty %ring[%begin] : !nm_tile.ring<3>
    %full = nm_tile.ring_mbarrier full %ring[%begin] : !nm_tile.ring<3> -> !llvm.ptr<3>
    nm_tile.ring_commit %ring[%begin] : !nm_tile.ring<3>
    nm_tile.ring_commit stores %ring[%begin] : !nm_tile.ring<3>
  }
  return
}

// CHECK-LABEL: func @few_warps
// CHECK: nm_tile.ring full = 1 empty = 1 bulk : !nm_tile.ring<2>
// CHECK: nm_tile.warp_specialize consumers = 32 {
// CHECK-NEXT: } producers = 32 {
// CHECK-NEXT: }
func.func @few_warps() {
  %ring = nm_tile.ring full = 1 empty = 1 bulk : !nm_tile.ring<2>
  nm_tile.warp_specialize consumers = 32 {
  } producers = 32 {
  }
  return
}

// CHECK-LABEL: func @parts
// CHECK: nm_tile.store_part %arg0, %arg1[%arg2, %arg2] : vector<64x128xf32>, memref<?x2x128x64xf32>
// CHECK: nm_tile.load_part %arg1[%arg2, %arg2] : memref<?x2x128x64xf32>, vector<64x128xf32>
func.func @parts(%sum: vector<64x128xf32>, %parts: memref<?x2x128x64xf32>, %i: index)
    -> vector<64x128xf32> {
  nm_tile.store_part %sum, %parts[%i, %i] : vector<64x128xf32>, memref<?x2x128x64xf32>
  %other = nm_tile.load_part %parts[%i, %i] : memref<?x2x128x64xf32>, vector<64x128xf32>
  return %other : vector<64x128xf32>
}

// CHECK-LABEL: func @pinned
// CHECK: nm_tile.pinned_load %arg0[%arg1, %arg1] : memref<8x8xf32, 3>, f32
// CHECK: nm_tile.pinned_load %arg0[%arg1, %arg1] : memref<8x8xf32, 3>, vector<4xf32>
func.func @pinned(%tile: memref<8x8xf32, 3>, %i: index) -> (f32, vector<4xf32>) {
  %0 = nm_tile.pinned_load %tile[%i, %i] : memref<8x8xf32, 3>, f32
  %1 = nm_tile.pinned_load %tile[%i, %i] : memref<8x8xf32, 3>, vector<4xf32>
  return %0, %1 : f32, vector<4xf32>
}

// CHECK-LABEL: func @read_only
// CHECK: nm_tile.read_only_load %arg0[%arg1, %arg1] : memref<8x8xf16>, f16
// CHECK: nm_tile.read_only_load once %arg0[%arg1, %arg1] : memref<8x8xf16>, vector<8xf16>
func.func @read_only(%x: memref<8x8xf16>, %i: index) -> (f16, vector<8xf16>) {
  %0 = nm_tile.read_only_load %x[%i, %i] : memref<8x8xf16>, f16
  %1 = nm_tile.read_only_load once %x[%i, %i] : memref<8x8xf16>, vector<8xf16>
  return %0, %1 : f16, vector<8xf16>
}

// CHECK-LABEL: func @sum_warps
// CHECK: nm_tile.sum_warps %arg0 : vector<2x32xf32>
func.func @sum_warps(%shares: vector<2x32xf32>) -> vector<2x32xf32> {
  %0 = nm_tile.sum_warps %shares : vector<2x32xf32>
  return %0 : vector<2x32xf32>
}

// CHECK-LABEL: func @sum_ctas
// CHECK: nm_tile.sum_ctas %arg0[%arg1] ctas = 3 schedule = #{{.*}} : memref<256x136xf32, 3> -> vector<88x128xf32>
// CHECK: nm_tile.sum_ctas %arg2[%arg1] ctas = 2 schedule = #{{.*}} tokens_contiguous layout = #{{.*}} : memref<64x40xf32, 3> -> vector<32x32xf32>
func.func @sum_ctas(%shares: memref<256x136xf32, 3>, %row: index, %few: memref<64x40xf32, 3>) -> (vector<88x128xf32>, vector<32x32xf32>) {
  %0 = nm_tile.sum_ctas %shares[%row] ctas = 3 schedule = <tile = [256, 128, 64], product = wgmma<warps = [2, 4]>, transfers = {x = gather, values = bulk, index = resident}, pipeline = ring<stages = 4, producers = 4>, grid = flat<split_k = 3, in_cluster = true>>
    : memref<256x136xf32, 3> -> vector<88x128xf32>
  %1 = nm_tile.sum_ctas %few[%row] ctas = 2 schedule = #nm_tile.schedule<tile = [32, 64, 16], product = mma<warps = [1, 2]>, pipeline = async_groups<stages = 3>, grid = flat<split_k = 2, in_cluster = true>>
    tokens_contiguous layout = <unit = [tokens 8 by 4, outputs 8 by 1], units = [], elements = [tokens 4 by 1, tokens 1 by 32, outputs 4 by 8]>
    : memref<64x40xf32, 3> -> vector<32x32xf32>
  return %0, %1 : vector<88x128xf32>, vector<32x32xf32>
}

// CHECK-LABEL: func @hints
// CHECK: nm_tile.hints{{$}}
// CHECK: nm_tile.hints accumulators = 128 has_sm streams(%arg0, %arg1 : memref<64x32xi8>, memref<64x64xf16>)
func.func @hints(%i: memref<64x32xi8>, %v: memref<64x64xf16>) {
  nm_tile.hints
  nm_tile.hints accumulators = 128 has_sm streams(%i, %v : memref<64x32xi8>, memref<64x64xf16>)
  return
}

// CHECK-LABEL: func @pairs
// CHECK: nm_tile.ring full = 128 empty = 16 cluster = 2 bulk : !nm_tile.ring<3>
// CHECK: nm_tile.bulk_copy multicast = 2 ins(
// CHECK: nm_tile.product_wait ahead metadata(%{{.*}}, %{{.*}})
// CHECK: nm_tile.product_wait metadata()
!pair = !nvgpu.tensormap.descriptor<tensor = memref<16x64xf16, 3>, swizzle = swizzle_128b, l2promo = none, oob = zero, interleave = none>
func.func @pairs(%map: !pair, %i: index, %tile: memref<32x64xf16, #nm_tile.shared<swizzled_blocks>>, %word: i32) {
  %ring = nm_tile.ring full = 128 empty = 16 cluster = 2 bulk : !nm_tile.ring<3>
  nm_tile.bulk_copy multicast = 2 ins(%map[%i, %i] : !pair) outs(%tile : memref<32x64xf16, #nm_tile.shared<swizzled_blocks>>)
  nm_tile.product_wait ahead metadata(%word, %word)
  nm_tile.product_wait metadata()
  return
}

// CHECK-LABEL: func @within
// CHECK: nm_tile.bulk_copy ins({{.*}}) outs({{.*}}) within(%{{.*}} by %{{.*}} : !nvgpu.tensormap.descriptor<{{.*}}>)
!whole = !nvgpu.tensormap.descriptor<tensor = memref<48x64xf16, 3>, swizzle = swizzle_128b, l2promo = none, oob = zero, interleave = none>
!part = !nvgpu.tensormap.descriptor<tensor = memref<16x64xf16, 3>, swizzle = swizzle_128b, l2promo = none, oob = zero, interleave = none>
func.func @within(%map: !whole, %part: !part, %i: index, %tile: memref<48x128xf16, #nm_tile.shared<swizzled_blocks>>) {
  nm_tile.bulk_copy ins(%map[%i, %i] : !whole) outs(%tile : memref<48x128xf16, #nm_tile.shared<swizzled_blocks>>) within(%i by %part : !part)
  return
}

// CHECK-LABEL: func @permuted_views
// CHECK: nm_tile.permuted_view %arg0, %arg1 dim = 1 batch = 0 : memref<2x64x?xf16>, memref<2x64xi32>
// CHECK: nm_tile.permuted_view inverse %arg2, %arg3 dim = 0 : tensor<64x?xf16>, tensor<64xi32>
func.func @permuted_views(%y: memref<2x64x?xf16>, %p: memref<2x64xi32>, %z: tensor<64x?xf16>, %q: tensor<64xi32>) {
  %0 = nm_tile.permuted_view %y, %p dim = 1 batch = 0 : memref<2x64x?xf16>, memref<2x64xi32>
  %1 = nm_tile.permuted_view inverse %z, %q dim = 0 : tensor<64x?xf16>, tensor<64xi32>
  return
}

// CHECK-LABEL: func @interleaved_views
// CHECK: nm_tile.interleaved_view %arg0 : memref<2x?x64xf16> to memref<?x64xf16>
// CHECK: nm_tile.interleaved_view inverse %arg1 : tensor<8x3xf16> to tensor<2x4x3xf16>
func.func @interleaved_views(%y: memref<2x?x64xf16>, %z: tensor<8x3xf16>) {
  %0 = nm_tile.interleaved_view %y : memref<2x?x64xf16> to memref<?x64xf16>
  %1 = nm_tile.interleaved_view inverse %z : tensor<8x3xf16> to tensor<2x4x3xf16>
  return
}
