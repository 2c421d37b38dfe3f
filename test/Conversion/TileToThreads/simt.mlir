// RUN: nm-opt %s --nm-sparse-lay-out-accumulators --convert-nm-tile-to-threads --split-input-file | FileCheck %s
// RUN: nm-opt %s --nm-sparse-lay-out-accumulators --convert-nm-tile-to-threads --split-input-file | FileCheck %s --check-prefix=PRODUCTS
// RUN: nm-opt %s --nm-sparse-lay-out-accumulators --convert-nm-tile-to-threads --split-input-file | FileCheck %s --check-prefix=READS
// RUN: nm-opt %s --nm-sparse-lay-out-accumulators --convert-nm-tile-to-threads --split-input-file | FileCheck %s --check-prefix=LANES

#w = #nm_sparse.encoding<2:4, block = [1, 8]>
#s = #nm_tile.schedule<tile = [32, 32, 4], product = simt<warps = [1, 1]>, transfers = {x = copy, values = copy, index = staged}, pipeline = async_groups<stages = 2>, grid = flat>

// 4 x 8 elements a thread, 4 kept rows: for each, one index and one read of x
// for the panel that the eight outputs share, and two reads of the weight. The
// row of x is found before the row in front of it is multiplied, and what is
// read of it follows the products that need the registers.

// Lanes along outputs are in different panels: 8 of them side by side read the
// tokens of one row, in all banks.

// LANES-LABEL: func @panel
// LANES: %[[LANE:.*]] = arith.remui %thread_id_x, %c32
// LANES: arith.remui %[[LANE]], %c8
// LANES: arith.divui %[[LANE]], %c8

// CHECK-LABEL: func @panel
// CHECK: memref.load %{{.*}} : memref<4x4xi8, 3>
// CHECK-COUNT-2: nm_tile.pinned_load %{{.*}} : memref<4x32xf32, 3>, vector<4xf32>
// CHECK: nm_tile.pinned_load %{{.*}} : memref<8x4xf32, strided<[32, 1], offset: ?>, 3>, vector<4xf32>
// CHECK: memref.load %{{.*}} : memref<4x4xi8, 3>
// CHECK-COUNT-32: math.fma
// CHECK-COUNT-2: nm_tile.pinned_load %{{.*}} : memref<4x32xf32, 3>, vector<4xf32>
// CHECK: nm_tile.pinned_load %{{.*}} : memref<8x4xf32, strided<[32, 1], offset: ?>, 3>, vector<4xf32>
// CHECK: memref.load %{{.*}} : memref<4x4xi8, 3>
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
    %r = nm_tile.matmul #w schedule = #s
      ins(%x, %v, %i : memref<8x32xf32, 3>, memref<4x32xf32, 3>, memref<4x4xi8, 3>)
      acc(%zero : vector<32x32xf32>) -> vector<32x32xf32>
    vector.transfer_write %r, %out[%m, %c0] {in_bounds = [false, true]}
      : vector<32x32xf32>, memref<?x100xf32>
    gpu.terminator
  }
  return
}

// -----

#w = #nm_sparse.encoding<2:4>
#s = #nm_tile.schedule<tile = [8, 4, 4], product = simt<warps = [1, 1]>, transfers = {x = copy, values = copy, index = staged}, pipeline = async_groups<stages = 2>, grid = flat>

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
    %r = nm_tile.matmul #w schedule = #s
      ins(%x, %v, %i : memref<8x8xf32, 3>, memref<4x4xf32, 3>, memref<4x4xi8, 3>)
      acc(%zero : vector<8x4xf32>) -> vector<8x4xf32>
    vector.transfer_write %r, %out[%m, %c0] : vector<8x4xf32>, memref<?x3xf32>
    gpu.terminator
  }
  return
}

// -----

#w = #nm_sparse.encoding<8:32, block = [1, 32]>
#s = #nm_tile.schedule<tile = [128, 32, 32], product = simt<warps = [1, 1]>, transfers = {x = gather, values = copy, index = resident}, pipeline = async_groups<stages = 2>, grid = flat>

