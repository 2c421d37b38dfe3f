// RUN: nm-opt %s --nm-sparse-assign-stages --nm-sparse-specialize-warps --canonicalize --cse --split-input-file | FileCheck %s
// RUN: nm-opt %s --nm-sparse-assign-stages --nm-sparse-specialize-warps=chip=sm_89 --split-input-file | FileCheck %s --check-prefix=PLAIN
// RUN: nm-opt %s --nm-sparse-assign-stages --nm-sparse-expand-stages --split-input-file | FileCheck %s --check-prefix=EXPAND
// RUN: sed 's/stages = 8/stages = 7/' %s | nm-opt --nm-sparse-assign-stages --nm-sparse-specialize-warps --split-input-file | FileCheck %s --check-prefix=SHALLOW
// RUN: sed 's/values = copy\(.*\)producers = 4>/values = bulk\1producers = 4>/' %s | nm-opt --nm-sparse-assign-stages --nm-sparse-specialize-warps --split-input-file | FileCheck %s --check-prefix=TMA
// RUN: sed 's/producers = 4>, grid = flat/producers = 4>, grid = persistent/' %s | nm-opt --nm-sparse-assign-stages --nm-sparse-specialize-warps --split-input-file | FileCheck %s --check-prefix=PERSISTENT

#w = #nm_sparse.encoding<8:32, block = [1, 128]>
#s = #nm_tile.schedule<tile = [64, 128, 16], product = mma<warps = [2, 4]>, transfers = {x = gather, values = copy, index = resident}, pipeline = ring<stages = 3, producers = 4>, grid = flat>

// Three tiles of each operand, and a ring of three slots. 128 producer threads
// arrive with their copies and 4 producer warps with their stores; 8 consumer
// warps say that they have read.

// CHECK-LABEL: func @gathered
// CHECK-DAG: %[[INDEX:.*]] = memref.alloc() : memref<16x1xi8, #gpu.address_space<workgroup>>
// CHECK-DAG: %[[VALUES:.*]] = memref.alloc() : memref<3x16x128xf16, #nm_tile.shared<swizzled_rows>>
// CHECK-DAG: %[[X:.*]] = memref.alloc() : memref<3x16x64xf16, #nm_tile.shared<swizzled_rows>>
// CHECK: %[[RING:.*]] = nm_tile.ring full = 132 empty = 8 : !nm_tile.ring<3>

// The consumers have what follows the loop, and barriers of their own.
// CHECK: nm_tile.warp_specialize consumers = 256 registers = 216 {
// CHECK-NOT: nm_tile.async
// CHECK: %[[BEGIN:.*]] = nm_tile.ring_begin full %[[RING]]
// CHECK: %[[SUM:.*]]:2 = nm_tile.k_loop {{.*}} iter_args(%[[ACC:.*]] = %{{.*}}, %[[AT:.*]] = %[[BEGIN]])
// CHECK: nm_tile.ring_wait full %[[RING]][%[[AT]]]
// CHECK: %[[SLOT:.*]] = nm_tile.ring_slot %[[AT]]
// CHECK-DAG: %[[VT:.*]] = memref.subview %[[VALUES]][%[[SLOT]], 0, 0]
// CHECK-DAG: %[[XT:.*]] = memref.subview %[[X]][%[[SLOT]], 0, 0]
// CHECK: %[[R:.*]] = nm_tile.matmul {{.*}} condensed ins(%[[XT]], %[[VT]] {{.*}} acc(%[[ACC]]
// CHECK: nm_tile.ring_release %[[RING]][%[[AT]]]
// CHECK: %[[NEXT:.*]] = nm_tile.ring_advance %[[RING]][%[[AT]]] by 1
// CHECK: nm_tile.yield %[[R]], %[[NEXT]]
// CHECK-NOT: nm_tile.ring_drain
// CHECK: nm_tile.role_barrier
// CHECK: vector.transfer_write %[[SUM]]#0

