// RUN: nm-opt %s --nm-sparse-assign-stages --nm-sparse-specialize-warps --nm-sparse-lower-roles --canonicalize --cse --split-input-file | FileCheck %s
// RUN: nm-opt %s --nm-sparse-assign-stages --nm-sparse-specialize-warps=chip=sm_89 --nm-sparse-lower-roles --split-input-file | FileCheck %s --check-prefix=PLAIN
// RUN: sed 's/values = copy\(.*\)producers = 4>/values = bulk\1producers = 4>/' %s | nm-opt --nm-sparse-assign-stages --nm-sparse-specialize-warps --nm-sparse-lower-roles --split-input-file | FileCheck %s --check-prefix=TMA
// RUN: sed 's/producers = 4>, grid = flat/producers = 4>, grid = persistent/' %s | nm-opt --nm-sparse-assign-stages --nm-sparse-specialize-warps --nm-sparse-lower-roles --split-input-file | FileCheck %s --check-prefix=PERSISTENT

#w = #nm_sparse.encoding<8:32, block = [1, 128]>
#s = #nm_tile.schedule<tile = [64, 128, 16], product = mma<warps = [2, 4]>, transfers = {x = gather, values = copy, index = resident}, pipeline = ring<stages = 3, producers = 4>, grid = flat>

// Three tiles of each operand and three pairs of mbarriers. 128 producer threads
// arrive with their copies and 4 producer warps with their stores; 8 consumer
// warps say that they have read.

// CHECK-LABEL: func @gathered
// CHECK-DAG: %[[INDEX:.*]] = memref.alloc() : memref<16x1xi8, #gpu.address_space<workgroup>>
// CHECK-DAG: %[[VALUES:.*]] = memref.alloc() : memref<3x16x128xf16, #nm_tile.shared<swizzled_rows>>
// CHECK-DAG: %[[X:.*]] = memref.alloc() : memref<3x16x64xf16, #nm_tile.shared<swizzled_rows>>
// CHECK: %[[FULL:.*]] = memref.alloc() : memref<3xi64, #gpu.address_space<workgroup>>
// CHECK: %[[EMPTY:.*]] = memref.alloc() : memref<3xi64, #gpu.address_space<workgroup>>
// CHECK: %[[THREAD:.*]] = gpu.thread_id x
// CHECK: %[[FIRST:.*]] = arith.cmpi eq, %[[THREAD]], %c0
// CHECK: scf.if %[[FIRST]] {
// CHECK: nvvm.mbarrier.init %{{.*}}, %c132_i32
// CHECK: nvvm.mbarrier.init %{{.*}}, %c8_i32
// CHECK-COUNT-4: nvvm.mbarrier.init
// CHECK-NOT: nvvm.mbarrier.init
// CHECK: gpu.barrier

// The consumers have what follows the loop, and barriers of their own.
// CHECK: %[[CONSUMES:.*]] = arith.cmpi ult, %[[THREAD]], %c256
// CHECK: scf.if %[[CONSUMES]] {
// CHECK: nvvm.setmaxregister increase 216
// CHECK-NOT: nm_tile.async
// CHECK: scf.for {{.*}} iter_args(%[[ACC:.*]] = %{{.*}}, %[[SLOT:.*]] = %c0{{.*}}, %[[PARITY:.*]] = %c0_i32)
// CHECK: scf.while
// CHECK: nvvm.mbarrier.try_wait %{{.*}}, %[[PARITY]]
// CHECK-DAG: %[[VT:.*]] = memref.subview %[[VALUES]][%[[SLOT]], 0, 0]
// CHECK-DAG: %[[XT:.*]] = memref.subview %[[X]][%[[SLOT]], 0, 0]
// CHECK: %[[R:.*]] = nm_tile.matmul {{.*}} ins(%[[XT]], %[[VT]]
// CHECK-SAME: acc(%[[ACC]]
// CHECK: nvvm.bar.warp.sync
// CHECK: scf.if
// CHECK: nvvm.mbarrier.arrive
// CHECK: scf.yield %[[R]],
// CHECK: nvvm.barrier id = %c1_i32 number_of_threads = %c256_i32
// CHECK: vector.transfer_write

