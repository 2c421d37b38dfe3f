// RUN: nm-opt %s --nm-sparse-split-k | FileCheck %s

#w = #nm_sparse.encoding<8:32, block = [1, 64]>
#s = #nm_tile.schedule<tile = [16, 64, 16], product = mma<warps = [1, 2]>, transfers = {x = gather, values = copy, index = resident}, pipeline = async_groups<stages = 2>, grid = flat<split_k = 4>>

// Four CTAs a tile, along z. Each writes its part and counts itself between fences; the
// last resets the counter, adds the parts in order onto the initial value and
// goes on with what follows.

// CHECK-LABEL: func @parts
// CHECK: %[[SPACE:.*]] = gpu.alloc (%[[TILES:.*]]) : memref<?x4x16x64xf32>
// CHECK: %[[COUNT:.*]] = gpu.alloc (%[[TILES]]) : memref<?xi32>
// CHECK: gpu.memset %[[COUNT]]
// CHECK: gpu.launch
// CHECK: %[[SUM:.*]] = nm_tile.k_loop {{.*}} iter_args(%{{.*}} = %{{.*}}) -> (vector<16x64xf32>)
// CHECK: vector.transfer_write %[[SUM]], %[[SPACE]]
// CHECK: gpu.barrier
// CHECK: nvvm.memory.barrier <gpu>{{$}}
// CHECK: memref.atomic_rmw addi
// CHECK: nvvm.memory.barrier <gpu>{{$}}
// CHECK: memref.store %{{.*}}, %[[COUNT]]
// CHECK: gpu.barrier
// CHECK: scf.if
// CHECK: %[[ALL:.*]] = scf.for {{.*}} iter_args(%{{.*}} = %[[INIT:.*]]) -> (vector<16x64xf32>)
// CHECK: vector.transfer_read %[[SPACE]]
// CHECK: arith.addf
// CHECK: vector.transfer_write %[[ALL]], %arg2
// CHECK: gpu.dealloc %[[SPACE]]
// CHECK: gpu.dealloc %[[COUNT]]
func.func @parts(%x: memref<16x16xf16, 3>, %v: memref<16x64xf16, #nm_tile.shared<swizzled_rows>>, %out: memref<16x64xf32>) {
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c64, %sy = %c1, %sz = %c1) {
    %c0 = arith.constant 0 : index
    %c2 = arith.constant 2 : index
    %c100 = arith.constant 100 : index
    %pad = arith.constant 0.0 : f32
    %init = vector.transfer_read %out[%c0, %c0], %pad {in_bounds = [true, true]}
      : memref<16x64xf32>, vector<16x64xf32>
    %sum = nm_tile.k_loop %k = %c0 to %c100 step %c2 iter_args(%acc = %init) -> (vector<16x64xf32>) {
      %r = nm_tile.matmul #w schedule = #s condensed
        ins(%x, %v : memref<16x16xf16, 3>, memref<16x64xf16, #nm_tile.shared<swizzled_rows>>)
        acc(%acc : vector<16x64xf32>) -> vector<16x64xf32>
      nm_tile.yield %r : vector<16x64xf32>
    }
    vector.transfer_write %sum, %out[%c0, %c0] {in_bounds = [true, true]}
      : vector<16x64xf32>, memref<16x64xf32>
    gpu.terminator
  }
  return
}

// Where a thread holds neighbours along tokens, so do the tiles of the workspace.

// CHECK-LABEL: func @tokens_contiguous
// CHECK: %[[SPACE:.*]] = gpu.alloc (%{{.*}}) : memref<?x4x64x16xf32>
// CHECK: vector.transfer_write %{{.*}}, %[[SPACE]]{{.*}}permutation_map = #[[$MAP:.*]]}
// CHECK: vector.transfer_read %[[SPACE]]{{.*}}permutation_map = #[[$MAP]]}
func.func @tokens_contiguous(%x: memref<16x16xf16, 3>, %v: memref<16x64xf16, #nm_tile.shared<swizzled_rows>>, %out: memref<64x16xf32>) {
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c64, %sy = %c1, %sz = %c1) {
    %c0 = arith.constant 0 : index
    %c2 = arith.constant 2 : index
    %c100 = arith.constant 100 : index
    %init = arith.constant dense<0.0> : vector<16x64xf32>
    %sum = nm_tile.k_loop %k = %c0 to %c100 step %c2 iter_args(%acc = %init) -> (vector<16x64xf32>) {
      %r = nm_tile.matmul #w schedule = #s condensed tokens_contiguous
        ins(%x, %v : memref<16x16xf16, 3>, memref<16x64xf16, #nm_tile.shared<swizzled_rows>>)
        acc(%acc : vector<16x64xf32>) -> vector<16x64xf32>
      nm_tile.yield %r : vector<16x64xf32>
    }
    vector.transfer_write %sum, %out[%c0, %c0]
      {in_bounds = [true, true], permutation_map = affine_map<(d0, d1) -> (d1, d0)>}
      : vector<16x64xf32>, memref<64x16xf32>
    gpu.terminator
  }
  return
}
