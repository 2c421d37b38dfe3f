// RUN: nm-opt %s --nm-sparse-lay-out-accumulators --convert-nm-tile-to-threads | FileCheck %s

#w = #nm_sparse.encoding<8:32, block = [1, 256]>
#s = #nm_tile.schedule<tile = [128, 256, 32], product = wgmma<warps = [1, 8]>, transfers = {x = gather, values = copy, index = resident}, pipeline = async_groups<stages = 2>, grid = flat>

// A thread has pairs of tokens, which are no neighbours in this residual: warps
// transpose words of two outputs each. Where the tile has fewer tokens, words that
// do not exist are read at the tile's first element, without branches, and not
// written.

// CHECK-LABEL: func @residual
// CHECK: scf.if %{{.*}} {
// CHECK-COUNT-64: llvm.load {{.*}} : !llvm.ptr<1> -> i32
// CHECK-NOT: llvm.load
// CHECK: movmatrix
// CHECK-NOT: llvm.load
// CHECK: } else {
// CHECK: %[[OWN:.*]] = llvm.inttoptr
// CHECK: %[[FIRST:.*]] = llvm.inttoptr
// CHECK: %[[AT:.*]] = arith.select %{{.*}}, %[[OWN]], %[[FIRST]] : !llvm.ptr<1>
// CHECK-NEXT: %[[READ:.*]] = llvm.load %[[AT]]
// CHECK-COUNT-31: llvm.load {{.*}} : !llvm.ptr<1> -> i32
// CHECK-NOT: llvm.load
// CHECK: arith.select %{{.*}}, %[[READ]], %{{.*}} : i32
// CHECK: scf.if
// CHECK-NEXT: llvm.store {{.*}} : vector<2xf16>
func.func @residual(%x: memref<32x128xf16, #nm_tile.shared<swizzled_blocks>>, %v: memref<32x256xf16, #nm_tile.shared<swizzled_blocks>>,
                    %r: memref<?x256xf16>, %out: memref<?x256xf16>) {
  %c1 = arith.constant 1 : index
  %c256 = arith.constant 256 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c256, %sy = %c1, %sz = %c1) {
    %c0 = arith.constant 0 : index
    %pad = arith.constant 0.0 : f16
    %zero = arith.constant dense<0.0> : vector<128x256xf32>
    %acc = nm_tile.matmul #w schedule = #s condensed tokens_contiguous
      ins(%x, %v : memref<32x128xf16, #nm_tile.shared<swizzled_blocks>>, memref<32x256xf16, #nm_tile.shared<swizzled_blocks>>)
      acc(%zero : vector<128x256xf32>) -> vector<128x256xf32>
    %read = vector.transfer_read %r[%c0, %c0], %pad {in_bounds = [false, true]}
      : memref<?x256xf16>, vector<128x256xf16>
    %wide = arith.extf %read : vector<128x256xf16> to vector<128x256xf32>
    %sum = arith.addf %acc, %wide : vector<128x256xf32>
    %cast = arith.truncf %sum : vector<128x256xf32> to vector<128x256xf16>
    vector.transfer_write %cast, %out[%c0, %c0] {in_bounds = [false, true]}
      : vector<128x256xf16>, memref<?x256xf16>
    gpu.terminator
  }
  return
}

// Elements of 32 bits, or of an odd number of outputs, are read one by one. Where the
// tile has fewer tokens, reads are of tokens that exist, without branches, 16 ahead
// of the first store that needs them.

