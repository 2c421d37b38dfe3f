// RUN: nm-opt %s --nm-sparse-lay-out-accumulators --convert-nm-tile-to-threads --split-input-file | FileCheck %s

#w = #nm_sparse.encoding<8:32, block = [1, 64]>
#s = #nm_tile.schedule<tile = [64, 256, 32], product = wgmma<warps = [1, 8]>, transfers = {x = gather, values = copy, index = resident}, pipeline = async_groups<stages = 2>, grid = flat>

// Two warpgroups of two 64 x 64 products over 32 kept rows, that is, two k16
// steps. Each product of a step has a panel, and so rows of x, of its own.
// The threads' copies are made visible first; the accumulators are read last.

// CHECK-LABEL: func @panels
// CHECK: nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.shared>, space = #nvvm.shared_space<cta>}
// CHECK: nvvm.wgmma.fence.aligned
// CHECK-COUNT-4: nvvm.wgmma.mma_async {{.*}} <m = 64, n = 64, k = 16>, D[<f32>, <one>], A[<f16>, <one>, <col>], B[<f16>, <one>, <row>] : !llvm.struct<
// CHECK-NOT: nvvm.wgmma.mma_async
// CHECK: nvvm.wgmma.commit.group.sync.aligned
// CHECK-NEXT: nvvm.wgmma.wait.group.sync.aligned 0
// CHECK-COUNT-64: llvm.extractvalue
func.func @panels(%x: memref<128x64xf16, #nm_tile.shared<swizzled_blocks>>, %v: memref<32x256xf16, #nm_tile.shared<swizzled_blocks>>, %out: memref<256x64xf32>) {
  %c1 = arith.constant 1 : index
  %c256 = arith.constant 256 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c256, %sy = %c1, %sz = %c1) {
    %c0 = arith.constant 0 : index
    %zero = arith.constant dense<0.0> : vector<64x256xf32>
    %r = nm_tile.matmul #w schedule = #s condensed tokens_contiguous
      ins(%x, %v : memref<128x64xf16, #nm_tile.shared<swizzled_blocks>>, memref<32x256xf16, #nm_tile.shared<swizzled_blocks>>)
      acc(%zero : vector<64x256xf32>) -> vector<64x256xf32>
    vector.transfer_write %r, %out[%c0, %c0] {in_bounds = [true, true],
      permutation_map = affine_map<(n, m) -> (m, n)>} : vector<64x256xf32>, memref<256x64xf32>
    gpu.terminator
  }
  return
}

// -----

#w = #nm_sparse.encoding<8:32, block = [1, 128]>
#s = #nm_tile.schedule<tile = [128, 64, 16], product = wgmma<warps = [1, 4]>, transfers = {x = gather, values = copy, index = resident}, pipeline = async_groups<stages = 2>, grid = flat>

// A tile that products read lies in blocks of 64 columns, one after the other;
// the words of a row are exchanged within its block.

