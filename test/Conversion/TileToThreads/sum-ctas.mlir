// RUN: nm-opt %s --split-input-file --verify-diagnostics --nm-sparse-lay-out-accumulators --convert-nm-tile-to-threads --canonicalize | FileCheck %s

// Each CTA adds its own share of a piece, from its own memory, and those of the
// CTAs behind it, 16 bytes of a row at a time: 16 lanes read a row.

#w = #nm_sparse.encoding<8:32, block = [1, 64]>
#s = #nm_tile.schedule<tile = [16, 64, 16], product = mma<warps = [1, 2]>, transfers = {x = gather, values = copy, index = resident}, pipeline = async_groups<stages = 2>, grid = flat<split_k = 2, in_cluster = true>>

// CHECK-LABEL: func @piece
// CHECK: %[[OWN:.*]] = llvm.inttoptr %{{.*}} : i64 to !llvm.ptr<3>
// CHECK: %[[RANK:.*]] = nvvm.read.ptx.sreg.cluster.ctarank
// CHECK: %[[OTHER:.*]] = nvvm.mapa %[[OWN]], %{{.*}} : !llvm.ptr<3> -> !llvm.ptr<7>
// CHECK: %[[AT:.*]] = llvm.getelementptr %[[OWN]][%[[PLACE:.*]]] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, f32
// CHECK: %[[A:.*]] = llvm.load %[[AT]] {alignment = 16 : i64} : !llvm.ptr<3> -> vector<4xf32>
// CHECK: %[[BEHIND:.*]] = llvm.getelementptr %[[OTHER]][%[[PLACE]]] : (!llvm.ptr<7>, i32) -> !llvm.ptr<7>, f32
// CHECK: %[[B:.*]] = llvm.load %[[BEHIND]] {alignment = 16 : i64} : !llvm.ptr<7> -> vector<4xf32>
// CHECK: arith.addf %[[A]], %[[B]] : vector<4xf32>
// CHECK: llvm.load {{.*}} : !llvm.ptr<3> -> vector<4xf32>
// CHECK: llvm.load {{.*}} : !llvm.ptr<7> -> vector<4xf32>
// CHECK-NOT: llvm.load
// CHECK-COUNT-2: vector.store %{{.*}}, %arg2[{{.*}}] {{.*}} : memref<16x64xf32>, vector<4xf32>
func.func @piece(%x: memref<16x16xf16, 3>, %v: memref<16x64xf16, #nm_tile.shared<swizzled_rows>>, %out: memref<16x64xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %zero = arith.constant dense<0.0> : vector<16x64xf32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c64, %sy = %c1, %sz = %c1) {
    %r = nm_tile.matmul #w schedule = #s condensed
      ins(%x, %v : memref<16x16xf16, 3>, memref<16x64xf16, #nm_tile.shared<swizzled_rows>>)
      acc(%zero : vector<16x64xf32>) -> vector<16x64xf32>
    %shares = memref.alloc() : memref<16x72xf32, #gpu.address_space<workgroup>>
    vector.transfer_write %r, %shares[%c0, %c0] {in_bounds = [true, true]} : vector<16x64xf32>, memref<16x72xf32, #gpu.address_space<workgroup>>
    %sum = nm_tile.sum_ctas %shares[%bz] ctas = 2 schedule = #s : memref<16x72xf32, #gpu.address_space<workgroup>> -> vector<8x64xf32>
    vector.transfer_write %sum, %out[%c0, %c0] {in_bounds = [true, true]} : vector<8x64xf32>, memref<16x64xf32>
    gpu.terminator
  }
  return
}