// The producers have the index, whose positions only the gather reads.
// CHECK: } producers = 128 registers = 72 {
// CHECK: nm_tile.async_copy threads = [256, 128] {{.*}} outs(%[[INDEX]]
// CHECK-NEXT: nvvm.cp.async.commit.group
// CHECK-NEXT: nvvm.cp.async.wait.group 0
// CHECK-NEXT: nm_tile.role_barrier
// CHECK: %[[BEGIN:.*]] = nm_tile.ring_begin empty %[[RING]] :
// CHECK: nm_tile.k_loop {{.*}} iter_args(%[[AT:.*]] = %[[BEGIN]])
// CHECK: nm_tile.ring_wait empty %[[RING]][%[[AT]]]
// CHECK: %[[SLOT:.*]] = nm_tile.ring_slot %[[AT]]
// CHECK-DAG: %[[VT:.*]] = memref.subview %[[VALUES]][%[[SLOT]], 0, 0]
// CHECK-DAG: %[[XT:.*]] = memref.subview %[[X]][%[[SLOT]], 0, 0]
// CHECK: nm_tile.async_copy threads = [256, 128] {{.*}} outs(%[[VT]]
// CHECK: nm_tile.async_gather {{.*}} threads = [256, 128] {{.*}} outs(%[[XT]]
// CHECK-NEXT: nm_tile.ring_commit stores %[[RING]][%[[AT]]]
// CHECK-NOT: nm_tile.matmul

// Producers that only gather need fewer registers.
// TMA-LABEL: func @gathered
// TMA: consumers = 256 registers = 232
// TMA: producers = 128 registers = 40

// Registers stay where the chip cannot move them.
// PLAIN-LABEL: func @gathered
// PLAIN-NOT: registers

