// RUN: nm-opt %s --nm-sparse-assign-stages --nm-sparse-specialize-warps --nm-sparse-persist --nm-sparse-lower-roles --canonicalize --cse | FileCheck %s

#w = #nm_sparse.encoding<8:32, block = [1, 128]>
#s = #nm_tile.schedule<tile = [64, 128, 16], product = mma<warps = [2, 4]>, transfers = {x = gather, values = copy, index = resident}, pipeline = ring<stages = 3, producers = 4>, grid = persistent>

// 64 x 32 tiles on the 132 SMs of the chip.

// CHECK-LABEL: func @tiles
// CHECK: gpu.launch blocks(%[[BX:.*]], %{{.*}}, %{{.*}}) in (%[[GX:.*]] = %c132, %{{.*}} = %c1, %{{.*}} = %c1)
// CHECK-NOT: affine.apply
// CHECK: nvvm.mbarrier.init

// The consumers. Groups of 16 tiles are 1024 tokens.
// CHECK: scf.if
// CHECK: nvvm.setmaxregister increase
// CHECK: scf.for %[[TILE:.*]] = %[[BX]] to %c2048 step %[[GX]] iter_args(%[[SLOT:.*]] = %c0{{.*}}, %[[PARITY:.*]] = %c0_i32)
// CHECK: %[[RING:.*]]:3 = scf.for {{.*}} iter_args(%{{.*}} = %{{.*}}, %{{.*}} = %[[SLOT]], %{{.*}} = %[[PARITY]])
// CHECK: nm_tile.matmul
// CHECK: scf.yield
// What the epilogue alone needs stands behind the K loop.
// CHECK-DAG: arith.divui %{{.*}}, %c512_i32
// CHECK-DAG: arith.minui %{{.*}}, %c16_i32
// CHECK: vector.transfer_write %[[RING]]#0
// CHECK: scf.yield %[[RING]]#1, %[[RING]]#2

// The producers wait until all have left the index of the tile before.
// CHECK: } else {
// CHECK: nvvm.setmaxregister decrease
// CHECK: scf.for %{{.*}} = %[[BX]] to %c2048 step %[[GX]] iter_args(%[[SLOT:.*]] = %c0{{.*}}, %[[PARITY:.*]] = %c1_i32)
// CHECK: nvvm.barrier id = %c2_i32
// CHECK: nm_tile.async_copy
// CHECK: nvvm.cp.async.wait.group 0
// CHECK-NEXT: nvvm.barrier id = %c2_i32
// CHECK: %[[RING:.*]]:2 = scf.for {{.*}} iter_args(%{{.*}} = %[[SLOT]], %{{.*}} = %[[PARITY]])
// CHECK: scf.yield %[[RING]]#0, %[[RING]]#1
func.func @tiles(%x: memref<256x4096xf16>, %v: memref<64x4096xf16>, %i: memref<64x32xi8>,
                 %out: memref<4096x4096xf32>) {
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  %c384 = arith.constant 384 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c64, %gy = %c32, %gz = %c1)
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