// CHECK-LABEL: func @blocks
// CHECK: memref.reinterpret_cast %{{.*}} to offset: [{{.*}}], sizes: [2, 16, 64], strides: [1024, 64, 1]
// CHECK: %[[COLUMN:.*]] = arith.muli %{{.*}}, %{{c8.*}} : index
// CHECK: %[[ROW8:.*]] = arith.remui %[[ROW:.*]], %{{c8.*}} : index
// CHECK: %[[KEY:.*]] = arith.muli %[[ROW8]], %{{c8.*}} : index
// CHECK: %[[BLOCK:.*]] = arith.divui %[[COLUMN]], %{{c64.*}} : index
// CHECK: %[[INNER:.*]] = arith.remui %[[COLUMN]], %{{c64.*}} : index
// CHECK: %[[WORD:.*]] = arith.xori %[[INNER]], %[[KEY]] : index
// CHECK: nvgpu.device_async_copy {{.*}}[%[[BLOCK]], %[[ROW]], %[[WORD]]], 8 {bypassL1}
func.func @blocks(%src: memref<16x128xf16>, %x: memref<16x128xf16, #nm_tile.shared<swizzled_blocks>>, %v: memref<16x64xf16, #nm_tile.shared<swizzled_blocks>>,
                  %out: memref<64x128xf32>) {
  %c1 = arith.constant 1 : index
  %c128 = arith.constant 128 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c128, %sy = %c1, %sz = %c1) {
    %c0 = arith.constant 0 : index
    %zero = arith.constant dense<0.0> : vector<128x64xf32>
    nm_tile.async_copy ins(%src : memref<16x128xf16>) outs(%x : memref<16x128xf16, #nm_tile.shared<swizzled_blocks>>)
    %r = nm_tile.matmul #w schedule = #s condensed tokens_contiguous
      ins(%x, %v : memref<16x128xf16, #nm_tile.shared<swizzled_blocks>>, memref<16x64xf16, #nm_tile.shared<swizzled_blocks>>)
      acc(%zero : vector<128x64xf32>) -> vector<128x64xf32>
    vector.transfer_write %r, %out[%c0, %c0] {in_bounds = [true, true],
      permutation_map = affine_map<(n, m) -> (m, n)>} : vector<128x64xf32>, memref<64x128xf32>
    gpu.terminator
  }
  return
}

// -----

#w = #nm_sparse.encoding<8:32, block = [1, 128]>
#s = #nm_tile.schedule<tile = [128, 256, 32], product = wgmma<warps = [1, 8]>, transfers = {x = gather, values = copy, index = resident}, pipeline = async_groups<stages = 2>, grid = flat>

// For a token-major result tokens are the rows: two products of 64 tokens and
// the 128 outputs of a panel for each of two k16 steps, and a thread stores 8
// neighbouring outputs.

// CHECK-LABEL: func @token_major_result
// CHECK-COUNT-4: nvvm.wgmma.mma_async {{.*}} <m = 64, n = 128, k = 16>, D[<f32>, <one>], A[<f16>, <one>, <col>], B[<f16>, <one>, <row>] : !llvm.struct<
// CHECK-NOT: nvvm.wgmma.mma_async
// CHECK: gpu.shuffle xor
// CHECK: vector.store {{.*}} : memref<128x256xf16>, vector<8xf16>
func.func @token_major_result(%x: memref<64x128xf16, #nm_tile.shared<swizzled_blocks>>, %v: memref<32x256xf16, #nm_tile.shared<swizzled_blocks>>, %out: memref<128x256xf16>) {
  %c1 = arith.constant 1 : index
  %c256 = arith.constant 256 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c256, %sy = %c1, %sz = %c1) {
    %c0 = arith.constant 0 : index
    %zero = arith.constant dense<0.0> : vector<128x256xf32>
    %r = nm_tile.matmul #w schedule = #s condensed
      ins(%x, %v : memref<64x128xf16, #nm_tile.shared<swizzled_blocks>>, memref<32x256xf16, #nm_tile.shared<swizzled_blocks>>)
      acc(%zero : vector<128x256xf32>) -> vector<128x256xf32>
    %h = arith.truncf %r : vector<128x256xf32> to vector<128x256xf16>
    vector.transfer_write %h, %out[%c0, %c0] {in_bounds = [true, true]}
      : vector<128x256xf16>, memref<128x256xf16>
    gpu.terminator
  }
  return
}

// -----

#w = #nm_sparse.encoding<8:32, block = [1, 256]>
#s = #nm_tile.schedule<tile = [128, 256, 32], product = wgmma<warps = [2, 4]>, transfers = {x = gather, values = copy, index = resident}, pipeline = async_groups<stages = 2>, grid = flat>

// Tokens are the rows of one product of a panel's 256 outputs for each of two
// k16 steps, also for a feature-major result, which the warps transpose: 64
// words of a thread, each stored at an address that is a fixed distance from
// another's. A tile at the edge is written element by element.

// CHECK-LABEL: func @transposed_result
// CHECK-COUNT-2: nvvm.wgmma.mma_async {{.*}} <m = 64, n = 256, k = 16>, D[<f32>, <one>], A[<f16>, <one>, <col>], B[<f16>, <one>, <row>] : !llvm.struct<
// CHECK-NOT: nvvm.wgmma.mma_async
// CHECK: scf.if
// CHECK: %[[TWO:.*]] = vector.from_elements %{{.*}}, %{{.*}} : vector<2xf32>
// CHECK: %[[PAIR:.*]] = arith.truncf %[[TWO]] : vector<2xf32> to vector<2xf16>
// CHECK: %[[CAST:.*]] = vector.bitcast %[[PAIR]] : vector<2xf16> to vector<1xi32>
// CHECK: %[[WORD:.*]] = vector.extract %[[CAST]][0]
// CHECK: llvm.inline_asm {{.*}} "movmatrix.sync.aligned.m8n8.trans.b16 $0, $1;", "=r,r" %[[WORD]]
// CHECK: llvm.store %{{.*}}, %[[FIRST:.*]] {alignment = 4 : i64} : vector<2xf16>, !llvm.ptr<1>
// CHECK: movmatrix
// CHECK: %[[NEXT:.*]] = llvm.getelementptr %[[FIRST]][%{{.*}}] : {{.*}}, i8
// CHECK: llvm.store %{{.*}}, %[[NEXT]] {alignment = 4 : i64}
// CHECK-COUNT-62: movmatrix
// CHECK-NOT: movmatrix
// CHECK: } else {
// CHECK-COUNT-128: memref.store {{.*}} : memref<256x?xf16
func.func @transposed_result(%x: memref<32x128xf16, #nm_tile.shared<swizzled_blocks>>, %v: memref<32x256xf16, #nm_tile.shared<swizzled_blocks>>, %out: memref<256x?xf16>) {
  %c1 = arith.constant 1 : index
  %c256 = arith.constant 256 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c256, %sy = %c1, %sz = %c1) {
    %c0 = arith.constant 0 : index
    %zero = arith.constant dense<0.0> : vector<128x256xf32>
    %r = nm_tile.matmul #w schedule = #s condensed
      ins(%x, %v : memref<32x128xf16, #nm_tile.shared<swizzled_blocks>>, memref<32x256xf16, #nm_tile.shared<swizzled_blocks>>)
      acc(%zero : vector<128x256xf32>) -> vector<128x256xf32>
    %h = arith.truncf %r : vector<128x256xf32> to vector<128x256xf16>
    vector.transfer_write %h, %out[%c0, %c0] {in_bounds = [false, true],
      permutation_map = affine_map<(n, m) -> (m, n)>} : vector<128x256xf16>, memref<256x?xf16>
    gpu.terminator
  }
  return
}

// -----

#w = #nm_sparse.encoding<8:32, block = [8, 64]>
#s = #nm_tile.schedule<tile = [64, 128, 64], product = wgmma<warps = [1, 4]>, transfers = {x = gather, values = copy, index = resident}, pipeline = async_groups<stages = 2>, grid = flat>

// A token-major x is read along its rows: as the rows of a product for a
// token-major result, as its columns for a feature-major one. Each product has
// a panel, 64 tokens x 128 bytes from the last, and a k16 step is 32 bytes.

// CHECK-LABEL: func @x_by_rows
// CHECK-COUNT-8: nvvm.wgmma.mma_async {{.*}} <m = 64, n = 64, k = 16>, D[<f32>, <one>], A[<f16>, <one>, <row>], B[<f16>, <one>, <row>] : !llvm.struct<
// CHECK-NOT: nvvm.wgmma.mma_async
func.func @x_by_rows(%x: memref<64x128xf16, #nm_tile.shared<swizzled_blocks>>, %v: memref<64x128xf16, #nm_tile.shared<swizzled_blocks>>, %out: memref<64x128xf32>) {
  %c1 = arith.constant 1 : index
  %c128 = arith.constant 128 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c128, %sy = %c1, %sz = %c1) {
    %c0 = arith.constant 0 : index
    %zero = arith.constant dense<0.0> : vector<64x128xf32>
    %r = nm_tile.matmul #w schedule = #s condensed indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>]
      ins(%x, %v : memref<64x128xf16, #nm_tile.shared<swizzled_blocks>>, memref<64x128xf16, #nm_tile.shared<swizzled_blocks>>)
      acc(%zero : vector<64x128xf32>) -> vector<64x128xf32>
    vector.transfer_write %r, %out[%c0, %c0] {in_bounds = [true, true]}
      : vector<64x128xf32>, memref<64x128xf32>
    gpu.terminator
  }
  return
}

// CHECK-LABEL: func @x_by_columns
// CHECK-COUNT-8: nvvm.wgmma.mma_async {{.*}} <m = 64, n = 64, k = 16>, D[<f32>, <one>], A[<f16>, <one>, <col>], B[<f16>, <one>, <col>] : !llvm.struct<
// CHECK-NOT: nvvm.wgmma.mma_async
func.func @x_by_columns(%x: memref<64x128xf16, #nm_tile.shared<swizzled_blocks>>, %v: memref<64x128xf16, #nm_tile.shared<swizzled_blocks>>, %out: memref<128x64xf32>) {
  %c1 = arith.constant 1 : index
  %c128 = arith.constant 128 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c128, %sy = %c1, %sz = %c1) {
    %c0 = arith.constant 0 : index
    %zero = arith.constant dense<0.0> : vector<64x128xf32>
    %r = nm_tile.matmul #w schedule = #s condensed indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>] tokens_contiguous
      ins(%x, %v : memref<64x128xf16, #nm_tile.shared<swizzled_blocks>>, memref<64x128xf16, #nm_tile.shared<swizzled_blocks>>)
      acc(%zero : vector<64x128xf32>) -> vector<64x128xf32>
    vector.transfer_write %r, %out[%c0, %c0] {in_bounds = [true, true],
      permutation_map = affine_map<(n, m) -> (m, n)>} : vector<64x128xf32>, memref<128x64xf32>
    gpu.terminator
  }
  return
}