// --nm-sparse-expand-stages leaves such loops alone.
// EXPAND-LABEL: func @gathered
// EXPAND: nm_tile.k_loop {{.*}} stages = 3
func.func @gathered(%x: memref<256x64xf16>, %v: memref<64x128xf16>, %i: memref<16x1xi8>,
                  %out: memref<64x128xf32>) {
  %c1 = arith.constant 1 : index
  %c384 = arith.constant 384 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c384, %sy = %c1, %sz = %c1) {
    %c0 = arith.constant 0 : index
    %c2 = arith.constant 2 : index
    %c8 = arith.constant 8 : index
    %zero = arith.constant dense<0.0> : vector<64x128xf32>
    %it = memref.alloc() : memref<16x1xi8, #gpu.address_space<workgroup>>
    %vt = memref.alloc() : memref<16x128xf16, #nm_tile.shared<swizzled_rows>>
    %xt = memref.alloc() : memref<16x64xf16, #nm_tile.shared<swizzled_rows>>
    nm_tile.async_copy ins(%i : memref<16x1xi8>)
      outs(%it : memref<16x1xi8, #gpu.address_space<workgroup>>)
    %sum = nm_tile.k_loop %k = %c0 to %c8 step %c2 iter_args(%acc = %zero) -> (vector<64x128xf32>) {
      %kx = affine.apply affine_map<(d0) -> (d0 * 32)>(%k)
      %kv = affine.apply affine_map<(d0) -> (d0 * 8)>(%k)
      %xs = memref.subview %x[%kx, 0] [64, 64] [1, 1]
        : memref<256x64xf16> to memref<64x64xf16, strided<[64, 1], offset: ?>>
      %vs = memref.subview %v[%kv, 0] [16, 128] [1, 1]
        : memref<64x128xf16> to memref<16x128xf16, strided<[128, 1], offset: ?>>
      nm_tile.async_copy ins(%vs : memref<16x128xf16, strided<[128, 1], offset: ?>>)
        outs(%vt : memref<16x128xf16, #nm_tile.shared<swizzled_rows>>)
      nm_tile.async_gather #w
        ins(%xs, %it : memref<64x64xf16, strided<[64, 1], offset: ?>>,
                       memref<16x1xi8, #gpu.address_space<workgroup>>)
        outs(%xt : memref<16x64xf16, #nm_tile.shared<swizzled_rows>>)
      %r = nm_tile.matmul #w schedule = #s condensed
        ins(%xt, %vt : memref<16x64xf16, #nm_tile.shared<swizzled_rows>>,
                       memref<16x128xf16, #nm_tile.shared<swizzled_rows>>)
        acc(%acc : vector<64x128xf32>) -> vector<64x128xf32>
      nm_tile.yield %r : vector<64x128xf32>
    }
    gpu.barrier
    vector.transfer_write %sum, %out[%c0, %c0] {in_bounds = [true, true]}
      : vector<64x128xf32>, memref<64x128xf32>
    gpu.terminator
  }
  return
}

// -----

#w = #nm_sparse.encoding<2:4>
#s = #nm_tile.schedule<tile = [32, 32, 8], product = simt<warps = [1, 1]>, transfers = {x = copy, values = copy, index = resident}, pipeline = ring<stages = 2, producers = 2>, grid = flat>

// The product reads the index: the consumers copy it, and read the accumulator.
// All copies of 32-bit elements are asynchronous: nobody arrives with stores.
// Warps that are not whole groups of four keep their registers.

// CHECK-LABEL: func @whole_windows
// CHECK: nm_tile.ring full = 64 empty = 1 : !nm_tile.ring<2>
// CHECK: nm_tile.warp_specialize consumers = 32 {
// CHECK: vector.transfer_read
// CHECK: nm_tile.async_copy threads = [0, 32]
// CHECK: nm_tile.role_barrier
// CHECK: nm_tile.matmul
// CHECK: } producers = 64 {
// CHECK-NOT: nm_tile.role_barrier
// CHECK: nm_tile.async_copy threads = [32, 64]
// CHECK-NEXT: nm_tile.async_copy
// CHECK-NEXT: nm_tile.ring_commit %
func.func @whole_windows(%x: memref<64x32xf32>, %v: memref<32x32xf32>, %i: memref<32x32xi8>,
                    %out: memref<32x32xf32>) {
  %c1 = arith.constant 1 : index
  %c96 = arith.constant 96 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c96, %sy = %c1, %sz = %c1) {
    %c0 = arith.constant 0 : index
    %c4 = arith.constant 4 : index
    %c16 = arith.constant 16 : index
    %pad = arith.constant 0.0 : f32
    %it = memref.alloc() : memref<32x32xi8, #gpu.address_space<workgroup>>
    %vt = memref.alloc() : memref<8x32xf32, #gpu.address_space<workgroup>>
    %xt = memref.alloc() : memref<16x32xf32, #gpu.address_space<workgroup>>
    nm_tile.async_copy ins(%i : memref<32x32xi8>)
      outs(%it : memref<32x32xi8, #gpu.address_space<workgroup>>)
    %init = vector.transfer_read %out[%c0, %c0], %pad {in_bounds = [true, true]}
      : memref<32x32xf32>, vector<32x32xf32>
    %sum = nm_tile.k_loop %k = %c0 to %c16 step %c4 iter_args(%acc = %init) -> (vector<32x32xf32>) {
      %kx = affine.apply affine_map<(d0) -> (d0 * 4)>(%k)
      %kv = affine.apply affine_map<(d0) -> (d0 * 2)>(%k)
      %xs = memref.subview %x[%kx, 0] [16, 32] [1, 1]
        : memref<64x32xf32> to memref<16x32xf32, strided<[32, 1], offset: ?>>
      %vs = memref.subview %v[%kv, 0] [8, 32] [1, 1]
        : memref<32x32xf32> to memref<8x32xf32, strided<[32, 1], offset: ?>>
      %is = memref.subview %it[%kv, 0] [8, 32] [1, 1]
        : memref<32x32xi8, #gpu.address_space<workgroup>>
        to memref<8x32xi8, strided<[32, 1], offset: ?>, #gpu.address_space<workgroup>>
      nm_tile.async_copy ins(%vs : memref<8x32xf32, strided<[32, 1], offset: ?>>)
        outs(%vt : memref<8x32xf32, #gpu.address_space<workgroup>>)
      nm_tile.async_copy ins(%xs : memref<16x32xf32, strided<[32, 1], offset: ?>>)
        outs(%xt : memref<16x32xf32, #gpu.address_space<workgroup>>)
      %r = nm_tile.matmul #w schedule = #s
        ins(%xt, %vt, %is : memref<16x32xf32, #gpu.address_space<workgroup>>,
                       memref<8x32xf32, #gpu.address_space<workgroup>>, memref<8x32xi8, strided<[32, 1], offset: ?>, #gpu.address_space<workgroup>>)
        acc(%acc : vector<32x32xf32>) -> vector<32x32xf32>
      nm_tile.yield %r : vector<32x32xf32>
    }
    vector.transfer_write %sum, %out[%c0, %c0] {in_bounds = [true, true]}
      : vector<32x32xf32>, memref<32x32xf32>
    gpu.terminator
  }
  return
}

// -----

#w = #nm_sparse.encoding<8:32, block = [1, 256]>
#s = #nm_tile.schedule<tile = [64, 256, 16], product = wgmma<warps = [1, 8]>, transfers = {x = gather, values = copy, index = staged}, pipeline = ring<stages = 8, producers = 4>, grid = flat>

// A product of warpgroups stays in flight: a stage is free one step later, and
// the last after the loop, of which only producers that go on make use.

// With two slots for each of the 4 producer warps, each copies every fourth step:
// the 32 threads of one arrive with their copies, and one with its stores. From
// tile to tile all copy together, and so they do with fewer slots.

// CHECK-LABEL: func @in_flight
// CHECK: %[[RING:.*]] = nm_tile.ring full = 33 empty = 8 : !nm_tile.ring<8>
// CHECK: %[[LOOP:.*]]:2 = nm_tile.k_loop %{{.*}} = %c0 to %c8 step %c2
// CHECK: nm_tile.matmul {{.*}} in_flight ins
// CHECK: nm_tile.ring_release late
// CHECK: nm_tile.ring_drain %[[RING]][%[[LOOP]]#1] :
// CHECK-NEXT: vector.transfer_write
// PERSISTENT-LABEL: func @in_flight
// PERSISTENT: %[[ANY:.*]] = arith.constant true
// PERSISTENT: nm_tile.ring_drain {{.*}} release(%[[ANY]])

// CHECK: } producers
// CHECK: %[[RANK:.*]] = arith.subi %{{.*}}, %c256
// CHECK: %[[WARP:.*]] = arith.divui %[[RANK]], %c32
// CHECK: %[[LOWER:.*]] = arith.muli %[[WARP]], %c2
// CHECK: %[[BEGIN:.*]] = nm_tile.ring_begin empty %[[RING]] at %[[WARP]]
// CHECK: nm_tile.k_loop %{{.*}} = %[[LOWER]] to %c8 step %c8 iter_args(%{{.*}} = %[[BEGIN]])
// CHECK: nm_tile.async_copy threads = [256, 32, 4]
// CHECK: nm_tile.async_gather {{.*}}threads = [256, 32, 4]
// CHECK: nm_tile.ring_advance {{.*}} by 4
// PERSISTENT: nm_tile.async_copy threads = [256, 128]
// SHALLOW-LABEL: func @in_flight
// SHALLOW: nm_tile.async_copy threads = [256, 128] ins
func.func @in_flight(%x: memref<256x64xf16>, %v: memref<64x256xf16>, %i: memref<64x1xi8>,
                     %out: memref<64x256xf32>) {
  %c1 = arith.constant 1 : index
  %c384 = arith.constant 384 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c384, %sy = %c1, %sz = %c1) {
    %c0 = arith.constant 0 : index
    %c2 = arith.constant 2 : index
    %c8 = arith.constant 8 : index
    %zero = arith.constant dense<0.0> : vector<64x256xf32>
    %vt = memref.alloc() : memref<16x256xf16, #nm_tile.shared<swizzled_blocks>>
    %xt = memref.alloc() : memref<16x64xf16, #nm_tile.shared<swizzled_blocks>>
    %sum = nm_tile.k_loop %k = %c0 to %c8 step %c2 iter_args(%acc = %zero) -> (vector<64x256xf32>) {
      %kx = affine.apply affine_map<(d0) -> (d0 * 32)>(%k)
      %kv = affine.apply affine_map<(d0) -> (d0 * 8)>(%k)
      %xs = memref.subview %x[%kx, 0] [64, 64] [1, 1]
        : memref<256x64xf16> to memref<64x64xf16, strided<[64, 1], offset: ?>>
      %vs = memref.subview %v[%kv, 0] [16, 256] [1, 1]
        : memref<64x256xf16> to memref<16x256xf16, strided<[256, 1], offset: ?>>
      %is = memref.subview %i[%kv, 0] [16, 1] [1, 1]
        : memref<64x1xi8> to memref<16x1xi8, strided<[1, 1], offset: ?>>
      nm_tile.async_copy ins(%vs : memref<16x256xf16, strided<[256, 1], offset: ?>>)
        outs(%vt : memref<16x256xf16, #nm_tile.shared<swizzled_blocks>>)
      nm_tile.async_gather #w
        ins(%xs, %is : memref<64x64xf16, strided<[64, 1], offset: ?>>,
                       memref<16x1xi8, strided<[1, 1], offset: ?>>)
        outs(%xt : memref<16x64xf16, #nm_tile.shared<swizzled_blocks>>)
      %r = nm_tile.matmul #w schedule = #s condensed
        ins(%xt, %vt : memref<16x64xf16, #nm_tile.shared<swizzled_blocks>>,
                       memref<16x256xf16, #nm_tile.shared<swizzled_blocks>>)
        acc(%acc : vector<64x256xf32>) -> vector<64x256xf32>
      nm_tile.yield %r : vector<64x256xf32>
    }
    vector.transfer_write %sum, %out[%c0, %c0] {in_bounds = [true, true]}
      : vector<64x256xf32>, memref<64x256xf32>
    gpu.terminator
  }
  return
}
