// RUN: nm-opt %s --nm-sparse-lay-out-accumulators --convert-nm-tile-to-threads --split-input-file -verify-diagnostics | FileCheck %s

#w = #nm_sparse.encoding<8:32, block = [1, 64]>
#s = #nm_tile.schedule<tile = [64, 64, 32], product = mma<warps = [2, 2]>, transfers = {x = gather, values = copy, index = resident}, pipeline = async_groups<stages = 2>, grid = flat>

// Row t of the tile is row t / 6 of entry t % 6, in whole runs.
// CHECK-LABEL: func @rows
// CHECK-SAME: %[[OUT:[a-z0-9]+]]: memref<6x?x64xf16>
// CHECK: %[[ENTRY:.*]] = arith.remui %[[T:.*]], %[[C:c6.*]] : index
// CHECK-NEXT: %[[ROW:.*]] = arith.divui %[[T]], %[[C]] : index
// CHECK-NEXT: vector.store %{{.*}}, %[[OUT]][%[[ENTRY]], %[[ROW]], %{{.*}}] {{.*}} : memref<6x?x64xf16>, vector<8xf16>
func.func @rows(%x: memref<32x64xf16, #nm_tile.shared<swizzled_rows>>, %v: memref<32x64xf16, #nm_tile.shared<swizzled_rows>>, %out: memref<6x?x64xf16>, %n: index) {
  %c1 = arith.constant 1 : index
  %c128 = arith.constant 128 : index
  %view = nm_tile.interleaved_view %out : memref<6x?x64xf16> to memref<?x64xf16>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c128, %sy = %c1, %sz = %c1) {
    %c0 = arith.constant 0 : index
    %zero = arith.constant dense<0.0> : vector<64x64xf32>
    %acc = nm_tile.matmul #w schedule = #s condensed
      ins(%x, %v : memref<32x64xf16, #nm_tile.shared<swizzled_rows>>, memref<32x64xf16, #nm_tile.shared<swizzled_rows>>)
      acc(%zero : vector<64x64xf32>) -> vector<64x64xf32>
    %cast = arith.truncf %acc : vector<64x64xf32> to vector<64x64xf16>
    %tile = memref.subview %view[%by, 0] [%n, 64] [1, 1] : memref<?x64xf16> to memref<?x64xf16, strided<[64, 1], offset: ?>>
    vector.transfer_write %cast, %tile[%c0, %c0] {in_bounds = [false, true]}
      : vector<64x64xf16>, memref<?x64xf16, strided<[64, 1], offset: ?>>
    gpu.terminator
  }
  return
}

// -----

func.func @other_write(%out: memref<2x4x8xf32>, %v: f32, %i: index) {
  // expected-error @below {{is read or written by more than tiles of a product}}
  %view = nm_tile.interleaved_view %out : memref<2x4x8xf32> to memref<8x8xf32>
  memref.store %v, %view[%i, %i] : memref<8x8xf32>
  return
}
