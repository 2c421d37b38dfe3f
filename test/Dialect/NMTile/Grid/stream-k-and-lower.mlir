// RUN: nm-opt %s --nm-sparse-assign-stages --nm-sparse-specialize-warps --nm-sparse-persist --nm-sparse-stream-k --nm-sparse-lower-roles --canonicalize --cse --split-input-file | FileCheck %s

#w = #nm_sparse.encoding<8:32, block = [1, 128]>
#s = #nm_tile.schedule<tile = [64, 128, 16], product = mma<warps = [2, 4]>, transfers = {x = gather, values = copy, index = resident}, pipeline = ring<stages = 3, producers = 4>, grid = persistent<stream_k = true>>

// 20 x 10 tiles of 4 K steps, 800 steps for 132 CTAs: 7 each.

// CHECK-LABEL: func @shares
// CHECK: %[[PARTS:.*]] = gpu.alloc (%c132) : memref<?x2x64x128xf32>
// CHECK: %[[COUNTERS:.*]] = gpu.alloc (%c132) : memref<?xi32>
// CHECK: gpu.memset %[[COUNTERS]], %c0_i32
// CHECK: gpu.launch blocks(%[[BX:.*]], %{{.*}}, %{{.*}}) in (%{{.*}} = %c132,
// CHECK: %[[CTA:.*]] = arith.index_castui %[[BX]] : index to i32
// CHECK: %[[AT:.*]] = arith.muli %[[CTA]], %c7_i32
// CHECK: %[[FIRST:.*]] = arith.minui %[[AT]], %c800_i32
// CHECK: %[[NEXT:.*]] = arith.addi %[[FIRST]], %c7_i32
// CHECK: %[[END:.*]] = arith.minui %[[NEXT]], %c800_i32
// CHECK: %[[FIRST_TILE:.*]] = arith.divui %[[FIRST]], %c4_i32
// CHECK: %[[LAST:.*]] = arith.ceildivui %[[END]], %c4_i32
// CHECK: arith.subi %[[LAST]], %[[FIRST_TILE]]

// CHECK: scf.for %[[ITEM:.*]] = %c0 to %[[ITEMS:.*]] step %c1 iter_args(
// CHECK-DAG: %[[STOP:.*]] = arith.select %{{.*}}, %c4_i32, %{{.*}} : i32
// CHECK-DAG: %[[BEGIN:.*]] = arith.select %{{.*}}, %c0_i32, %{{.*}} : i32
// CHECK: %[[RING:.*]]:3 = scf.for
// CHECK: nm_tile.matmul
// CHECK: scf.yield
// CHECK: %[[NO_BEGIN:.*]] = arith.cmpi ne, %[[BEGIN]], %c0_i32
// CHECK: %[[NO_END:.*]] = arith.cmpi ne, %[[STOP]], %c4_i32
// CHECK: %[[IS_PART:.*]] = arith.ori %[[NO_BEGIN]], %[[NO_END]]
// CHECK: %[[SLOT_WORD:.*]] = arith.select %[[NO_BEGIN]], %[[CTA]],
// CHECK: %[[SLOT:.*]] = arith.index_castui %[[SLOT_WORD]]
// CHECK: %[[PART:.*]] = arith.index_castui %[[NO_BEGIN]] : i1 to index
// CHECK: %[[OTHER:.*]] = arith.index_castui %[[NO_END]] : i1 to index

