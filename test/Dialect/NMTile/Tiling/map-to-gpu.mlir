// RUN: nm-opt %s --nm-sparse-map-to-gpu --split-input-file --verify-diagnostics | FileCheck %s

#w = #nm_sparse.encoding<8:32, block = [1, 128]>
#s = #nm_tile.schedule<tile = [128, 128, 32], product = mma<warps = [2, 2]>, transfers = {x = gather, values = copy, index = resident}, pipeline = async_groups<stages = 3>, grid = flat>

// The grid follows the mapping, not the order of the loops. Without tokens it is
// empty. Constants are cloned in, host values stay.

// CHECK-DAG: #[[GRID:.*]] = affine_map<()[s0] -> (s0 ceildiv 128)>
// CHECK-DAG: #[[STEP:.*]] = affine_map<()[s0] -> (s0 * 128)>
// CHECK-LABEL: func @launch
// CHECK-SAME: %[[TOKENS:[a-z0-9]*]]: index
// CHECK-DAG: %[[X:.*]] = affine.apply #[[GRID]]()[%[[TOKENS]]]
// CHECK-DAG: %[[Y:.*]] = arith.constant 32 : index
// CHECK-DAG: %[[Z:.*]] = arith.constant 5 : index
// CHECK-DAG: %[[THREADS:.*]] = arith.constant 128 : index
// CHECK: gpu.launch blocks(%[[BX:.*]], %[[BY:.*]], %[[BZ:.*]]) in (%{{.*}} = %[[X]], %{{.*}} = %[[Y]], %{{.*}} = %[[Z]]) threads(%{{.*}}, %{{.*}}, %{{.*}}) in (%{{.*}} = %[[THREADS]],
// CHECK-DAG: arith.constant 0 : index
// CHECK-DAG: %[[N:.*]] = affine.apply #[[STEP]]()[%[[BY]]]
// CHECK-DAG: %[[M:.*]] = affine.apply #[[STEP]]()[%[[BX]]]
// CHECK: nm_tile.matmul
// CHECK: memref.subview %{{.*}}[%[[BZ]], %[[N]], %[[M]]]
// CHECK: gpu.terminator
// CHECK-NOT: scf.forall
func.func @launch(%xs: memref<32x128xf16, #nm_tile.shared<swizzled_rows>>, %vs: memref<32x128xf16, #nm_tile.shared<swizzled_rows>>,
                  %out: memref<5x4096x?xf32>, %tokens: index) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant dense<0.0> : vector<128x128xf32>
  scf.forall (%b, %n, %m) = (0, 0, 0) to (5, 4096, %tokens) step (1, 128, 128) {
    %sum = nm_tile.matmul #w schedule = #s condensed
      ins(%xs, %vs : memref<32x128xf16, #nm_tile.shared<swizzled_rows>>, memref<32x128xf16, #nm_tile.shared<swizzled_rows>>)
      acc(%zero : vector<128x128xf32>) -> vector<128x128xf32>
    %o = memref.subview %out[%b, %n, %m] [1, 128, 128] [1, 1, 1]
      : memref<5x4096x?xf32> to memref<1x128x128xf32, strided<[?, ?, 1], offset: ?>>
    vector.transfer_write %sum, %o[%c0, %c0, %c0] {in_bounds = [true, true]}
      : vector<128x128xf32>, memref<1x128x128xf32, strided<[?, ?, 1], offset: ?>>
  } {mapping = [#gpu.block<z>, #gpu.block<y>, #gpu.block<x>]}
  return
}

// Without batches, it is empty, too.

// CHECK-LABEL: func @batches
// CHECK-SAME: %[[BATCHES:[a-z0-9]*]]: index
// CHECK: gpu.launch blocks(%{{.*}}) in (%{{.*}} = %{{.*}}, %{{.*}} = %{{.*}}, %{{.*}} = %[[BATCHES]])
func.func @batches(%xs: memref<32x128xf16, #nm_tile.shared<swizzled_rows>>, %vs: memref<32x128xf16, #nm_tile.shared<swizzled_rows>>,
                   %out: memref<?x4096x128xf32>, %batches: index) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant dense<0.0> : vector<128x128xf32>
  scf.forall (%b, %n) = (0, 0) to (%batches, 4096) step (1, 128) {
    %sum = nm_tile.matmul #w schedule = #s condensed
      ins(%xs, %vs : memref<32x128xf16, #nm_tile.shared<swizzled_rows>>, memref<32x128xf16, #nm_tile.shared<swizzled_rows>>)
      acc(%zero : vector<128x128xf32>) -> vector<128x128xf32>
    %o = memref.subview %out[%b, %n, 0] [1, 128, 128] [1, 1, 1]
      : memref<?x4096x128xf32> to memref<1x128x128xf32, strided<[524288, 128, 1], offset: ?>>
    vector.transfer_write %sum, %o[%c0, %c0, %c0] {in_bounds = [true, true]}
      : vector<128x128xf32>, memref<1x128x128xf32, strided<[524288, 128, 1], offset: ?>>
  } {mapping = [#gpu.block<z>, #gpu.block<y>]}
  return
}

// A loop over something else is not ours.

// CHECK-LABEL: func @other
// CHECK: scf.forall
func.func @other(%m: memref<8xf32>) {
  %zero = arith.constant 0.0 : f32
  scf.forall (%i) in (8) {
    memref.store %zero, %m[%i] : memref<8xf32>
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

#w = #nm_sparse.encoding<8:32, block = [1, 128]>
#s = #nm_tile.schedule<tile = [128, 128, 32], product = mma<warps = [2, 2]>, transfers = {x = gather, values = copy, index = resident}, pipeline = async_groups<stages = 3>, grid = flat>

func.func @grid_too_large(%xs: memref<32x128xf16, #nm_tile.shared<swizzled_rows>>, %vs: memref<32x128xf16, #nm_tile.shared<swizzled_rows>>) {
  %zero = arith.constant dense<0.0> : vector<128x128xf32>
  // expected-error @+1 {{needs 65536 CTA tiles in grid dimension y, at most 65535 can be launched; use a larger tile in the schedule}}
  scf.forall (%m, %n) = (0, 0) to (128, 8388608) step (128, 128) {
    %sum = nm_tile.matmul #w schedule = #s condensed
      ins(%xs, %vs : memref<32x128xf16, #nm_tile.shared<swizzled_rows>>, memref<32x128xf16, #nm_tile.shared<swizzled_rows>>)
      acc(%zero : vector<128x128xf32>) -> vector<128x128xf32>
  } {mapping = [#gpu.block<x>, #gpu.block<y>]}
  return
}

// -----

#w = #nm_sparse.encoding<8:32, block = [1, 128]>
#s = #nm_tile.schedule<tile = [128, 128, 32], product = mma<warps = [2, 2]>, transfers = {x = gather, values = copy, index = resident}, pipeline = async_groups<stages = 3>, grid = flat>

func.func @mapping(%xs: memref<32x128xf16, #nm_tile.shared<swizzled_rows>>, %vs: memref<32x128xf16, #nm_tile.shared<swizzled_rows>>) {
  %zero = arith.constant dense<0.0> : vector<128x128xf32>
  // expected-error @+1 {{over CTA tiles has mapping #gpu.thread<x>; legal are #gpu.block<x>, <y> and <z>, once each}}
  scf.forall (%m) = (0) to (128) step (128) {
    %sum = nm_tile.matmul #w schedule = #s condensed
      ins(%xs, %vs : memref<32x128xf16, #nm_tile.shared<swizzled_rows>>, memref<32x128xf16, #nm_tile.shared<swizzled_rows>>)
      acc(%zero : vector<128x128xf32>) -> vector<128x128xf32>
  } {mapping = [#gpu.thread<x>]}
  return
}

// -----

#w = #nm_sparse.encoding<8:32, block = [1, 128]>
#s = #nm_tile.schedule<tile = [128, 128, 32], product = mma<warps = [2, 2]>, transfers = {x = gather, values = copy, index = resident}, pipeline = async_groups<stages = 3>, grid = flat>

func.func @unmapped(%xs: memref<32x128xf16, #nm_tile.shared<swizzled_rows>>, %vs: memref<32x128xf16, #nm_tile.shared<swizzled_rows>>) {
  %zero = arith.constant dense<0.0> : vector<128x128xf32>
  // expected-error @+1 {{over CTA tiles must map each of its 1 loops to #gpu.block, got 0}}
  scf.forall (%m) = (0) to (128) step (128) {
    %sum = nm_tile.matmul #w schedule = #s condensed
      ins(%xs, %vs : memref<32x128xf16, #nm_tile.shared<swizzled_rows>>, memref<32x128xf16, #nm_tile.shared<swizzled_rows>>)
      acc(%zero : vector<128x128xf32>) -> vector<128x128xf32>
  }
  return
}

// -----

#w = #nm_sparse.encoding<8:32, block = [1, 128]>
#s = #nm_tile.schedule<tile = [128, 128, 32], product = mma<warps = [2, 2]>, transfers = {x = gather, values = copy, index = resident}, pipeline = async_groups<stages = 3>, grid = flat>

func.func @tensors(%xs: tensor<32x128xf16>, %vs: tensor<32x128xf16>,
                   %out: tensor<128x128xf32>) -> tensor<128x128xf32> {
  %zero = arith.constant dense<0.0> : vector<128x128xf32>
  // expected-error @+1 {{has tensor results; run --nm-sparse-bufferize before --nm-sparse-map-to-gpu}}
  %r = scf.forall (%m) = (0) to (128) step (128) shared_outs(%o = %out) -> (tensor<128x128xf32>) {
    %sum = nm_tile.matmul #w schedule = #s condensed
      ins(%xs, %vs : tensor<32x128xf16>, tensor<32x128xf16>)
      acc(%zero : vector<128x128xf32>) -> vector<128x128xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %out into %o[0, 0] [128, 128] [1, 1] : tensor<128x128xf32> into tensor<128x128xf32>
    }
  } {mapping = [#gpu.block<x>]}
  return %r : tensor<128x128xf32>
}
