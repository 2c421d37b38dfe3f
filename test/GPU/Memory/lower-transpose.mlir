// RUN: nm-opt %s --nm-sparse-lower-transpose | FileCheck %s

// Tokens on grid x; 8 reads and 8 writes of 16 bytes. Rows that are not aligned
// are read in aligned words, which are shifted. A loop for what lies at the
// edges.

// CHECK-DAG: #[[GRID:.*]] = affine_map<()[s0] -> (s0 ceildiv 128)>
// CHECK-LABEL: func @f16
// CHECK-SAME: %[[X:.*]]: memref<?x4096xf16>, %[[T:.*]]: memref<4096x?xf16>
// CHECK: %[[ROWS:.*]] = memref.dim %[[X]]
// CHECK: %[[GX:.*]] = affine.apply #[[GRID]]()[%[[ROWS]]]
// CHECK: gpu.launch {{.*}} in (%{{.*}} = %[[GX]], %{{.*}} = %c32, %{{.*}} = %c1) threads({{.*}}) in (%{{.*}} = %c256, {{.*}} function(@f16_transpose)
// CHECK: scf.if
// CHECK-COUNT-8: vector.load %[[X]]{{.*}} {alignment = 16 : i64} : memref<?x4096xf16>, vector<8xf16>
// CHECK: else
// CHECK-COUNT-16: llvm.load {{.*}} {alignment = 16 : i64} : !llvm.ptr<1> -> vector<4xi32>
// CHECK: llvm.intr.fshr
// CHECK: vector.from_elements
// CHECK-COUNT-8: vector.store {{.*}}, %[[T]]{{.*}} {alignment = 16 : i64}
// CHECK: else
// CHECK: scf.for
// CHECK: scf.for
// CHECK: memref.load %[[X]]
// CHECK: memref.store {{.*}}, %[[T]]
func.func @f16(%x: memref<?x4096xf16>, %t: memref<4096x?xf16>) {
  linalg.transpose ins(%x : memref<?x4096xf16>) outs(%t : memref<4096x?xf16>)
      permutation = [1, 0]
  return
}

// Rows that end in padding: whole blocks, which read the last row again.

// CHECK-LABEL: func @padded
// CHECK: %[[ALL:.*]] = memref.alloc({{.*}}) : memref<4096x?xf16>
// CHECK: gpu.launch
// CHECK: %[[END:.*]] = memref.dim %[[ALL]], %c1
// CHECK: arith.cmpi sle, %{{.*}}, %[[END]]
// CHECK: arith.minsi
// CHECK: vector.store {{.*}}, %[[ALL]]
func.func @padded(%x: memref<?x4096xf16>, %m: index, %p: index)
    -> memref<4096x?xf16, strided<[?, 1]>> {
  %all = memref.alloc(%p) : memref<4096x?xf16>
  %t = memref.subview %all[0, 0] [4096, %m] [1, 1]
      : memref<4096x?xf16> to memref<4096x?xf16, strided<[?, 1]>>
  linalg.transpose ins(%x : memref<?x4096xf16>)
      outs(%t : memref<4096x?xf16, strided<[?, 1]>>) permutation = [1, 0]
  return %t : memref<4096x?xf16, strided<[?, 1]>>
}

// CHECK-LABEL: func @f32_batch
// CHECK: gpu.launch {{.*}} in (%{{.*}} = %c2, %{{.*}} = %c4, %{{.*}} = %c5)
// CHECK-COUNT-4: vector.load {{.*}} vector<4xf32>
func.func @f32_batch(%x: memref<128x5x256xf32>, %t: memref<256x5x128xf32>) {
  linalg.transpose ins(%x : memref<128x5x256xf32>) outs(%t : memref<256x5x128xf32>)
      permutation = [2, 1, 0]
  return
}

// A CTA takes the blocks of many matrices of few rows, one after another: 2 of
// each of 49 pixels of 12 images. Those past the last one do nothing.

// CHECK-LABEL: func @images
// CHECK: gpu.launch {{.*}} in (%{{.*}} = %c7, %{{.*}} = %c1, %{{.*}} = %c1)
// CHECK: %[[BLOCKS:.*]] = arith.ceildivui
// CHECK: %[[PIXEL:.*]] = arith.divui %[[BLOCK:.*]], %[[BLOCKS]] : index
// CHECK: arith.remui %[[BLOCK]], %[[BLOCKS]] : index
// CHECK: %[[PIXELS:.*]] = memref.dim %{{.*}} : memref<12x49x64xf16>
// CHECK: %[[EXISTS:.*]] = arith.cmpi ult, %[[PIXEL]], %[[PIXELS]]
// CHECK: scf.if %[[EXISTS]]
// CHECK-COUNT-8: vector.load {{.*}} vector<8xf16>
func.func @images(%x: memref<12x49x64xf16>, %t: memref<64x49x12xf16>) {
  linalg.transpose ins(%x : memref<12x49x64xf16>) outs(%t : memref<64x49x12xf16>)
      permutation = [2, 1, 0]
  return
}

// What the kernel does not cover stays.

// CHECK-LABEL: func @others
// CHECK-NOT: gpu.launch
// CHECK-COUNT-3: linalg.transpose
func.func @others(%x: memref<8x16xf64>, %xt: memref<16x8xf64>,
    %y: memref<8x4x16xf16>, %yt: memref<16x8x4xf16>,
    %z: memref<8x16xf16, strided<[64, 2]>>, %zt: memref<16x8xf16>) {
  linalg.transpose ins(%x : memref<8x16xf64>) outs(%xt : memref<16x8xf64>)
      permutation = [1, 0]
  linalg.transpose ins(%y : memref<8x4x16xf16>) outs(%yt : memref<16x8x4xf16>)
      permutation = [2, 0, 1]
  linalg.transpose ins(%z : memref<8x16xf16, strided<[64, 2]>>)
      outs(%zt : memref<16x8xf16>) permutation = [1, 0]
  return
}

// 16 x 16 elements of 8 bits.

// CHECK-LABEL: func @i8
// CHECK: gpu.launch {{.*}} function(@i8_transpose)
// CHECK-COUNT-16: vector.load {{.*}} {alignment = 16 : i64} : memref<4096x?xi8>, vector<16xi8>
// CHECK: else
// CHECK-COUNT-32: llvm.load {{.*}} -> vector<4xi32>
// CHECK: vector.bitcast {{.*}} : vector<4xi32> to vector<16xi8>
// CHECK-COUNT-16: vector.store {{.*}} {alignment = 16 : i64} : memref<?x4096xi8>, vector<16xi8>
func.func @i8(%x: memref<4096x?xi8>, %t: memref<?x4096xi8>) {
  linalg.transpose ins(%x : memref<4096x?xi8>) outs(%t : memref<?x4096xi8>)
      permutation = [1, 0]
  return
}