// CHECK-LABEL: func @wide_residual
// CHECK: scf.if %{{.*}} {
// CHECK-COUNT-128: memref.load {{.*}} : memref<?x256xf32>
// CHECK: } else {
// CHECK: %[[LAST:.*]] = arith.subi %{{.*}}, %{{.*}} : index
// CHECK: %[[AT:.*]] = arith.minsi %{{.*}}, %[[LAST]]
// CHECK: %[[READ:.*]] = memref.load %{{.*}}[%[[AT]], %{{.*}}] : memref<?x256xf32>
// CHECK: arith.select %{{.*}}, %[[READ]], %{{.*}} : f32
// CHECK-COUNT-15: memref.load {{.*}} : memref<?x256xf32>
// CHECK-NOT: memref.load
// CHECK: scf.if
// CHECK-NEXT: memref.store
func.func @wide_residual(%x: memref<32x128xf16, #nm_tile.shared<swizzled_blocks>>, %v: memref<32x256xf16, #nm_tile.shared<swizzled_blocks>>,
                    %r: memref<?x256xf32>, %out: memref<?x256xf16>) {
  %c1 = arith.constant 1 : index
  %c256 = arith.constant 256 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c256, %sy = %c1, %sz = %c1) {
    %c0 = arith.constant 0 : index
    %pad = arith.constant 0.0 : f32
    %zero = arith.constant dense<0.0> : vector<128x256xf32>
    %acc = nm_tile.matmul #w schedule = #s condensed tokens_contiguous
      ins(%x, %v : memref<32x128xf16, #nm_tile.shared<swizzled_blocks>>, memref<32x256xf16, #nm_tile.shared<swizzled_blocks>>)
      acc(%zero : vector<128x256xf32>) -> vector<128x256xf32>
    %read = vector.transfer_read %r[%c0, %c0], %pad {in_bounds = [false, true]}
      : memref<?x256xf32>, vector<128x256xf32>
    %sum = arith.addf %acc, %read : vector<128x256xf32>
    %cast = arith.truncf %sum : vector<128x256xf32> to vector<128x256xf16>
    vector.transfer_write %cast, %out[%c0, %c0] {in_bounds = [false, true]}
      : vector<128x256xf16>, memref<?x256xf16>
    gpu.terminator
  }
  return
}

// CHECK-LABEL: func @odd_residual
// CHECK: %[[AT:.*]] = arith.minsi %{{.*}}, %{{.*}}
// CHECK: %[[READ:.*]] = memref.load %{{.*}}[%[[AT]], %{{.*}}] : memref<?x255xf16>
// CHECK: arith.select %{{.*}}, %[[READ]], %{{.*}} : f16
// CHECK-COUNT-15: memref.load {{.*}} : memref<?x255xf16>
// CHECK-NOT: memref.load
// CHECK: scf.if
// CHECK-NEXT: memref.store
func.func @odd_residual(%x: memref<32x128xf16, #nm_tile.shared<swizzled_blocks>>, %v: memref<32x256xf16, #nm_tile.shared<swizzled_blocks>>,
                    %r: memref<?x255xf16>, %out: memref<?x255xf16>) {
  %c1 = arith.constant 1 : index
  %c256 = arith.constant 256 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c256, %sy = %c1, %sz = %c1) {
    %c0 = arith.constant 0 : index
    %pad = arith.constant 0.0 : f16
    %zero = arith.constant dense<0.0> : vector<128x256xf32>
    %acc = nm_tile.matmul #w schedule = #s condensed tokens_contiguous
      ins(%x, %v : memref<32x128xf16, #nm_tile.shared<swizzled_blocks>>, memref<32x256xf16, #nm_tile.shared<swizzled_blocks>>)
      acc(%zero : vector<128x256xf32>) -> vector<128x256xf32>
    %read = vector.transfer_read %r[%c0, %c0], %pad {in_bounds = [false, false]}
      : memref<?x255xf16>, vector<128x256xf16>
    %wide = arith.extf %read : vector<128x256xf16> to vector<128x256xf32>
    %sum = arith.addf %acc, %wide : vector<128x256xf32>
    %cast = arith.truncf %sum : vector<128x256xf32> to vector<128x256xf16>
    vector.transfer_write %cast, %out[%c0, %c0] {in_bounds = [false, false]}
      : vector<128x256xf16>, memref<?x255xf16>
    gpu.terminator
  }
  return
}