// Who has the begin of a tile looks first whether the end is there.
// CHECK: %[[SECOND:.*]] = scf.if %[[IS_PART]] -> (i1)
// CHECK: %[[IS_THERE:.*]] = scf.if %[[NO_BEGIN]] -> (i1)
// CHECK: scf.yield %false
// It leaves nothing that the others' accesses must come before, and reads
// nothing where it is not there.
// CHECK-NOT: nvvm.barrier
// CHECK-NOT: nvvm.memory.barrier
// CHECK: %[[THERE:.*]] = memref.atomic_rmw addi %c0_i32, %[[COUNTERS]][%[[SLOT]]]
// CHECK: %[[OTHER_THERE:.*]] = arith.cmpi eq, %[[THERE]], %c1_i32
// CHECK: scf.if %[[OTHER_THERE]]
// CHECK-NEXT: nvvm.memory.barrier <gpu>
// CHECK-NEXT: memref.store %c0_i32, %[[COUNTERS]][%[[SLOT]]]
// CHECK: nvvm.barrier id = %c1_i32 number_of_threads = %c256_i32
// CHECK: scf.if %[[IS_THERE]] -> (i1)
// CHECK: scf.yield %true
// CHECK: nm_tile.store_part %[[RING]]#0, %[[PARTS]][%[[SLOT]], %[[PART]]]
// CHECK: nvvm.barrier id = %c1_i32 number_of_threads = %c256_i32
// CHECK: nvvm.memory.barrier <gpu>
// CHECK-NEXT: %[[BEFORE:.*]] = memref.atomic_rmw addi %c1_i32, %[[COUNTERS]][%[[SLOT]]]
// CHECK: %[[LAST_OF_TWO:.*]] = arith.cmpi eq, %[[BEFORE]], %c1_i32
// CHECK: scf.if %[[LAST_OF_TWO]]
// CHECK-NEXT: nvvm.memory.barrier <gpu>
// CHECK-NEXT: memref.store %c0_i32, %[[COUNTERS]][%[[SLOT]]]
// CHECK: nvvm.barrier id = %c1_i32 number_of_threads = %c256_i32

// CHECK: %[[SUM:.*]] = scf.if %[[SECOND]] -> (vector<64x128xf32>)
// CHECK: %[[READ:.*]] = nm_tile.load_part %[[PARTS]][%[[SLOT]], %[[OTHER]]]
// CHECK: arith.addf %[[RING]]#0, %[[READ]]
// CHECK: %[[IS_ALL:.*]] = arith.xori %[[IS_PART]], %true
// CHECK: %[[DONE:.*]] = arith.ori %[[SECOND]], %[[IS_ALL]]
// CHECK: scf.if %[[DONE]]
// What the epilogue alone needs stands behind the K loop.
// CHECK: arith.divui %{{.*}}, %c160_i32
// CHECK: vector.transfer_write %[[SUM]]
// CHECK: scf.yield %[[RING]]#1, %[[RING]]#2

