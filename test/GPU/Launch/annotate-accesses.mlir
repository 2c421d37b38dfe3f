// RUN: nm-opt %s --nm-sparse-annotate-accesses | FileCheck %s

gpu.module @kernels {
  // CHECK-LABEL: gpu.func @copy
  // CHECK-SAME: memref<64xf16> {llvm.readonly}, %{{.*}}: memref<64xf16> {llvm.writeonly}
  gpu.func @copy(%x: memref<64xf16>, %y: memref<64xf16>) kernel {
    %i = gpu.thread_id x
    %v = memref.load %x[%i] : memref<64xf16>
    memref.store %v, %y[%i] : memref<64xf16>
    gpu.return
  }

  // A sum is read and written, through a view, too.
  // CHECK-LABEL: gpu.func @add
  // CHECK-SAME: %{{[a-z0-9]*}}: memref<64x2xf32>)
  gpu.func @add(%sum: memref<64x2xf32>) kernel {
    %i = gpu.thread_id x
    %row = memref.subview %sum[%i, 0] [1, 2] [1, 1]
        : memref<64x2xf32> to memref<2xf32, strided<[1], offset: ?>>
    %v = memref.load %row[%i] : memref<2xf32, strided<[1], offset: ?>>
    memref.store %v, %row[%i] : memref<2xf32, strided<[1], offset: ?>>
    gpu.return
  }

  // Stores and loads through addresses; the last bits of one are no address, and
  // a prefetch is no access.
  // CHECK-LABEL: gpu.func @addresses
  // CHECK-SAME: memref<64xf32> {llvm.readonly}, %{{.*}}: memref<64xf32> {llvm.writeonly}, %{{[a-z0-9]*}}: memref<64xf32>)
  gpu.func @addresses(%x: memref<64xf32>, %y: memref<64xf32>,
                      %z: memref<64xf32>) kernel {
    %c15 = arith.constant 15 : index
    %from = memref.extract_aligned_pointer_as_index %x : memref<64xf32> -> index
    %bits = arith.andi %from, %c15 : index
    %from64 = arith.index_cast %from : index to i64
    %from_pointer = llvm.inttoptr %from64 : i64 to !llvm.ptr<1>
    nvvm.prefetch level = L2, %from_pointer : !llvm.ptr<1>
    %v = llvm.load %from_pointer : !llvm.ptr<1> -> f32
    %to = memref.extract_aligned_pointer_as_index %y : memref<64xf32> -> index
    %to64 = arith.index_cast %to : index to i64
    %to_pointer = llvm.inttoptr %to64 : i64 to !llvm.ptr<1>
    llvm.store %v, %to_pointer : f32, !llvm.ptr<1>
    // Nobody knows what reads this address.
    %kept = memref.extract_aligned_pointer_as_index %z : memref<64xf32> -> index
    %kept64 = arith.index_cast %kept : index to i64
    %next = llvm.getelementptr %to_pointer[4] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i8
    llvm.store %kept64, %next : i64, !llvm.ptr<1>
    %number = arith.index_cast %bits : index to i32
    llvm.store %number, %next : i32, !llvm.ptr<1>
    gpu.return
  }
}
