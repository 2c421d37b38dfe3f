// RUN: nm-opt %s --nm-sparse-split-in-cluster | FileCheck %s

#w = #nm_sparse.encoding<8:32, block = [1, 64]>
#s = #nm_tile.schedule<tile = [16, 64, 16], product = mma<warps = [1, 2]>, transfers = {x = gather, values = copy, index = resident}, pipeline = async_groups<stages = 2>, grid = flat<split_k = 4, in_cluster = true>>
#three = #nm_tile.schedule<tile = [16, 64, 16], product = mma<warps = [1, 2]>, transfers = {x = gather, values = copy, index = resident}, pipeline = async_groups<stages = 2>, grid = flat<split_k = 3, in_cluster = true>>

// Four CTAs a tile, a cluster along z. Each frees its tiles, leaves its share where
// they were, adds the shares of 4 tokens to their initial values, and writes
// these.

// CHECK-LABEL: func @pieces
// CHECK: gpu.launch clusters({{.*}}) in (%{{.*}} = %c1{{.*}}, %{{.*}} = %c1{{.*}}, %{{.*}} = %c4{{.*}})
// CHECK: %[[PART:.*]] = arith.remui
// CHECK: %[[TILE:.*]] = memref.alloc() : memref<16x64xf16, 3>
// CHECK: %[[SUM:.*]] = nm_tile.k_loop
// CHECK: gpu.barrier
// CHECK-NEXT: memref.dealloc %[[TILE]]
// CHECK: %[[SHARES:.*]] = memref.alloc() : memref<16x72xf32, #gpu.address_space<workgroup>>
// CHECK: vector.transfer_write %[[SUM]], %[[SHARES]]
// CHECK: nvvm.cluster.arrive
// CHECK-NEXT: nvvm.cluster.wait
// CHECK: %[[ROW:.*]] = arith.muli %[[PART]], %c4
// CHECK: %[[PIECE:.*]] = nm_tile.sum_ctas %[[SHARES]][%[[ROW]]] ctas = 4 {{.*}} -> vector<4x64xf32>
// CHECK-NEXT: nvvm.cluster.arrive
// CHECK: %[[INIT:.*]] = vector.transfer_read %arg2{{.*}} {in_bounds = [true, true]} : memref<16x64xf32>, vector<4x64xf32>
// CHECK: %[[ALL:.*]] = arith.addf %[[INIT]], %[[PIECE]] : vector<4x64xf32>
// CHECK: %[[TWICE:.*]] = arith.mulf %[[ALL]], %{{.*}} : vector<4x64xf32>
// CHECK: vector.transfer_write %[[TWICE]], %arg2[%{{.*}}, %c0{{.*}}] {in_bounds = [true, true]} : vector<4x64xf32>
// CHECK: nvvm.cluster.wait
// CHECK-NEXT: gpu.terminator
func.func @pieces(%x: memref<16x16xf16, 3>, %v: memref<16x64xf16>, %out: memref<16x64xf32>) {
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c64, %sy = %c1, %sz = %c1) {
    %c0 = arith.constant 0 : index
    %c2 = arith.constant 2 : index
    %c100 = arith.constant 100 : index
    %pad = arith.constant 0.0 : f32
    %two = arith.constant dense<2.0> : vector<16x64xf32>
    %tile = memref.alloc() : memref<16x64xf16, 3>
    %init = vector.transfer_read %out[%c0, %c0], %pad {in_bounds = [true, true]}
      : memref<16x64xf32>, vector<16x64xf32>
    %sum = nm_tile.k_loop %k = %c0 to %c100 step %c2 iter_args(%acc = %init) -> (vector<16x64xf32>) {
      nm_tile.async_copy ins(%v : memref<16x64xf16>) outs(%tile : memref<16x64xf16, 3>)
      %r = nm_tile.matmul #w schedule = #s condensed
        ins(%x, %tile : memref<16x16xf16, 3>, memref<16x64xf16, 3>)
        acc(%acc : vector<16x64xf32>) -> vector<16x64xf32>
      nm_tile.yield %r : vector<16x64xf32>
    }
    %twice = arith.mulf %sum, %two : vector<16x64xf32>
    vector.transfer_write %twice, %out[%c0, %c0] {in_bounds = [true, true]}
      : vector<16x64xf32>, memref<16x64xf32>
    gpu.terminator
  }
  return
}

// Where a thread holds neighbours along tokens, the pieces are outputs. Three of 24
// outputs are more than 64: the last one may write beyond the tile, where
// nothing is. A bias of which each token has the same is read where it is.

// CHECK-LABEL: func @beyond
// CHECK: vector.transfer_write %{{.*}}, %{{.*}} {{.*}}permutation_map = #{{.*}}} : vector<16x64xf32>, memref<64x24xf32
// CHECK: nm_tile.sum_ctas %{{.*}} ctas = 3 {{.*}} tokens_contiguous : memref<64x24xf32{{.*}}> -> vector<16x32xf32>
// CHECK: vector.transfer_read %arg3[%{{.*}}], %{{.*}} {in_bounds = [true, false], permutation_map = #{{.*}}} : memref<64xf32>, vector<16x32xf32>
// CHECK: vector.transfer_write %{{.*}}, %arg2[%{{.*}}, %c0{{.*}}] {in_bounds = [true, false], permutation_map = #{{.*}}} : vector<16x32xf32>, memref<64x16xf32>
func.func @beyond(%x: memref<16x16xf16, 3>, %v: memref<16x64xf16, #nm_tile.shared<swizzled_rows>>, %out: memref<64x16xf32>, %bias: memref<64xf32>) {
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c64, %sy = %c1, %sz = %c1) {
    %c0 = arith.constant 0 : index
    %c2 = arith.constant 2 : index
    %c100 = arith.constant 100 : index
    %pad = arith.constant 0.0 : f32
    %zero = arith.constant dense<0.0> : vector<16x64xf32>
    %sum = nm_tile.k_loop %k = %c0 to %c100 step %c2 iter_args(%acc = %zero) -> (vector<16x64xf32>) {
      %r = nm_tile.matmul #w schedule = #three condensed tokens_contiguous
        ins(%x, %v : memref<16x16xf16, 3>, memref<16x64xf16, #nm_tile.shared<swizzled_rows>>)
        acc(%acc : vector<16x64xf32>) -> vector<16x64xf32>
      nm_tile.yield %r : vector<16x64xf32>
    }
    %b = vector.transfer_read %bias[%c0], %pad {in_bounds = [true, true], permutation_map = affine_map<(d0) -> (0, d0)>}
      : memref<64xf32>, vector<16x64xf32>
    %y = arith.addf %sum, %b : vector<16x64xf32>
    vector.transfer_write %y, %out[%c0, %c0] {in_bounds = [true, true], permutation_map = affine_map<(d0, d1) -> (d1, d0)>}
      : vector<16x64xf32>, memref<64x16xf32>
    gpu.terminator
  }
  return
}
