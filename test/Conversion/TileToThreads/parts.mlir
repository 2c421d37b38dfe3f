// RUN: nm-opt %s --nm-sparse-lay-out-accumulators --convert-nm-tile-to-threads --canonicalize --cse | FileCheck %s

#w = #nm_sparse.encoding<8:32, block = [1, 64]>
#s = #nm_tile.schedule<tile = [16, 64, 16], product = mma<warps = [1, 2]>, transfers = {x = gather, values = copy, index = resident}, pipeline = async_groups<stages = 2>, grid = flat>

// A thread has 16 elements, and 4 accesses of 16 bytes. At a time, 64 threads
// access 4 rows of 64, each its 16 bytes next to those of its neighbour.

// CHECK-LABEL: func @parts
// CHECK: %[[PLACE:.*]] = arith.muli %{{.*}}, %c4
// CHECK: %[[ROW:.*]] = arith.divui %[[PLACE]], %c64
// CHECK: %[[COLUMN:.*]] = arith.remui %[[PLACE]], %c64
// CHECK: vector.store %{{.*}}, %arg2[%arg3, %c1, %[[ROW]], %[[COLUMN]]] {alignment = 16 : i64} : memref<?x2x16x64xf32>, vector<4xf32>
// CHECK: %[[NEXT:.*]] = arith.addi %[[ROW]], %c4
// CHECK: vector.store %{{.*}}, %arg2[%arg3, %c1, %[[NEXT]], %[[COLUMN]]]
// CHECK-COUNT-2: vector.store {{.*}} : memref<?x2x16x64xf32>
// CHECK-NOT: vector.store {{.*}} : memref<?x2x16x64xf32>
// CHECK: vector.load %arg2[%arg3, %c0, %[[ROW]], %[[COLUMN]]] {alignment = 16 : i64}
// CHECK-COUNT-3: vector.load
// CHECK-COUNT-16: arith.addf
func.func @parts(%x: memref<16x16xf16, 3>, %v: memref<16x64xf16, #nm_tile.shared<swizzled_rows>>,
                 %parts: memref<?x2x16x64xf32>, %tile: index, %out: memref<16x64xf32>) {
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c64, %sy = %c1, %sz = %c1) {
    %c0 = arith.constant 0 : index
    %zero = arith.constant dense<0.0> : vector<16x64xf32>
    %r = nm_tile.matmul #w schedule = #s condensed
      ins(%x, %v : memref<16x16xf16, 3>, memref<16x64xf16, #nm_tile.shared<swizzled_rows>>)
      acc(%zero : vector<16x64xf32>) -> vector<16x64xf32>
    nm_tile.store_part %r, %parts[%tile, %c1] : vector<16x64xf32>, memref<?x2x16x64xf32>
    %other = nm_tile.load_part %parts[%tile, %c0] : memref<?x2x16x64xf32>, vector<16x64xf32>
    %sum = arith.addf %r, %other : vector<16x64xf32>
    vector.transfer_write %sum, %out[%c0, %c0] {in_bounds = [true, true]}
      : vector<16x64xf32>, memref<16x64xf32>
    gpu.terminator
  }
  return
}