// The producers have the index, whose positions only the gather reads.
// CHECK: } else {
// CHECK: nvvm.setmaxregister decrease 72
// CHECK: nm_tile.async_copy threads = [256, 128] {{.*}} outs(%[[INDEX]]
// CHECK-NEXT: nvvm.cp.async.commit.group
// CHECK-NEXT: nvvm.cp.async.wait.group 0
// CHECK-NEXT: nvvm.barrier id = %c2_i32 number_of_threads = %c128_i32
// CHECK: scf.for {{.*}} iter_args(%[[SLOT:.*]] = %c0{{.*}}, %[[PARITY:.*]] = %c1_i32)
// CHECK: nvvm.mbarrier.try_wait %{{.*}}, %[[PARITY]]
// CHECK-DAG: %[[VT:.*]] = memref.subview %[[VALUES]][%[[SLOT]], 0, 0]
// CHECK-DAG: %[[XT:.*]] = memref.subview %[[X]][%[[SLOT]], 0, 0]
// CHECK: nm_tile.async_copy threads = [256, 128] {{.*}} outs(%[[VT]]
// CHECK: nm_tile.async_gather {{.*}} threads = [256, 128] {{.*}} outs(%[[XT]]
// CHECK: nvvm.cp.async.mbarrier.arrive %{{.*}} {noinc = true}
// CHECK-NEXT: nvvm.bar.warp.sync
// CHECK: scf.if
// CHECK: nvvm.mbarrier.arrive
// CHECK-NOT: nm_tile.matmul

// Producers that only gather need fewer registers.
// TMA-LABEL: func @gathered
// TMA: nvvm.setmaxregister increase 232
// TMA: nvvm.setmaxregister decrease 40

// Registers stay where the chip cannot move them.
// PLAIN-LABEL: func @gathered
// PLAIN-NOT: setmaxregister

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
// CHECK: nvvm.mbarrier.init %{{.*}}, %c64_i32
// CHECK-NOT: setmaxregister
// CHECK: vector.transfer_read
// CHECK: nm_tile.async_copy threads = [0, 32]
// CHECK: nvvm.barrier id = %c1_i32 number_of_threads = %c32_i32
// CHECK: nm_tile.matmul
// CHECK: } else {
// CHECK-NOT: nvvm.barrier id
// CHECK: nm_tile.async_copy threads = [32, 64]
// CHECK-NEXT: nm_tile.async_copy
// CHECK: nvvm.cp.async.mbarrier.arrive
// CHECK-NOT: nvvm.mbarrier.arrive
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
// the last after the loop. The wait for it is the whole warp's.

// With two slots for each of the 4 producer warps, each copies every fourth step:
// the 32 threads of one arrive with their copies, and one with its stores. From
// tile to tile all copy together, and so they do with fewer slots.

// CHECK-LABEL: func @in_flight
// CHECK: nvvm.mbarrier.init %{{.*}}, %c33_i32
// CHECK: nvvm.mbarrier.init %{{.*}}, %c8_i32
// PERSISTENT-LABEL: func @in_flight
// CHECK: %[[LOOP:.*]]:3 = scf.for %[[K:.*]] = %c0 to %c8 step %c2 iter_args(%{{.*}} = %{{.*}}, %[[SLOT:.*]] = %c0{{.*}}, %{{.*}} = %c0_i32)
// CHECK: nm_tile.matmul {{.*}} in_flight ins
// CHECK: %[[LATER:.*]] = arith.cmpi ugt, %[[K]], %c0
// CHECK: scf.if %[[LATER]] {
// CHECK: arith.cmpi eq, %[[SLOT]], %c0
// CHECK: arith.subi %[[SLOT]], %c1
// CHECK-NOT: nvvm.bar.warp.sync
// CHECK: nvvm.mbarrier.arrive
// CHECK: scf.yield
// CHECK: nvvm.wgmma.wait.group.sync.aligned 0
// PERSISTENT: nvvm.wgmma.wait.group.sync.aligned 0
// Only producers that go on fill the last stage again.
// CHECK-NOT: nvvm.mbarrier.arrive
// PERSISTENT: arith.cmpi eq
// PERSISTENT: nvvm.mbarrier.arrive
// CHECK: vector.transfer_write
// PERSISTENT: vector.transfer_write

// CHECK: } else {
// CHECK: %[[RANK:.*]] = arith.subi %{{.*}}, %c256
// CHECK: %[[WARP:.*]] = arith.divui %[[RANK]], %c32
// CHECK: %[[LOWER:.*]] = arith.muli %[[WARP]], %c2
// CHECK: scf.for %{{.*}} = %[[LOWER]] to %c8 step %c8 iter_args(%[[SLOT:.*]] = %[[WARP]], %{{.*}} = %c1_i32)
// CHECK: nm_tile.async_copy threads = [256, 32, 4]
// CHECK: nm_tile.async_gather {{.*}}threads = [256, 32, 4]
// PERSISTENT: nm_tile.async_copy threads = [256, 128]
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
