// RUN: nm-opt %s --convert-nm-sparse-to-nvgpu --split-input-file | FileCheck %s

#w = #nm_sparse.encoding<2:4, block = [1, 8]>
#s = #nm_sparse.schedule<simt, tile = [32, 32, 2], warps = [1, 1], stages = 2, split_k = 1,
                         operands = unpacked, index = staged>

// 4 x 8 elements a thread, 4 kept rows: for each, two reads of the weight, and
// one index and one read of x for the panel that the eight outputs share.

// CHECK-LABEL: func @panel
// CHECK-COUNT-2: vector.load %{{.*}} : memref<4x32xf32, 3>, vector<4xf32>
// CHECK: memref.load %{{.*}} : memref<4x4xi8, 3>
// CHECK: vector.load %{{.*}} : memref<8x32xf32, 3>, vector<4xf32>
// CHECK-COUNT-32: math.fma
// CHECK: vector.load %{{.*}} : memref<4x32xf32, 3>, vector<4xf32>
// CHECK-COUNT-96: math.fma
// CHECK-NOT: math.fma
// CHECK-NOT: nm_sparse.
func.func @panel(%x: memref<8x32xf32, 3>, %v: memref<4x32xf32, 3>, %i: memref<4x4xi8, 3>,
                 %out: memref<?x100xf32>, %m: index) {
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c32, %sy = %c1, %sz = %c1) {
    %c0 = arith.constant 0 : index
    %zero = arith.constant dense<0.0> : vector<32x32xf32>
    %r = nm_sparse.tile_matmul #w schedule = #s
      ins(%x, %v : memref<8x32xf32, 3>, memref<4x32xf32, 3>) index(%i : memref<4x4xi8, 3>)
      acc(%zero : vector<32x32xf32>) -> vector<32x32xf32>
    vector.transfer_write %r, %out[%m, %c0] {in_bounds = [false, true]}
      : vector<32x32xf32>, memref<?x100xf32>
    gpu.terminator
  }
  return
}

// -----

#w = #nm_sparse.encoding<2:4>
#s = #nm_sparse.schedule<simt, tile = [8, 4, 2], warps = [1, 1], stages = 2, split_k = 1,
                         operands = unpacked, index = staged>

// Where the whole tile exists its elements are written without tests, else each
// that exists.

// CHECK-LABEL: func @guarded
// CHECK: scf.if
// CHECK-NOT: scf.if
// CHECK: memref.store
// CHECK: else
// CHECK: scf.if
// CHECK-NEXT: memref.store
func.func @guarded(%x: memref<8x8xf32, 3>, %v: memref<4x4xf32, 3>, %i: memref<4x4xi8, 3>,
                   %out: memref<?x3xf32>, %m: index) {
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c32, %sy = %c1, %sz = %c1) {
    %c0 = arith.constant 0 : index
    %zero = arith.constant dense<0.0> : vector<8x4xf32>
    %r = nm_sparse.tile_matmul #w schedule = #s
      ins(%x, %v : memref<8x8xf32, 3>, memref<4x4xf32, 3>) index(%i : memref<4x4xi8, 3>)
      acc(%zero : vector<8x4xf32>) -> vector<8x4xf32>
    vector.transfer_write %r, %out[%m, %c0] : vector<8x4xf32>, memref<?x3xf32>
    gpu.terminator
  }
  return
}
