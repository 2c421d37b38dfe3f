// RUN: nm-opt %s --nm-sparse-lay-out-accumulators --convert-nm-tile-to-threads --split-input-file -verify-diagnostics | FileCheck %s

#w = #nm_sparse.encoding<8:32, block = [1, 64]>
#s = #nm_tile.schedule<tile = [64, 64, 32], product = mma<warps = [2, 2]>, transfers = {x = gather, values = copy, index = resident}, pipeline = async_groups<stages = 2>, grid = flat>
#feature = affine_map<(n, m) -> (m, n)>

// The rows of a thread are looked up; the last places of a permutation that ends
// inside of the tile are those that exist.
// CHECK-LABEL: func @rows
// CHECK-SAME: %[[OUT:[a-z0-9]+]]: memref<100x?xf16>, %[[PERM:[a-z0-9]+]]: memref<100xi32>
// CHECK: arith.minui
// CHECK: %[[WORD:.*]] = nm_tile.read_only_load %[[PERM]][%{{.*}}] : memref<100xi32>, i32
// CHECK: %[[ROW:.*]] = arith.index_castui %[[WORD]]
// CHECK: vector.store %{{.*}}, %[[OUT]][%[[ROW]], %{{.*}}] {{.*}} : memref<100x?xf16>, vector<8xf16>
func.func @rows(%x: memref<32x64xf16, #nm_tile.shared<swizzled_rows>>, %v: memref<32x64xf16, #nm_tile.shared<swizzled_rows>>, %out: memref<100x?xf16>, %perm: memref<100xi32>, %n: index, %m: index) {
  %c1 = arith.constant 1 : index
  %c128 = arith.constant 128 : index
  %view = nm_tile.permuted_view %out, %perm dim = 0 : memref<100x?xf16>, memref<100xi32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c128, %sy = %c1, %sz = %c1) {
    %c0 = arith.constant 0 : index
    %zero = arith.constant dense<0.0> : vector<64x64xf32>
    %acc = nm_tile.matmul #w schedule = #s condensed tokens_contiguous
      ins(%x, %v : memref<32x64xf16, #nm_tile.shared<swizzled_rows>>, memref<32x64xf16, #nm_tile.shared<swizzled_rows>>)
      acc(%zero : vector<64x64xf32>) -> vector<64x64xf32>
    %cast = arith.truncf %acc : vector<64x64xf32> to vector<64x64xf16>
    %tile = memref.subview %view[%by, 0] [%n, %m] [1, 1] : memref<100x?xf16> to memref<?x?xf16, strided<[?, 1], offset: ?>>
    vector.transfer_write %cast, %tile[%c0, %c0] {in_bounds = [false, false],
      permutation_map = #feature} : vector<64x64xf16>, memref<?x?xf16, strided<[?, 1], offset: ?>>
    gpu.terminator
  }
  return
}

// -----

func.func @other_write(%out: memref<4xf32>, %perm: memref<4xi32>, %v: f32, %i: index) {
  %c1 = arith.constant 1 : index
  // expected-error @below {{is read or written by more than tiles of a product}}
  %view = nm_tile.permuted_view %out, %perm dim = 0 : memref<4xf32>, memref<4xi32>
  memref.store %v, %view[%i] : memref<4xf32>
  return
}
