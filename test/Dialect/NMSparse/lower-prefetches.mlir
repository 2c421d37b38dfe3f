// RUN: nm-opt %s --pass-pipeline="builtin.module(gpu.module(nm-sparse-lower-prefetches,canonicalize,cse))" | FileCheck %s

// Thread t of CTA c asks for piece t * CTAs + c: 8 threads for 16384 bytes. The
// last piece ends where the buffer does, and what is not aligned is left out.
// CHECK: gpu.func @kernel(%[[X:.*]]: memref<1000x?xf16>)
// CHECK-DAG: %[[PIECE:.*]] = arith.constant 2048 : index
// CHECK-DAG: %[[THREADS:.*]] = arith.constant 8 : index
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
// CHECK: %[[THREAD:.*]] = gpu.thread_id x
// CHECK: %[[OFFSET:.*]] = arith.muli %{{.*}}, %[[PIECE]]
// CHECK: %[[FROM:.*]] = arith.addi %[[BEGIN]], %[[OFFSET]]
// CHECK-DAG: %[[IS_ONE:.*]] = arith.cmpi ult, %[[THREAD]], %[[THREADS]]
// CHECK-DAG: %[[INSIDE:.*]] = arith.cmpi ult, %[[FROM]], %[[END]]
// CHECK: %[[ASKS:.*]] = arith.andi %[[IS_ONE]], %[[INSIDE]]
// CHECK: scf.if %[[ASKS]]
// CHECK: %[[LEFT:.*]] = arith.subi %[[END]], %[[FROM]]
// CHECK: %[[SIZE:.*]] = arith.minui %[[LEFT]], %[[PIECE]]
// CHECK: %[[SIZE32:.*]] = arith.index_castui %[[SIZE]] : index to i32
// CHECK: nvvm.cp.async.bulk.prefetch %{{.*}}, %[[SIZE32]] : <1>
gpu.module @kernels {
  gpu.func @kernel(%x: memref<1000x?xf16>) kernel {
    nm_sparse.prefetch %x, 16384 : memref<1000x?xf16>
    gpu.return
  }
}
