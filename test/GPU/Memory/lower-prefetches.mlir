// RUN: nm-opt %s --pass-pipeline="builtin.module(gpu.module(nm-sparse-lower-prefetches,canonicalize,cse))" | FileCheck %s

// Thread t of CTA c asks for piece t * CTAs + c: 8 threads for 16384 bytes, and of
// the CTAs the first 132, whose number is x + X * (y + Y * z). The last piece
// ends where the buffer does, and what is not aligned is left out.
// CHECK: gpu.func @kernel(%[[X:.*]]: memref<1000x?xf16>)
// CHECK-DAG: %[[PIECE:.*]] = arith.constant 2048 : index
// CHECK-DAG: %[[THREADS:.*]] = arith.constant 8 : index
// CHECK-DAG: %[[ASKING:.*]] = arith.constant 132 : index
// CHECK-DAG: %[[UNIT:.*]] = arith.constant -16 : index
// CHECK-DAG: %[[PAD:.*]] = arith.constant 15 : index
// CHECK-DAG: %[[ROW:.*]] = arith.constant 2000 : index
// CHECK-DAG: %[[TOKENS:.*]] = memref.dim %[[X]]
// CHECK-DAG: %[[BYTES:.*]] = arith.muli %[[TOKENS]], %[[ROW]]
// CHECK-DAG: %[[BASE:.*]] = memref.extract_aligned_pointer_as_index %[[X]]
// CHECK: %[[SUM:.*]] = arith.addi %[[BASE]], %[[BYTES]]
// CHECK: %[[END:.*]] = arith.andi %[[SUM]], %[[UNIT]]
// CHECK: %[[UP:.*]] = arith.addi %[[BASE]], %[[PAD]]
// CHECK: %[[BEGIN:.*]] = arith.andi %[[UP]], %[[UNIT]]
// CHECK: %[[SIZE_Z:.*]] = gpu.grid_dim z
// CHECK: %[[Z:.*]] = gpu.block_id z
// CHECK: %[[SIZE_Y:.*]] = gpu.grid_dim y
// CHECK: %[[PLANES:.*]] = arith.muli %[[Z]], %[[SIZE_Y]]
// CHECK: %[[Y:.*]] = gpu.block_id y
// CHECK: %[[ROWS:.*]] = arith.addi %[[PLANES]], %[[Y]]
// CHECK: %[[SIZE_ZY:.*]] = arith.muli %[[SIZE_Z]], %[[SIZE_Y]]
// CHECK: %[[SIZE_X:.*]] = gpu.grid_dim x
// CHECK: %[[LINES:.*]] = arith.muli %[[ROWS]], %[[SIZE_X]]
// CHECK: %[[BLOCK_X:.*]] = gpu.block_id x
// CHECK: %[[CTA:.*]] = arith.addi %[[LINES]], %[[BLOCK_X]]
// CHECK: %[[CTAS:.*]] = arith.muli %[[SIZE_ZY]], %[[SIZE_X]]
// CHECK: %[[STRIDE:.*]] = arith.minui %[[CTAS]], %[[ASKING]]
// CHECK: %[[THREAD:.*]] = gpu.thread_id x
// CHECK: %[[TURN:.*]] = arith.muli %[[THREAD]], %[[STRIDE]]
// CHECK: %[[NUMBER:.*]] = arith.addi %[[TURN]], %[[CTA]]
// CHECK: %[[OFFSET:.*]] = arith.muli %[[NUMBER]], %[[PIECE]]
// CHECK: %[[FROM:.*]] = arith.addi %[[BEGIN]], %[[OFFSET]]
// CHECK-DAG: %[[IS_ONE:.*]] = arith.cmpi ult, %[[THREAD]], %[[THREADS]]
// CHECK-DAG: %[[INSIDE:.*]] = arith.cmpi ult, %[[FROM]], %[[END]]
// CHECK: %[[IN_BOTH:.*]] = arith.andi %[[IS_ONE]], %[[INSIDE]]
// CHECK: %[[IS_FIRST:.*]] = arith.cmpi ult, %[[CTA]], %[[ASKING]]
// CHECK: %[[ASKS:.*]] = arith.andi %[[IN_BOTH]], %[[IS_FIRST]]
// No branch stands around it: behind one, LLVM selects other instructions.
// CHECK-NOT: scf.if
// CHECK: %[[LEFT:.*]] = arith.subi %[[END]], %[[FROM]]
// CHECK: %[[SIZE:.*]] = arith.minui %[[LEFT]], %[[PIECE]]
// CHECK: %[[SIZE32:.*]] = arith.index_castui %[[SIZE]] : index to i32
// CHECK: nvvm.inline_ptx "cp.async.bulk.prefetch.L2.global [{$r0}], {$r1};" ro(%{{.*}}, %[[SIZE32]] : !llvm.ptr<1>, i32), predicate = %[[ASKS]]
gpu.module @kernels {
  gpu.func @kernel(%x: memref<1000x?xf16>) kernel {
    nm_tile.prefetch %x, 16384 of 132 : memref<1000x?xf16>
    gpu.return
  }
}
