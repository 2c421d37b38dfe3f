// RUN: nm-opt %s --nm-sparse-assign-stages --split-input-file | FileCheck %s --check-prefix=ASSIGN
// RUN: nm-opt %s --nm-sparse-assign-stages --nm-sparse-expand-stages --canonicalize --split-input-file | FileCheck %s --check-prefix=EXPAND

#w = #nm_sparse.encoding<8:32, block = [1, 128]>
#s = #nm_tile.schedule<tile = [64, 128, 16], product = mma<warps = [2, 4]>, transfers = {x = gather, values = copy, index = resident}, pipeline = async_groups<stages = 3>, grid = flat>

// A loop has the stages of its schedule; those that are there stay.

// ASSIGN-LABEL: func @gathered
// ASSIGN: nm_tile.k_loop {{.*}} stages = 3 iter_args

// Three tiles of each operand, the index once. The index has arrived before the
// first gather reads it. Two groups are in flight when the loop starts; one may
// stay in flight when a product reads its tile.

// EXPAND-LABEL: func @gathered
// EXPAND-DAG: %[[INDEX:.*]] = memref.alloc() : memref<16x1xi8, #gpu.address_space<workgroup>>
// EXPAND-DAG: %[[VALUES:.*]] = memref.alloc() : memref<3x16x128xf16, #nm_tile.shared<swizzled_rows>>
// EXPAND-DAG: %[[X:.*]] = memref.alloc() : memref<3x16x64xf16, #nm_tile.shared<swizzled_rows>>
// EXPAND: nm_tile.async_copy {{.*}} outs(%[[INDEX]]
// EXPAND-NEXT: nvvm.cp.async.commit.group
// EXPAND-NEXT: nvvm.cp.async.wait.group 0
// EXPAND-NEXT: gpu.barrier
// EXPAND-COUNT-2: nvvm.cp.async.commit.group
// EXPAND-NOT: nvvm.cp.async.commit.group
// EXPAND: scf.for
// EXPAND: nvvm.cp.async.wait.group 1
// EXPAND-NEXT: gpu.barrier
// EXPAND: scf.if
// EXPAND-NEXT: nm_tile.async_copy
// EXPAND: scf.if
// EXPAND-NEXT: nm_tile.async_gather
// EXPAND: nvvm.cp.async.commit.group
// EXPAND-NOT: nvvm.cp.async.commit.group
// EXPAND: nm_tile.matmul
// EXPAND: scf.yield
func.func @gathered(%x: memref<256x64xf16>, %v: memref<64x128xf16>, %i: memref<16x1xi8>) {
  %c1 = arith.constant 1 : index
  %c256 = arith.constant 256 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c256, %sy = %c1, %sz = %c1) {
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
    gpu.terminator
  }
  return
}

// -----

#w = #nm_sparse.encoding<8:32, block = [1, 128]>
#s = #nm_tile.schedule<tile = [64, 128, 16], product = wgmma<warps = [1, 8]>, transfers = {x = gather, values = copy, index = resident}, pipeline = async_groups<stages = 2>, grid = flat>

// What products of warpgroups read is aligned.

