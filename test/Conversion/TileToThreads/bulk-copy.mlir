// RUN: nm-opt %s --nm-sparse-lay-out-accumulators --convert-nm-tile-to-threads --canonicalize --split-input-file --verify-diagnostics | FileCheck %s

#w = #nm_sparse.encoding<8:16, block = [1, 128]>
#s = #nm_tile.schedule<tile = [64, 128, 32], product = wgmma<warps = [1, 8]>, transfers = {x = gather, values = bulk, index = resident}, pipeline = ring<stages = 3, producers = 4>, grid = flat>
!map = !nvgpu.tensormap.descriptor<tensor = memref<32x64xf16, 3>, swizzle = swizzle_128b, l2promo = l2promo_128b, oob = zero, interleave = none>
!tile = memref<32x128xf16, #nm_tile.shared<swizzled_blocks>>
!x = memref<32x64xf16, #nm_tile.shared<swizzled_blocks>>

// The address of the map comes from outside; the first of the threads announces
// the bytes and copies one block of 64 columns after the other, the innermost
// coordinate first.

// CHECK-LABEL: func @copy(
// CHECK-SAME: %[[MAP:[a-z0-9]+]]: !nvgpu
// CHECK: %[[ADDRESS:.*]] = builtin.unrealized_conversion_cast %[[MAP]] : {{.*}} to !llvm.ptr
// CHECK: gpu.launch
// CHECK: %[[FIRST:.*]] = arith.cmpi eq, %{{.*}}, %c256
// CHECK: scf.if %[[FIRST]]
// CHECK-NEXT: nvvm.mbarrier.arrive.expect_tx %[[BARRIER:.*]], %c8192_i32
// CHECK: %[[K:.*]] = arith.index_castui %{{.*}} : index to i32
// CHECK: nvvm.cp.async.bulk.tensor.shared.cluster.global %{{.*}}, %[[ADDRESS]], %[[BARRIER]], box[%{{.*}}, %[[K]]] {{.*}} !llvm.ptr<7>
// CHECK: nvvm.cp.async.bulk.tensor.shared.cluster.global %{{.*}}, %[[ADDRESS]], %[[BARRIER]], box
// CHECK-NOT: nvvm.cp.async.bulk
func.func @copy(%map: !map, %vt: !tile, %xt: !x, %k: index, %n: index) {
  %c1 = arith.constant 1 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %zero = arith.constant dense<0.0> : vector<64x128xf32>
    %bar = memref.alloc() : memref<1xi64, #gpu.address_space<workgroup>>
    %address = memref.extract_aligned_pointer_as_index %bar : memref<1xi64, #gpu.address_space<workgroup>> -> index
    %word = arith.index_castui %address : index to i64
    %full = llvm.inttoptr %word : i64 to !llvm.ptr<3>
    nm_tile.bulk_copy threads = [256, 128] ins(%map[%k, %n] : !map) outs(%vt : !tile) mbarrier(%full : !llvm.ptr<3>)
    %r = nm_tile.matmul #w schedule = #s condensed
      ins(%xt, %vt : !x, !tile) acc(%zero : vector<64x128xf32>) -> vector<64x128xf32>
    gpu.terminator
  }
  return
}

// -----

#w = #nm_sparse.encoding<8:16, block = [1, 128]>
#s = #nm_tile.schedule<tile = [64, 128, 32], product = mma<warps = [2, 4]>, transfers = {x = gather, values = bulk, index = resident}, pipeline = ring<stages = 3, producers = 4>, grid = flat>
!map = !nvgpu.tensormap.descriptor<tensor = memref<32x64xf16, 3>, swizzle = swizzle_128b, l2promo = l2promo_128b, oob = zero, interleave = none>
!tile = memref<32x128xf16, #nm_tile.shared<swizzled_blocks>>
!x = memref<32x64xf16, #nm_tile.shared<swizzled_blocks>>

// Warps that read the tile themselves do so in another proxy.

// CHECK-LABEL: func @copy_read_by_warps
// CHECK: nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.shared>
// CHECK-NEXT: nvvm.mbarrier.arrive.expect_tx
func.func @copy_read_by_warps(%map: !map, %vt: !tile, %xt: !x, %k: index, %n: index) {
  %c1 = arith.constant 1 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %zero = arith.constant dense<0.0> : vector<64x128xf32>
    %bar = memref.alloc() : memref<1xi64, #gpu.address_space<workgroup>>
    %address = memref.extract_aligned_pointer_as_index %bar : memref<1xi64, #gpu.address_space<workgroup>> -> index
    %word = arith.index_castui %address : index to i64
    %full = llvm.inttoptr %word : i64 to !llvm.ptr<3>
    nm_tile.bulk_copy threads = [256, 128] ins(%map[%k, %n] : !map) outs(%vt : !tile) mbarrier(%full : !llvm.ptr<3>)
    %r = nm_tile.matmul #w schedule = #s condensed
      ins(%xt, %vt : !x, !tile) acc(%zero : vector<64x128xf32>) -> vector<64x128xf32>
    gpu.terminator
  }
  return
}

// -----