// More than 16 rows are a loop, which carries 16 x 8 sums and the 8 + 16 factors
// of its next row. The tokens of a thread are chunks of 4, those of 8 lanes side
// by side; each chunk is read as soon as that of the row in front of it has been
// multiplied. The factor of two neighbouring products that changes is the
// weight's, to and fro. So are the outputs of a warp within one panel: chunks of
// 4, those of 4 lanes side by side. What is stored are copies of the sums.

// CHECK-LABEL: func @loop
// CHECK: %{{.*}}:152 = scf.for %[[IV:.*]] = %{{.*}} to %{{.*}} step %c16{{.*}} iter_args
// CHECK: %[[END:.*]] = arith.addi %[[IV]], %c16
// CHECK: arith.cmpi ult, %[[END]], %c32
// CHECK: math.fma %[[X0:.*]], %[[W0:arg[0-9]+]],
// CHECK-COUNT-6: math.fma %[[X0]],
// CHECK-NEXT: math.fma %[[X0]], %[[W7:.*]], %
// CHECK-NEXT: math.fma %[[X1:.*]], %[[W7]], %
// CHECK-COUNT-6: math.fma %[[X1]],
// CHECK-NEXT: math.fma %[[X1]], %[[W0]], %
// CHECK-COUNT-16: math.fma
// CHECK-NOT: math.fma
// CHECK-COUNT-2: nm_tile.pinned_load %{{.*}} : memref<32x32xf32, 3>, vector<4xf32>
// CHECK: nm_tile.pinned_load %{{.*}} : memref<32x100xf32, strided<[128, 1], offset: ?>, 3>
// CHECK-COUNT-32: math.fma
// CHECK-NOT: math.fma
// CHECK: nm_tile.pinned_load %{{.*}} : memref<32x100xf32, strided<[128, 1], offset: ?>, 3>
// CHECK-COUNT-32: math.fma
// CHECK-NOT: math.fma
// CHECK: nm_tile.pinned_load %{{.*}} : memref<32x100xf32, strided<[128, 1], offset: ?>, 3>
// CHECK-COUNT-32: math.fma
// CHECK-NOT: math.fma
// CHECK: nm_tile.pinned_load %{{.*}} : memref<32x100xf32, strided<[128, 1], offset: ?>, 3>
// CHECK: scf.yield
// CHECK: %[[COPY:.*]] = llvm.inline_asm "add.rn.f32 $0, $1, 0f80000000;", "=f,f"
// CHECK: vector.from_elements %[[COPY]],
// CHECK: vector.store

// The outputs of all lanes share a panel: two lanes side by side read the same
// tokens.

// LANES-LABEL: func @loop
// LANES: %[[LANE:.*]] = arith.remui %thread_id_x, %c32
// LANES: %[[PAIR:.*]] = arith.divui %[[LANE]], %c2
// LANES: arith.remui %[[PAIR]], %c8
// LANES: arith.divui %[[LANE]], %c16

// In all 16 rows of 128 products and 6 reads.

// PRODUCTS-LABEL: func @loop
// PRODUCTS: scf.for
// PRODUCTS-COUNT-2048: math.fma
// PRODUCTS-NOT: math.fma
// PRODUCTS: scf.yield
// READS-LABEL: func @loop
// READS: scf.for
// READS-COUNT-96: {{nm_tile.pinned_load|vector.load}}
// READS-NOT: {{nm_tile.pinned_load|vector.load}}
// READS: scf.yield
func.func @loop(%x: memref<32x128xf32, 3>, %v: memref<32x32xf32, 3>, %out: memref<128x32xf32>) {
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c32, %sy = %c1, %sz = %c1) {
    %c0 = arith.constant 0 : index
    %zero = arith.constant dense<0.0> : vector<128x32xf32>
    %r = nm_tile.matmul #w schedule = #s condensed
      ins(%x, %v : memref<32x128xf32, 3>, memref<32x32xf32, 3>)
      acc(%zero : vector<128x32xf32>) -> vector<128x32xf32>
    vector.transfer_write %r, %out[%c0, %c0] {in_bounds = [true, true]}
      : vector<128x32xf32>, memref<128x32xf32>
    gpu.terminator
  }
  return
}