// CHECK: } else {
// CHECK: scf.for %{{.*}} = %c0 to %[[ITEMS]] step %c1
// CHECK: nm_tile.async_copy
// CHECK: scf.for
// CHECK: nvvm.mbarrier.try_wait
// CHECK: gpu.dealloc %[[PARTS]]
// CHECK: gpu.dealloc %[[COUNTERS]]
func.func @shares(%x: memref<256x4096xf16>, %v: memref<64x4096xf16>, %i: memref<64x32xi8>,
                 %out: memref<4096x4096xf32>) {
  %c1 = arith.constant 1 : index
  %c10 = arith.constant 10 : index
  %c20 = arith.constant 20 : index
  %c384 = arith.constant 384 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c20, %gy = %c10, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c384, %sy = %c1, %sz = %c1) {
    %c0 = arith.constant 0 : index
    %c2 = arith.constant 2 : index
    %c8 = arith.constant 8 : index
    %zero = arith.constant dense<0.0> : vector<64x128xf32>
    %m = affine.apply affine_map<(d0) -> (d0 * 64)>(%bx)
    %n = affine.apply affine_map<(d0) -> (d0 * 128)>(%by)
    %it = memref.alloc() : memref<64x1xi8, #gpu.address_space<workgroup>>
    %vt = memref.alloc() : memref<16x128xf16, #nm_tile.shared<swizzled_rows>>
    %xt = memref.alloc() : memref<16x64xf16, #nm_tile.shared<swizzled_rows>>
    %ip = memref.subview %i[0, %by] [64, 1] [1, 1]
      : memref<64x32xi8> to memref<64x1xi8, strided<[32, 1], offset: ?>>
    nm_tile.async_copy ins(%ip : memref<64x1xi8, strided<[32, 1], offset: ?>>)
      outs(%it : memref<64x1xi8, #gpu.address_space<workgroup>>)
    %sum = nm_tile.k_loop %k = %c0 to %c8 step %c2 iter_args(%acc = %zero) -> (vector<64x128xf32>) {
      %kx = affine.apply affine_map<(d0) -> (d0 * 32)>(%k)
      %kv = affine.apply affine_map<(d0) -> (d0 * 8)>(%k)
      %xs = memref.subview %x[%kx, %m] [64, 64] [1, 1]
        : memref<256x4096xf16> to memref<64x64xf16, strided<[4096, 1], offset: ?>>
      %vs = memref.subview %v[%kv, %n] [16, 128] [1, 1]
        : memref<64x4096xf16> to memref<16x128xf16, strided<[4096, 1], offset: ?>>
      %is = memref.subview %it[%kv, 0] [16, 1] [1, 1]
        : memref<64x1xi8, #gpu.address_space<workgroup>>
        to memref<16x1xi8, strided<[1, 1], offset: ?>, #gpu.address_space<workgroup>>
      nm_tile.async_copy ins(%vs : memref<16x128xf16, strided<[4096, 1], offset: ?>>)
        outs(%vt : memref<16x128xf16, #nm_tile.shared<swizzled_rows>>)
      nm_tile.async_gather #w
        ins(%xs, %is : memref<64x64xf16, strided<[4096, 1], offset: ?>>,
                       memref<16x1xi8, strided<[1, 1], offset: ?>, #gpu.address_space<workgroup>>)
        outs(%xt : memref<16x64xf16, #nm_tile.shared<swizzled_rows>>)
      %r = nm_tile.matmul #w schedule = #s condensed
        ins(%xt, %vt : memref<16x64xf16, #nm_tile.shared<swizzled_rows>>,
                       memref<16x128xf16, #nm_tile.shared<swizzled_rows>>)
        acc(%acc : vector<64x128xf32>) -> vector<64x128xf32>
      nm_tile.yield %r : vector<64x128xf32>
    }
    %o = memref.subview %out[%m, %n] [64, 128] [1, 1]
      : memref<4096x4096xf32> to memref<64x128xf32, strided<[4096, 1], offset: ?>>
    vector.transfer_write %sum, %o[%c0, %c0] {in_bounds = [true, true]}
      : vector<64x128xf32>, memref<64x128xf32, strided<[4096, 1], offset: ?>>
    gpu.terminator
  }
  return
}

// -----

#w = #nm_sparse.encoding<8:32, block = [1, 128]>
#s = #nm_tile.schedule<tile = [64, 128, 16], product = wgmma<warps = [1, 8]>, transfers = {x = gather, values = copy, index = resident}, pipeline = ring<stages = 3, producers = 4>, grid = persistent<stream_k = true>>

// The number of tiles is known at run time, and the sum starts from something.
// A CTA has as many whole tiles as leave one to two for each, and at least one
// tile at a time.

// CHECK-LABEL: func @dynamic
// CHECK: %[[WAVES:.*]] = arith.divui %[[TILES:.*]], %c132_i32
// CHECK: %[[SOME:.*]] = arith.maxui %[[WAVES]], %c1_i32
// CHECK: %[[WHOLE:.*]] = arith.subi %[[SOME]], %c1_i32
// CHECK: %[[ALL:.*]] = arith.muli %[[WHOLE]], %c132_i32
// CHECK: %[[LEFT:.*]] = arith.subi %[[TILES]], %[[ALL]]
// CHECK: %[[TOTAL:.*]] = arith.muli %[[LEFT]], %c4_i32
// CHECK: %[[EVEN:.*]] = arith.ceildivui %[[TOTAL]], %c132_i32
// CHECK: %[[SHARE:.*]] = arith.maxui %[[EVEN]], %c4_i32
// CHECK: arith.muli %{{.*}}, %[[SHARE]]

// CHECK: scf.for
// CHECK-NOT: vector.transfer_read
// CHECK: arith.cmpi ult, %{{.*}}, %[[WHOLE]]
// CHECK: %[[BEGIN:.*]] = arith.select %{{.*}}, %c0_i32, %{{.*}} : i32
// CHECK: %[[BEGIN_INDEX:.*]] = arith.index_castui %[[BEGIN]]
// CHECK: %[[LOWER:.*]] = arith.muli %[[BEGIN_INDEX]], %c2
// CHECK: %[[HAS_BEGIN:.*]] = arith.cmpi eq, %[[BEGIN]], %c0_i32
// CHECK: %[[INIT:.*]] = scf.if %[[HAS_BEGIN]] -> (vector<64x128xf32>)
// CHECK-NEXT: vector.transfer_read
// CHECK: scf.for %[[K:.*]] = %[[LOWER]] to %{{.*}} step %c2 iter_args(%{{.*}} = %[[INIT]],
// CHECK: nm_tile.matmul {{.*}} in_flight
// CHECK: arith.cmpi ugt, %[[K]], %[[LOWER]]
// CHECK: nvvm.wgmma.wait.group.sync.aligned 0
// CHECK: nvvm.mbarrier.arrive
// CHECK: scf.if %{{.*}} -> (i1)
// CHECK: vector.transfer_write
func.func @dynamic(%x: memref<256x4096xf16>, %v: memref<64x4096xf16>, %i: memref<64x32xi8>,
                 %out: memref<4096x4096xf32>, %init: memref<64x128xf32>,
                 %width: index) {
  %c1 = arith.constant 1 : index
  %c10 = arith.constant 10 : index
  %c384 = arith.constant 384 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %width, %gy = %c10, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c384, %sy = %c1, %sz = %c1) {
    %c0 = arith.constant 0 : index
    %c2 = arith.constant 2 : index
    %c8 = arith.constant 8 : index
    %padding = arith.constant 0.0 : f32
    %start = vector.transfer_read %init[%c0, %c0], %padding {in_bounds = [true, true]}
      : memref<64x128xf32>, vector<64x128xf32>
    %m = affine.apply affine_map<(d0) -> (d0 * 64)>(%bx)
    %n = affine.apply affine_map<(d0) -> (d0 * 128)>(%by)
    %it = memref.alloc() : memref<64x1xi8, #gpu.address_space<workgroup>>
    %vt = memref.alloc() : memref<16x128xf16, #nm_tile.shared<swizzled_blocks>>
    %xt = memref.alloc() : memref<16x64xf16, #nm_tile.shared<swizzled_blocks>>
    %ip = memref.subview %i[0, %by] [64, 1] [1, 1]
      : memref<64x32xi8> to memref<64x1xi8, strided<[32, 1], offset: ?>>
    nm_tile.async_copy ins(%ip : memref<64x1xi8, strided<[32, 1], offset: ?>>)
      outs(%it : memref<64x1xi8, #gpu.address_space<workgroup>>)
    %sum = nm_tile.k_loop %k = %c0 to %c8 step %c2 iter_args(%acc = %start) -> (vector<64x128xf32>) {
      %kx = affine.apply affine_map<(d0) -> (d0 * 32)>(%k)
      %kv = affine.apply affine_map<(d0) -> (d0 * 8)>(%k)
      %xs = memref.subview %x[%kx, %m] [64, 64] [1, 1]
        : memref<256x4096xf16> to memref<64x64xf16, strided<[4096, 1], offset: ?>>
      %vs = memref.subview %v[%kv, %n] [16, 128] [1, 1]
        : memref<64x4096xf16> to memref<16x128xf16, strided<[4096, 1], offset: ?>>
      %is = memref.subview %it[%kv, 0] [16, 1] [1, 1]
        : memref<64x1xi8, #gpu.address_space<workgroup>>
        to memref<16x1xi8, strided<[1, 1], offset: ?>, #gpu.address_space<workgroup>>
      nm_tile.async_copy ins(%vs : memref<16x128xf16, strided<[4096, 1], offset: ?>>)
        outs(%vt : memref<16x128xf16, #nm_tile.shared<swizzled_blocks>>)
      nm_tile.async_gather #w
        ins(%xs, %is : memref<64x64xf16, strided<[4096, 1], offset: ?>>,
                       memref<16x1xi8, strided<[1, 1], offset: ?>, #gpu.address_space<workgroup>>)
        outs(%xt : memref<16x64xf16, #nm_tile.shared<swizzled_blocks>>)
      %r = nm_tile.matmul #w schedule = #s condensed
        ins(%xt, %vt : memref<16x64xf16, #nm_tile.shared<swizzled_blocks>>,
                       memref<16x128xf16, #nm_tile.shared<swizzled_blocks>>)
        acc(%acc : vector<64x128xf32>) -> vector<64x128xf32>
      nm_tile.yield %r : vector<64x128xf32>
    }
    %o = memref.subview %out[%m, %n] [64, 128] [1, 1]
      : memref<4096x4096xf32> to memref<64x128xf32, strided<[4096, 1], offset: ?>>
    vector.transfer_write %sum, %o[%c0, %c0] {in_bounds = [true, true]}
      : vector<64x128xf32>, memref<64x128xf32, strided<[4096, 1], offset: ?>>
    gpu.terminator
  }
  return
}

// -----

#w = #nm_sparse.encoding<8:32, block = [1, 128]>
#s = #nm_tile.schedule<tile = [64, 128, 16], product = mma<warps = [2, 4]>, transfers = {x = gather, values = copy, index = resident}, pipeline = ring<stages = 3, producers = 4>, grid = persistent<stream_k = true>>

// Two whole tiles for each CTA.

// CHECK-LABEL: func @even
// CHECK-NOT: gpu.alloc
// CHECK: nm_tile.matmul
// CHECK-NOT: gpu.dealloc
func.func @even(%x: memref<256x4096xf16>, %v: memref<64x4096xf16>, %i: memref<64x32xi8>,
                 %out: memref<4096x4096xf32>) {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c132 = arith.constant 132 : index
  %c384 = arith.constant 384 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c132, %gy = %c2, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c384, %sy = %c1, %sz = %c1) {
    %c0 = arith.constant 0 : index
    %c8 = arith.constant 8 : index
    %zero = arith.constant dense<0.0> : vector<64x128xf32>
    %m = affine.apply affine_map<(d0) -> (d0 * 64)>(%bx)
    %n = affine.apply affine_map<(d0) -> (d0 * 128)>(%by)
    %it = memref.alloc() : memref<64x1xi8, #gpu.address_space<workgroup>>
    %vt = memref.alloc() : memref<16x128xf16, #nm_tile.shared<swizzled_rows>>
    %xt = memref.alloc() : memref<16x64xf16, #nm_tile.shared<swizzled_rows>>
    %ip = memref.subview %i[0, %by] [64, 1] [1, 1]
      : memref<64x32xi8> to memref<64x1xi8, strided<[32, 1], offset: ?>>
    nm_tile.async_copy ins(%ip : memref<64x1xi8, strided<[32, 1], offset: ?>>)
      outs(%it : memref<64x1xi8, #gpu.address_space<workgroup>>)
    %sum = nm_tile.k_loop %k = %c0 to %c8 step %c2 iter_args(%acc = %zero) -> (vector<64x128xf32>) {
      %kx = affine.apply affine_map<(d0) -> (d0 * 32)>(%k)
      %kv = affine.apply affine_map<(d0) -> (d0 * 8)>(%k)
      %xs = memref.subview %x[%kx, %m] [64, 64] [1, 1]
        : memref<256x4096xf16> to memref<64x64xf16, strided<[4096, 1], offset: ?>>
      %vs = memref.subview %v[%kv, %n] [16, 128] [1, 1]
        : memref<64x4096xf16> to memref<16x128xf16, strided<[4096, 1], offset: ?>>
      %is = memref.subview %it[%kv, 0] [16, 1] [1, 1]
        : memref<64x1xi8, #gpu.address_space<workgroup>>
        to memref<16x1xi8, strided<[1, 1], offset: ?>, #gpu.address_space<workgroup>>
      nm_tile.async_copy ins(%vs : memref<16x128xf16, strided<[4096, 1], offset: ?>>)
        outs(%vt : memref<16x128xf16, #nm_tile.shared<swizzled_rows>>)
      nm_tile.async_gather #w
        ins(%xs, %is : memref<64x64xf16, strided<[4096, 1], offset: ?>>,
                       memref<16x1xi8, strided<[1, 1], offset: ?>, #gpu.address_space<workgroup>>)
        outs(%xt : memref<16x64xf16, #nm_tile.shared<swizzled_rows>>)
      %r = nm_tile.matmul #w schedule = #s condensed
        ins(%xt, %vt : memref<16x64xf16, #nm_tile.shared<swizzled_rows>>,
                       memref<16x128xf16, #nm_tile.shared<swizzled_rows>>)
        acc(%acc : vector<64x128xf32>) -> vector<64x128xf32>
      nm_tile.yield %r : vector<64x128xf32>
    }
    %o = memref.subview %out[%m, %n] [64, 128] [1, 1]
      : memref<4096x4096xf32> to memref<64x128xf32, strided<[4096, 1], offset: ?>>
    vector.transfer_write %sum, %o[%c0, %c0] {in_bounds = [true, true]}
      : vector<64x128xf32>, memref<64x128xf32, strided<[4096, 1], offset: ?>>
    gpu.terminator
  }
  return
}

// -----

#w = #nm_sparse.encoding<8:32, block = [1, 128]>
#s = #nm_tile.schedule<tile = [64, 128, 16], product = mma<warps = [2, 4]>, transfers = {x = gather, values = copy, index = resident}, pipeline = ring<stages = 3, producers = 4>, grid = persistent<stream_k = true>>

// Nothing to share of a tile of one step.

// CHECK-LABEL: func @one_step
// CHECK-NOT: gpu.alloc
// CHECK: nm_tile.matmul
// CHECK-NOT: gpu.dealloc
func.func @one_step(%x: memref<256x4096xf16>, %v: memref<64x4096xf16>, %i: memref<64x32xi8>,
                 %out: memref<4096x4096xf32>) {
  %c1 = arith.constant 1 : index
  %c10 = arith.constant 10 : index
  %c20 = arith.constant 20 : index
  %c384 = arith.constant 384 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c20, %gy = %c10, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c384, %sy = %c1, %sz = %c1) {
    %c0 = arith.constant 0 : index
    %c2 = arith.constant 2 : index
    %zero = arith.constant dense<0.0> : vector<64x128xf32>
    %m = affine.apply affine_map<(d0) -> (d0 * 64)>(%bx)
    %n = affine.apply affine_map<(d0) -> (d0 * 128)>(%by)
    %it = memref.alloc() : memref<64x1xi8, #gpu.address_space<workgroup>>
    %vt = memref.alloc() : memref<16x128xf16, #nm_tile.shared<swizzled_rows>>
    %xt = memref.alloc() : memref<16x64xf16, #nm_tile.shared<swizzled_rows>>
    %ip = memref.subview %i[0, %by] [64, 1] [1, 1]
      : memref<64x32xi8> to memref<64x1xi8, strided<[32, 1], offset: ?>>
    nm_tile.async_copy ins(%ip : memref<64x1xi8, strided<[32, 1], offset: ?>>)
      outs(%it : memref<64x1xi8, #gpu.address_space<workgroup>>)
    %sum = nm_tile.k_loop %k = %c0 to %c2 step %c2 iter_args(%acc = %zero) -> (vector<64x128xf32>) {
      %kx = affine.apply affine_map<(d0) -> (d0 * 32)>(%k)
      %kv = affine.apply affine_map<(d0) -> (d0 * 8)>(%k)
      %xs = memref.subview %x[%kx, %m] [64, 64] [1, 1]
        : memref<256x4096xf16> to memref<64x64xf16, strided<[4096, 1], offset: ?>>
      %vs = memref.subview %v[%kv, %n] [16, 128] [1, 1]
        : memref<64x4096xf16> to memref<16x128xf16, strided<[4096, 1], offset: ?>>
      %is = memref.subview %it[%kv, 0] [16, 1] [1, 1]
        : memref<64x1xi8, #gpu.address_space<workgroup>>
        to memref<16x1xi8, strided<[1, 1], offset: ?>, #gpu.address_space<workgroup>>
      nm_tile.async_copy ins(%vs : memref<16x128xf16, strided<[4096, 1], offset: ?>>)
        outs(%vt : memref<16x128xf16, #nm_tile.shared<swizzled_rows>>)
      nm_tile.async_gather #w
        ins(%xs, %is : memref<64x64xf16, strided<[4096, 1], offset: ?>>,
                       memref<16x1xi8, strided<[1, 1], offset: ?>, #gpu.address_space<workgroup>>)
        outs(%xt : memref<16x64xf16, #nm_tile.shared<swizzled_rows>>)
      %r = nm_tile.matmul #w schedule = #s condensed
        ins(%xt, %vt : memref<16x64xf16, #nm_tile.shared<swizzled_rows>>,
                       memref<16x128xf16, #nm_tile.shared<swizzled_rows>>)
        acc(%acc : vector<64x128xf32>) -> vector<64x128xf32>
      nm_tile.yield %r : vector<64x128xf32>
    }
    %o = memref.subview %out[%m, %n] [64, 128] [1, 1]
      : memref<4096x4096xf32> to memref<64x128xf32, strided<[4096, 1], offset: ?>>
    vector.transfer_write %sum, %o[%c0, %c0] {in_bounds = [true, true]}
      : vector<64x128xf32>, memref<64x128xf32, strided<[4096, 1], offset: ?>>
    gpu.terminator
  }
  return
}