#w = #nm_sparse.encoding<8:16, block = [1, 128]>
#s = #nm_tile.schedule<tile = [64, 128, 32], product = wgmma<warps = [1, 8]>, transfers = {x = gather, values = bulk, index = resident}, pipeline = ring<stages = 3, producers = 4>, grid = flat>
!map = !nvgpu.tensormap.descriptor<tensor = memref<48x64xf16, 3>, swizzle = swizzle_128b, l2promo = l2promo_128b, oob = zero, interleave = none>
!part = !nvgpu.tensormap.descriptor<tensor = memref<16x64xf16, 3>, swizzle = swizzle_128b, l2promo = l2promo_128b, oob = zero, interleave = none>
!tile = memref<48x128xf16, #nm_tile.shared<swizzled_blocks>>
!values = memref<32x128xf16, #nm_tile.shared<swizzled_blocks>>
!x = memref<32x64xf16, #nm_tile.shared<swizzled_blocks>>

// Where the tensor has not so many rows, boxes of 16 of them; those that are
// outside copy the first rows of the tensor.

// CHECK-LABEL: func @copy_within(
// CHECK-SAME: %[[MAP:[a-z0-9]+]]: !nvgpu{{.*}}, %[[PART:[a-z0-9]+]]: !nvgpu
// CHECK-SAME: %[[K:[a-z0-9]+]]: index, %[[N:[a-z0-9]+]]: index, %[[ROWS:[a-z0-9]+]]: index) {
// CHECK-DAG: %[[WHOLE:.*]] = builtin.unrealized_conversion_cast %[[MAP]]
// CHECK-DAG: %[[SOME:.*]] = builtin.unrealized_conversion_cast %[[PART]]
// CHECK: nvvm.mbarrier.arrive.expect_tx %{{.*}}, %c12288_i32
// CHECK: %[[END:.*]] = arith.addi %[[K]], %c48
// CHECK: %[[ENDS:.*]] = arith.cmpi ult, %[[ROWS]], %[[END]]
// CHECK: scf.if %[[ENDS]] {
// CHECK-COUNT-2: nvvm.cp.async.bulk.tensor{{.*}}, %[[SOME]],
// CHECK: %[[BEHIND:.*]] = arith.addi %[[K]], %c16
// CHECK: %[[IS:.*]] = arith.cmpi ult, %[[BEHIND]], %[[ROWS]]
// CHECK: %[[AT:.*]] = arith.select %[[IS]], %[[BEHIND]], %c0
// CHECK: %[[FIRST:.*]] = arith.index_castui %[[AT]]
// CHECK: nvvm.cp.async.bulk.tensor{{.*}}, %[[SOME]], %{{.*}}, box[%{{.*}}, %[[FIRST]]]
// CHECK-COUNT-3: nvvm.cp.async.bulk.tensor{{.*}}, %[[SOME]],
// CHECK: } else {
// CHECK-COUNT-2: nvvm.cp.async.bulk.tensor{{.*}}, %[[WHOLE]],
// CHECK-NOT: nvvm.cp.async.bulk.tensor
// CHECK: return
func.func @copy_within(%map: !map, %part: !part, %xt: !x, %vt: !values, %tile: !tile, %k: index, %n: index, %rows: index) {
  %c1 = arith.constant 1 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %zero = arith.constant dense<0.0> : vector<64x128xf32>
    %bar = memref.alloc() : memref<1xi64, #gpu.address_space<workgroup>>
    %address = memref.extract_aligned_pointer_as_index %bar : memref<1xi64, #gpu.address_space<workgroup>> -> index
    %word = arith.index_castui %address : index to i64
    %full = llvm.inttoptr %word : i64 to !llvm.ptr<3>
    nm_tile.bulk_copy threads = [256, 128] ins(%map[%k, %n] : !map) outs(%tile : !tile) mbarrier(%full : !llvm.ptr<3>) within(%rows by %part : !part)
    %r = nm_tile.matmul #w schedule = #s condensed
      ins(%xt, %vt : !x, !values) acc(%zero : vector<64x128xf32>) -> vector<64x128xf32>
    gpu.terminator
  }
  return
}

// -----

#w = #nm_sparse.encoding<8:16, block = [1, 128]>
#s = #nm_tile.schedule<tile = [64, 128, 32], product = wgmma<warps = [1, 8]>, transfers = {x = gather, values = bulk, index = resident}, pipeline = ring<stages = 3, producers = 4>, grid = flat>
!map = !nvgpu.tensormap.descriptor<tensor = memref<32x64xf16, 3>, swizzle = swizzle_128b, l2promo = l2promo_128b, oob = zero, interleave = none>
!tile = memref<32x128xf16, #nm_tile.shared<swizzled_blocks>>
!x = memref<32x64xf16, #nm_tile.shared<swizzled_blocks>>

func.func @no_barrier(%map: !map, %vt: !tile, %xt: !x, %k: index) {
  %c1 = arith.constant 1 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %zero = arith.constant dense<0.0> : vector<64x128xf32>
    // expected-error @below {{needs an mbarrier to arrive on: run --nm-sparse-specialize-warps first}}
    // expected-error @below {{failed to legalize operation}}
    nm_tile.bulk_copy ins(%map[%k, %k] : !map) outs(%vt : !tile)
    %r = nm_tile.matmul #w schedule = #s condensed
      ins(%xt, %vt : !x, !tile) acc(%zero : vector<64x128xf32>) -> vector<64x128xf32>
    gpu.terminator
  }
  return
}
