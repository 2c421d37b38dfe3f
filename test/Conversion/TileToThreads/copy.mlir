// RUN: nm-opt %s --nm-sparse-lay-out-accumulators --convert-nm-tile-to-threads --split-input-file | FileCheck %s

// Copies and gathers: 16 bytes a thread under an alignment test, one element
// otherwise; rows and tokens that do not exist are filled with zeros.

#w = #nm_sparse.encoding<8:32, block = [1, 128]>
#s = #nm_tile.schedule<tile = [128, 128, 32], product = mma<warps = [2, 2]>, transfers = {x = gather, values = copy, index = resident}, pipeline = async_groups<stages = 3>, grid = flat>
#ws = #gpu.address_space<workgroup>

// CHECK-LABEL: func @gather
func.func @gather(%x: memref<128x?xf16, strided<[?, 1], offset: ?>>,
                  %v: memref<32x128xf16, strided<[4096, 1], offset: ?>>,
                  %i: memref<32x1xi8, #ws>, %y: memref<128x128xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c128 = arith.constant 128 : index
  gpu.launch blocks(%bx, %by, %bz) in (%g0 = %c1, %g1 = %c1, %g2 = %c1)
             threads(%tx, %ty, %tz) in (%b0 = %c128, %b1 = %c1, %b2 = %c1) {
    %zero = arith.constant dense<0.0> : vector<128x128xf32>
    %xs = memref.alloc() : memref<32x128xf16, #nm_tile.shared<swizzled_rows>>
    %vs = memref.alloc() : memref<32x128xf16, #nm_tile.shared<swizzled_rows>>
    // The gather reads a position of the index for each row, and gives cp.async
    // the number of tokens that exist.
    // CHECK: scf.if
    // CHECK: memref.load {{.*}} : memref<32x1xi8, #gpu.address_space<workgroup>>
    // CHECK: arith.xori
    // CHECK: nvgpu.device_async_copy {{.*}}, 8, %{{.*}} {bypassL1}
    // CHECK: } else {
    // CHECK: llvm.inline_asm has_side_effects "mov.u32 $0, %tid.x;"
    // CHECK-NOT: device_async_copy
    // CHECK: memref.store
    nm_tile.async_gather #w
      ins(%x, %i : memref<128x?xf16, strided<[?, 1], offset: ?>>,
                   memref<32x1xi8, #ws>)
      outs(%xs : memref<32x128xf16, #nm_tile.shared<swizzled_rows>>)
    // The values fill their tile: nothing is tested.
    // CHECK: scf.if
    // CHECK: nvgpu.device_async_copy {{.*}}, 8 {bypassL1}
    nm_tile.async_copy
      ins(%v : memref<32x128xf16, strided<[4096, 1], offset: ?>>)
      outs(%vs : memref<32x128xf16, #nm_tile.shared<swizzled_rows>>)
    %r = nm_tile.matmul #w schedule = #s condensed
      ins(%xs, %vs : memref<32x128xf16, #nm_tile.shared<swizzled_rows>>, memref<32x128xf16, #nm_tile.shared<swizzled_rows>>)
      acc(%zero : vector<128x128xf32>) -> vector<128x128xf32>
    vector.transfer_write %r, %y[%c0, %c0] {in_bounds = [true, true]}
      : vector<128x128xf32>, memref<128x128xf32>
    gpu.terminator
  }
  return
}

// -----

#w = #nm_sparse.encoding<8:32, block = [1, 32]>
#s = #nm_tile.schedule<tile = [64, 32, 16], product = simt<warps = [2, 1]>, transfers = {x = copy, values = copy, index = staged}, pipeline = async_groups<stages = 2>, grid = flat>
#ws = #gpu.address_space<workgroup>

// A copy that transposes moves single elements: without a test of the token
// where the tile has all 64. The 64 threads take 16 rows of 4 tokens at a time.

// CHECK-LABEL: func @transposed
func.func @transposed(%x: memref<?x64xf32, strided<[4096, 1], offset: ?>>,
                      %xs: memref<64x64xf32, strided<[68, 1]>, #ws>,
                      %v: memref<16x32xf32, #ws>, %i: memref<16x1xi8, #ws>,
                      %y: memref<64x32xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  gpu.launch blocks(%bx, %by, %bz) in (%g0 = %c1, %g1 = %c1, %g2 = %c1)
             threads(%tx, %ty, %tz) in (%b0 = %c64, %b1 = %c1, %b2 = %c1) {
    %zero = arith.constant dense<0.0> : vector<64x32xf32>
    // CHECK: arith.cmpi uge, %{{.*}}, %c64
    // CHECK: scf.if
    // CHECK-COUNT-64: nvgpu.device_async_copy {{.*}}, 1 : memref<?xf32{{.*}}> to memref<64x64xf32
    // CHECK: } else {
    // CHECK: llvm.inline_asm has_side_effects
    // CHECK: nvgpu.device_async_copy {{.*}}, 1, %{{.*}} : memref
    nm_tile.async_copy indexing_maps = [affine_map<(r, c) -> (c, r)>, affine_map<(r, c) -> (r, c)>]
      ins(%x : memref<?x64xf32, strided<[4096, 1], offset: ?>>)
      outs(%xs : memref<64x64xf32, strided<[68, 1]>, #ws>)
    %r = nm_tile.matmul #w schedule = #s
      ins(%xs, %v, %i : memref<64x64xf32, strided<[68, 1]>, #ws>, memref<16x32xf32, #ws>, memref<16x1xi8, #ws>)
      acc(%zero : vector<64x32xf32>) -> vector<64x32xf32>
    vector.transfer_write %r, %y[%c0, %c0] {in_bounds = [true, true]}
      : vector<64x32xf32>, memref<64x32xf32>
    gpu.terminator
  }
  return
}

// -----

#w = #nm_sparse.encoding<8:32, block = [1, 32]>
#s = #nm_tile.schedule<tile = [256, 32, 16], product = simt<warps = [2, 1]>, transfers = {x = gather, values = copy, index = staged}, pipeline = async_groups<stages = 2>, grid = flat>
#ws = #gpu.address_space<workgroup>

// Two warps gather 16 rows of 256 f32, each every other row: lanes look a row up
// each, then all read the row of one of them, 2 x 16 bytes.

// CHECK-LABEL: func @rows
func.func @rows(%x: memref<64x256xf32, strided<[?, 1], offset: ?>>,
                %i: memref<16x1xi8, #ws>, %xs: memref<16x256xf32, #ws>,
                %v: memref<16x32xf32, #ws>, %y: memref<256x32xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  gpu.launch blocks(%bx, %by, %bz) in (%g0 = %c1, %g1 = %c1, %g2 = %c1)
             threads(%tx, %ty, %tz) in (%b0 = %c64, %b1 = %c1, %b2 = %c1) {
    %zero = arith.constant dense<0.0> : vector<256x32xf32>
    // CHECK: scf.if
    // CHECK: %[[POSITION:.*]] = memref.load %{{.*}} : memref<16x1xi8
    // CHECK: %[[OFFSET:.*]] = arith.muli {{.*}} : i32
    // CHECK: gpu.shuffle idx %[[OFFSET]]
    // CHECK-NOT: memref.load
    // CHECK-COUNT-16: nvgpu.device_async_copy {{.*}}, 4 {bypassL1}
    // CHECK-NOT: nvgpu.device_async_copy
    // CHECK: } else {
    nm_tile.async_gather #w
      ins(%x, %i : memref<64x256xf32, strided<[?, 1], offset: ?>>, memref<16x1xi8, #ws>)
      outs(%xs : memref<16x256xf32, #ws>)
    %r = nm_tile.matmul #w schedule = #s condensed
      ins(%xs, %v : memref<16x256xf32, #ws>, memref<16x32xf32, #ws>)
      acc(%zero : vector<256x32xf32>) -> vector<256x32xf32>
    vector.transfer_write %r, %y[%c0, %c0] {in_bounds = [true, true]}
      : vector<256x32xf32>, memref<256x32xf32>
    gpu.terminator
  }
  return
}

// -----

// Rows that are not contiguous: single elements where the stride is known, the
// wide copy under a test of it where it is not.

#w = #nm_sparse.encoding<8:32, block = [1, 128]>
#s = #nm_tile.schedule<tile = [128, 128, 32], product = mma<warps = [2, 2]>, transfers = {x = gather, values = copy, index = resident}, pipeline = async_groups<stages = 3>, grid = flat>
#ws = #gpu.address_space<workgroup>

// CHECK-LABEL: func @strided
func.func @strided(%x: memref<32x128xf16, strided<[512, 4], offset: ?>>,
                   %v: memref<32x128xf16, strided<[?, ?], offset: ?>>,
                   %i: memref<32x1xi8, #ws>, %y: memref<128x128xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c128 = arith.constant 128 : index
  gpu.launch blocks(%bx, %by, %bz) in (%g0 = %c1, %g1 = %c1, %g2 = %c1)
             threads(%tx, %ty, %tz) in (%b0 = %c128, %b1 = %c1, %b2 = %c1) {
    %zero = arith.constant dense<0.0> : vector<128x128xf32>
    %xs = memref.alloc() : memref<32x128xf16, #nm_tile.shared<swizzled_rows>>
    %vs = memref.alloc() : memref<32x128xf16, #nm_tile.shared<swizzled_rows>>
    // CHECK-NOT: scf.if
    // CHECK-NOT: device_async_copy
    // CHECK: memref.load
    // CHECK: memref.store
    nm_tile.async_copy
      ins(%x : memref<32x128xf16, strided<[512, 4], offset: ?>>)
      outs(%xs : memref<32x128xf16, #nm_tile.shared<swizzled_rows>>)
    // CHECK: :2, %[[STRIDES:[a-z0-9_]+]]:2 = memref.extract_strided_metadata %arg1
    // CHECK: %[[CONTIGUOUS:.*]] = arith.cmpi eq, %[[STRIDES]]#1,
    // CHECK: %[[WIDE:.*]] = arith.andi {{.*}}, %[[CONTIGUOUS]]
    // CHECK: scf.if %[[WIDE]]
    // CHECK: nvgpu.device_async_copy {{.*}}, 8 {bypassL1}
    // CHECK: } else {
    // CHECK-NOT: device_async_copy
    // CHECK: memref.store
    nm_tile.async_copy
      ins(%v : memref<32x128xf16, strided<[?, ?], offset: ?>>)
      outs(%vs : memref<32x128xf16, #nm_tile.shared<swizzled_rows>>)
    %r = nm_tile.matmul #w schedule = #s condensed
      ins(%xs, %vs : memref<32x128xf16, #nm_tile.shared<swizzled_rows>>, memref<32x128xf16, #nm_tile.shared<swizzled_rows>>)
      acc(%zero : vector<128x128xf32>) -> vector<128x128xf32>
    vector.transfer_write %r, %y[%c0, %c0] {in_bounds = [true, true]}
      : vector<128x128xf32>, memref<128x128xf32>
    gpu.terminator
  }
  return
}

// -----

#w = #nm_sparse.encoding<4:8, block = [16, 128]>
#s = #nm_tile.schedule<tile = [64, 128, 64], product = wgmma<warps = [1, 8]>, transfers = {x = gather, values = copy, index = resident}, pipeline = async_groups<stages = 2>, grid = flat>
#ws = #gpu.address_space<workgroup>

// Blocks of 16 rows are 32 bytes of each token. Of the 64 kept rows of a token
// eight threads take 8 each: a thread looks one block up, kept row r in block
// r / 16, and copies 16 bytes of each token that it has.

// CHECK-LABEL: func @words_of_tokens
func.func @words_of_tokens(%x: memref<64x128xf16, strided<[?, 1], offset: ?>>,
                           %i: memref<4x1xi8, #ws>, %xs: memref<64x64xf16, #nm_tile.shared<swizzled_blocks>>,
                           %v: memref<64x128xf16, #nm_tile.shared<swizzled_blocks>>, %y: memref<64x128xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c256 = arith.constant 256 : index
  gpu.launch blocks(%bx, %by, %bz) in (%g0 = %c1, %g1 = %c1, %g2 = %c1)
             threads(%tx, %ty, %tz) in (%b0 = %c256, %b1 = %c1, %b2 = %c1) {
    %zero = arith.constant dense<0.0> : vector<64x128xf32>
    // CHECK: scf.if
    // CHECK: %[[BLOCK:.*]] = arith.divui %[[ROW:.*]], %c16
    // CHECK: %[[POSITION:.*]] = memref.load %{{.*}}[%[[BLOCK]], %{{.*}}] : memref<4x1xi8
    // CHECK: %[[START:.*]] = arith.muli %{{.*}}, %c16
    // CHECK: %[[INSIDE:.*]] = arith.remui %[[ROW]], %c16
    // CHECK: arith.addi %[[START]], %[[INSIDE]]
    // CHECK-NOT: memref.load
    // CHECK-COUNT-2: nvgpu.device_async_copy {{.*}}, 8 {bypassL1}
    // CHECK-NOT: nvgpu.device_async_copy
    // CHECK: } else {
    nm_tile.async_gather #w indexing_maps = [affine_map<(r, c) -> (c, r)>, affine_map<(r, c) -> (c, r)>]
      ins(%x, %i : memref<64x128xf16, strided<[?, 1], offset: ?>>, memref<4x1xi8, #ws>)
      outs(%xs : memref<64x64xf16, #nm_tile.shared<swizzled_blocks>>)
    %r = nm_tile.matmul #w schedule = #s condensed indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>]
      ins(%xs, %v : memref<64x64xf16, #nm_tile.shared<swizzled_blocks>>, memref<64x128xf16, #nm_tile.shared<swizzled_blocks>>)
      acc(%zero : vector<64x128xf32>) -> vector<64x128xf32>
    vector.transfer_write %r, %y[%c0, %c0] {in_bounds = [true, true]}
      : vector<64x128xf32>, memref<64x128xf32>
    gpu.terminator
  }
  return
}

// -----

#w = #nm_sparse.encoding<7:8, block = [1, 32]>
#s = #nm_tile.schedule<tile = [64, 32, 7], product = simt<warps = [1, 1]>, transfers = {x = gather, values = copy, index = resident}, pipeline = async_groups<stages = 2>, grid = flat>
#ws = #gpu.address_space<workgroup>

// Positions become rows of the source: blocks 0 to 6 of window w lie at w * 8.
// What the index does not have is all ones.

// CHECK-LABEL: func @rows
// CHECK: scf.if
// CHECK: %[[POSITION:.*]] = memref.load {{.*}} : memref<?xi8
// CHECK: %[[WINDOW:.*]] = arith.divui %{{.*}}, %c7
// CHECK: %[[FIRST:.*]] = arith.muli %[[WINDOW]], %c8
// CHECK: %[[ROW:.*]] = arith.addi %[[FIRST]], %
// CHECK: %[[SHORT:.*]] = arith.index_castui %[[ROW]] : index to i16
// CHECK: %[[STORED:.*]] = arith.select %{{.*}}, %[[SHORT]], %c-1_i16
// CHECK: memref.store %[[STORED]], %{{.*}} : memref<896x1xi16
// A gather tests whether such a row exists, if nothing says that all do.
// CHECK: %[[AT:.*]] = memref.load %{{.*}} : memref<7x1xi16
// CHECK: %[[PLACE:.*]] = arith.index_castui %[[AT]]
// CHECK: arith.cmpi ult, %[[PLACE]], %c1000{{.*}} : index
func.func @rows(%x: memref<1000x64xf32>, %i: memref<875x1xi8>,
                %table: memref<896x1xi16, #ws>, %step: memref<7x1xi16, #ws>,
                %xs: memref<7x64xf32, #ws>, %v: memref<7x32xf32, #ws>,
                %y: memref<64x32xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  gpu.launch blocks(%bx, %by, %bz) in (%g0 = %c1, %g1 = %c1, %g2 = %c1)
             threads(%tx, %ty, %tz) in (%b0 = %c32, %b1 = %c1, %b2 = %c1) {
    %zero = arith.constant dense<0.0> : vector<64x32xf32>
    nm_tile.async_copy rows_of = #w ins(%i : memref<875x1xi8>)
      outs(%table : memref<896x1xi16, #ws>)
    nm_tile.async_gather #w by_row
      ins(%x, %step : memref<1000x64xf32>, memref<7x1xi16, #ws>)
      outs(%xs : memref<7x64xf32, #ws>)
    %r = nm_tile.matmul #w schedule = #s condensed
      ins(%xs, %v : memref<7x64xf32, #ws>, memref<7x32xf32, #ws>)
      acc(%zero : vector<64x32xf32>) -> vector<64x32xf32>
    vector.transfer_write %r, %y[%c0, %c0] {in_bounds = [true, true]}
      : vector<64x32xf32>, memref<64x32xf32>
    gpu.terminator
  }
  return
}

// CHECK-LABEL: func @rows_in_bounds
// CHECK: memref.load %{{.*}} : memref<7x1xi16
// CHECK-NOT: arith.cmpi ult, %{{.*}}, %dim
func.func @rows_in_bounds(%x: memref<1000x64xf32>,
                          %step: memref<7x1xi16, #ws>,
                %xs: memref<7x64xf32, #ws>, %v: memref<7x32xf32, #ws>,
                %y: memref<64x32xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  gpu.launch blocks(%bx, %by, %bz) in (%g0 = %c1, %g1 = %c1, %g2 = %c1)
             threads(%tx, %ty, %tz) in (%b0 = %c32, %b1 = %c1, %b2 = %c1) {
    %zero = arith.constant dense<0.0> : vector<64x32xf32>
    nm_tile.async_gather #w by_row in_bounds
      ins(%x, %step : memref<1000x64xf32>, memref<7x1xi16, #ws>)
      outs(%xs : memref<7x64xf32, #ws>)
    %r = nm_tile.matmul #w schedule = #s condensed
      ins(%xs, %v : memref<7x64xf32, #ws>, memref<7x32xf32, #ws>)
      acc(%zero : vector<64x32xf32>) -> vector<64x32xf32>
    vector.transfer_write %r, %y[%c0, %c0] {in_bounds = [true, true]}
      : vector<64x32xf32>, memref<64x32xf32>
    gpu.terminator
  }
  return
}

// -----

#w = #nm_sparse.encoding<8:32, block = [1, 128]>
#flat = #nm_tile.schedule<tile = [64, 128, 64], product = mma<warps = [1, 4]>, transfers = {x = gather, values = copy, index = rows}, pipeline = async_groups<stages = 2>, grid = flat>
#persistent = #nm_tile.schedule<tile = [64, 128, 64], product = mma<warps = [1, 4]>, transfers = {x = gather, values = copy, index = rows}, pipeline = ring<stages = 2, producers = 4>, grid = persistent>
#ws = #gpu.address_space<workgroup>

// A CTA waits for the table of its only tile: twice as many positions are on
// their way at a time.

// CHECK-LABEL: func @only_table
// CHECK-COUNT-16: memref.load {{.*}} : memref<?xi8
// CHECK-NOT: memref.load {{.*}} : memref<?xi8
// CHECK: memref.store
func.func @only_table(%i: memref<4096x1xi8>, %table: memref<4096x1xi16, #ws>,
                %x: memref<64x64xf16, #nm_tile.shared<swizzled_rows>>, %v: memref<64x128xf16, #nm_tile.shared<swizzled_rows>>,
                %y: memref<64x128xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %threads = arith.constant 128 : index
  gpu.launch blocks(%bx, %by, %bz) in (%g0 = %c1, %g1 = %c1, %g2 = %c1)
             threads(%tx, %ty, %tz) in (%b0 = %threads, %b1 = %c1, %b2 = %c1) {
    %zero = arith.constant dense<0.0> : vector<64x128xf32>
    nm_tile.async_copy rows_of = #w ins(%i : memref<4096x1xi8>)
      outs(%table : memref<4096x1xi16, #ws>)
    %r = nm_tile.matmul #w schedule = #flat condensed
      ins(%x, %v : memref<64x64xf16, #nm_tile.shared<swizzled_rows>>, memref<64x128xf16, #nm_tile.shared<swizzled_rows>>)
      acc(%zero : vector<64x128xf32>) -> vector<64x128xf32>
    vector.transfer_write %r, %y[%c0, %c0] {in_bounds = [true, true]}
      : vector<64x128xf32>, memref<64x128xf32>
    gpu.terminator
  }
  return
}

// CHECK-LABEL: func @next_table
// CHECK-COUNT-8: memref.load {{.*}} : memref<?xi8
// CHECK-NOT: memref.load {{.*}} : memref<?xi8
// CHECK: memref.store
func.func @next_table(%i: memref<4096x1xi8>, %table: memref<4096x1xi16, #ws>,
                %x: memref<64x64xf16, #nm_tile.shared<swizzled_rows>>, %v: memref<64x128xf16, #nm_tile.shared<swizzled_rows>>,
                %y: memref<64x128xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %threads = arith.constant 256 : index
  gpu.launch blocks(%bx, %by, %bz) in (%g0 = %c1, %g1 = %c1, %g2 = %c1)
             threads(%tx, %ty, %tz) in (%b0 = %threads, %b1 = %c1, %b2 = %c1) {
    %zero = arith.constant dense<0.0> : vector<64x128xf32>
    nm_tile.async_copy rows_of = #w threads = [128, 128] ins(%i : memref<4096x1xi8>)
      outs(%table : memref<4096x1xi16, #ws>)
    %r = nm_tile.matmul #w schedule = #persistent condensed
      ins(%x, %v : memref<64x64xf16, #nm_tile.shared<swizzled_rows>>, memref<64x128xf16, #nm_tile.shared<swizzled_rows>>)
      acc(%zero : vector<64x128xf32>) -> vector<64x128xf32>
    vector.transfer_write %r, %y[%c0, %c0] {in_bounds = [true, true]}
      : vector<64x128xf32>, memref<64x128xf32>
    gpu.terminator
  }
  return
}

// -----

#w = #nm_sparse.encoding<2:4>
#bits = #nm_tile.schedule<tile = [16, 64, 32], product = mma_sp<warps = [1, 2]>, transfers = {x = copy, values = copy, index = staged}, pipeline = async_groups<stages = 2>, grid = flat>
#ws = #gpu.address_space<workgroup>

// Components of bitmaps begin at multiples of 16 bytes. Their tiles are rows, of
// one block of outputs after the other, and lie in blocks of 256 elements; those
// that do not exist are filled with zeros.

// CHECK-LABEL: func @stored
// CHECK-SAME: %[[V:.*]]: memref<?x?x512xf16
func.func @stored(%v: memref<?x?x512xf16, strided<[5120, 512, 1], offset: ?>>, %b: memref<2x2x32xi32, strided<[320, 32, 1], offset: ?>>,
                %x: memref<16x64xf16, #nm_tile.shared<swizzled_rows>>, %vs: memref<2x2x512xf16, #nm_tile.shared<column_blocks>>, %bs: memref<2x2x32xi32, #nm_tile.shared<column_blocks>>,
                %y: memref<16x64xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %threads = arith.constant 64 : index
  gpu.launch blocks(%bx, %by, %bz) in (%g0 = %c1, %g1 = %c1, %g2 = %c1)
             threads(%tx, %ty, %tz) in (%b0 = %threads, %b1 = %c1, %b2 = %c1) {
    // CHECK: %[[APART:.*]] = arith.divui %{{.*}}#0, %{{.*}}#1 : index
    // CHECK: %[[BLOCKS:.*]] = memref.dim %[[V]],
    // CHECK: %[[TILES:.*]] = memref.dim %[[V]],
    // CHECK-NOT: scf.if
    // CHECK: %[[BLOCK:.*]] = arith.divui %[[ROW:.*]], %c2{{.*}} : index
    // CHECK: %[[TILE:.*]] = arith.remui %[[ROW]], %c2{{.*}} : index
    // CHECK: arith.cmpi ult, %[[BLOCK]], %[[BLOCKS]]
    // CHECK: arith.cmpi ult, %[[TILE]], %[[TILES]]
    // CHECK: %[[FIRST:.*]] = arith.muli %[[BLOCK]], %[[APART]]
    // CHECK: arith.addi %[[FIRST]], %[[TILE]]
    // CHECK-COUNT-4: nvgpu.device_async_copy {{.*}}, 8, %{{.*}} {bypassL1} : memref<?xf16, {{.*}} to memref<2x4x256xf16
    nm_tile.async_copy ins(%v : memref<?x?x512xf16, strided<[5120, 512, 1], offset: ?>>)
      outs(%vs : memref<2x2x512xf16, #nm_tile.shared<column_blocks>>)
    // Tiles of which all exist, by half of the threads.
    // CHECK: scf.if
    // CHECK: nvgpu.device_async_copy {{.*}}, 4 {bypassL1} : memref<?xi32, {{.*}} to memref<1x4x32xi32
    nm_tile.async_copy ins(%b : memref<2x2x32xi32, strided<[320, 32, 1], offset: ?>>)
      outs(%bs : memref<2x2x32xi32, #nm_tile.shared<column_blocks>>)
    %zero = arith.constant dense<0.0> : vector<16x64xf32>
    %r = nm_tile.matmul #w storage = #nm_sparse.bitmap<#w> schedule = #bits
      indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>]
      ins(%x, %vs, %bs : memref<16x64xf16, #nm_tile.shared<swizzled_rows>>, memref<2x2x512xf16, #nm_tile.shared<column_blocks>>, memref<2x2x32xi32, #nm_tile.shared<column_blocks>>)
      acc(%zero : vector<16x64xf32>) -> vector<16x64xf32>
    vector.transfer_write %r, %y[%c0, %c0] {in_bounds = [true, true]}
      : vector<16x64xf32>, memref<16x64xf32>
    gpu.terminator
  }
  return
}