// EXPAND-LABEL: func @warpgroups
// EXPAND: memref.alloc() {alignment = 1024 : i64} : memref<2x16x128xf16, #nm_tile.shared<swizzled_blocks>>
func.func @warpgroups(%x: memref<16x64xf16, #nm_tile.shared<swizzled_blocks>>, %v: memref<16x128xf16>) {
  %c1 = arith.constant 1 : index
  %c256 = arith.constant 256 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c256, %sy = %c1, %sz = %c1) {
    %c0 = arith.constant 0 : index
    %c2 = arith.constant 2 : index
    %c8 = arith.constant 8 : index
    %zero = arith.constant dense<0.0> : vector<64x128xf32>
    %vt = memref.alloc() : memref<16x128xf16, #nm_tile.shared<swizzled_blocks>>
    %sum = nm_tile.k_loop %k = %c0 to %c8 step %c2 iter_args(%acc = %zero) -> (vector<64x128xf32>) {
      nm_tile.async_copy ins(%v : memref<16x128xf16>)
        outs(%vt : memref<16x128xf16, #nm_tile.shared<swizzled_blocks>>)
      %r = nm_tile.matmul #w schedule = #s condensed
        ins(%x, %vt : memref<16x64xf16, #nm_tile.shared<swizzled_blocks>>,
                      memref<16x128xf16, #nm_tile.shared<swizzled_blocks>>)
        acc(%acc : vector<64x128xf32>) -> vector<64x128xf32>
      nm_tile.yield %r : vector<64x128xf32>
    }
    gpu.terminator
  }
  return
}

// -----

#w = #nm_sparse.encoding<2:4>
#s = #nm_tile.schedule<tile = [32, 32, 8], product = simt<warps = [1, 1]>, transfers = {x = copy, values = copy, index = staged}, pipeline = async_groups<stages = 2>, grid = flat>

// Given stages decide how many tiles there are.

// ASSIGN-LABEL: func @given
// ASSIGN: nm_tile.k_loop {{.*}} stages = 4 iter_args
// EXPAND-LABEL: func @given
// EXPAND: memref.alloc() : memref<4x8x32xf32, #gpu.address_space<workgroup>>
// EXPAND: nvvm.cp.async.wait.group 2
func.func @given(%x: memref<16x32xf32, #gpu.address_space<workgroup>>, %v: memref<8x32xf32>,
                 %i: memref<8x32xi8, #gpu.address_space<workgroup>>) {
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c32, %sy = %c1, %sz = %c1) {
    %c0 = arith.constant 0 : index
    %c4 = arith.constant 4 : index
    %c64 = arith.constant 64 : index
    %zero = arith.constant dense<0.0> : vector<32x32xf32>
    %vt = memref.alloc() : memref<8x32xf32, #gpu.address_space<workgroup>>
    %sum = nm_tile.k_loop %k = %c0 to %c64 step %c4 stages = 4 iter_args(%acc = %zero) -> (vector<32x32xf32>) {
      nm_tile.async_copy ins(%v : memref<8x32xf32>)
        outs(%vt : memref<8x32xf32, #gpu.address_space<workgroup>>)
      %r = nm_tile.matmul #w schedule = #s
        ins(%x, %vt, %i : memref<16x32xf32, #gpu.address_space<workgroup>>,
                      memref<8x32xf32, #gpu.address_space<workgroup>>, memref<8x32xi8, #gpu.address_space<workgroup>>)
        acc(%acc : vector<32x32xf32>) -> vector<32x32xf32>
      nm_tile.yield %r : vector<32x32xf32>
    }
    gpu.terminator
  }
  return
}

// -----

#w = #nm_sparse.encoding<8:32, block = [1, 32]>
#s = #nm_tile.schedule<tile = [32, 32, 8], product = simt<warps = [1, 1]>, transfers = {x = copy, values = copy, index = resident}, pipeline = async_groups<stages = 2>, grid = flat>

// Only the product reads this index: it arrives with the first group.

// EXPAND-LABEL: func @whole_windows
// EXPAND: nm_tile.async_copy ins(%arg2
// EXPAND-NOT: gpu.barrier
// EXPAND: scf.for
// EXPAND: nvvm.cp.async.wait.group 0
// EXPAND-NEXT: gpu.barrier
// EXPAND: nm_tile.matmul
func.func @whole_windows(%x: memref<32x32xf32, #gpu.address_space<workgroup>>, %v: memref<8x32xf32>,
                    %i: memref<8x1xi8>) {
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c32, %sy = %c1, %sz = %c1) {
    %c0 = arith.constant 0 : index
    %c64 = arith.constant 64 : index
    %zero = arith.constant dense<0.0> : vector<32x32xf32>
    %it = memref.alloc() : memref<8x1xi8, #gpu.address_space<workgroup>>
    %vt = memref.alloc() : memref<8x32xf32, #gpu.address_space<workgroup>>
    nm_tile.async_copy ins(%i : memref<8x1xi8>)
      outs(%it : memref<8x1xi8, #gpu.address_space<workgroup>>)
    %sum = nm_tile.k_loop %k = %c0 to %c64 step %c1 iter_args(%acc = %zero) -> (vector<32x32xf32>) {
      nm_tile.async_copy ins(%v : memref<8x32xf32>)
        outs(%vt : memref<8x32xf32, #gpu.address_space<workgroup>>)
      %r = nm_tile.matmul #w schedule = #s
        ins(%x, %vt, %it : memref<32x32xf32, #gpu.address_space<workgroup>>,
                      memref<8x32xf32, #gpu.address_space<workgroup>>, memref<8x1xi8, #gpu.address_space<workgroup>>)
        acc(%acc : vector<32x32xf32>) -> vector<32x32xf32>
      nm_tile.yield %r : vector<32x32xf32>
    }
    gpu.terminator
  }
  return
}
