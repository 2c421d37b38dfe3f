// RUN: nm-opt %s --nm-sparse-allocate-shared-memory | FileCheck %s
// RUN: not nm-opt %s --nm-sparse-allocate-shared-memory=max-bytes=640 2>&1 | FileCheck %s --check-prefix=LIMIT

// LIMIT: error: 'gpu.launch' op needs 656 bytes of shared memory, the limit is 640: choose a smaller tile or fewer stages

// Tiles start at multiples of 128 bytes.

// CHECK-LABEL: func @tiles
// CHECK: %[[BYTES:.*]] = arith.constant 656 : i32
// CHECK: gpu.launch {{.*}} dynamic_shared_memory_size %[[BYTES]]
// CHECK: %[[WINDOW:.*]] = gpu.dynamic_shared_memory : memref<?xi8, #gpu.address_space<workgroup>>
// CHECK-DAG: %[[FIRST:.*]] = arith.constant 0 : index
// CHECK-DAG: memref.view %[[WINDOW]][%[[FIRST]]][] {{.*}} to memref<3x5x4xf32
// CHECK-DAG: %[[SECOND:.*]] = arith.constant 256 : index
// CHECK-DAG: memref.view %[[WINDOW]][%[[SECOND]]][] {{.*}} to memref<100x4xi8
// CHECK-NOT: memref.alloc
func.func @tiles() {
  %c1 = arith.constant 1 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %c0 = arith.constant 0 : index
    %zero = arith.constant 0.0 : f32
    %none = arith.constant 0 : i8
    %a = memref.alloc() : memref<3x5x4xf32, #gpu.address_space<workgroup>>
    %b = memref.alloc() : memref<100x4xi8, #gpu.address_space<workgroup>>
    memref.store %zero, %a[%c0, %c0, %c0] : memref<3x5x4xf32, #gpu.address_space<workgroup>>
    memref.store %none, %b[%c0, %c0] : memref<100x4xi8, #gpu.address_space<workgroup>>
    gpu.terminator
  }
  return
}

// One that asks for more comes first.

// CHECK-LABEL: func @aligned
// CHECK: %[[BYTES:.*]] = arith.constant 2064 : i32
// CHECK: gpu.launch {{.*}} dynamic_shared_memory_size %[[BYTES]]
// CHECK: %[[WINDOW:.*]] = gpu.dynamic_shared_memory
// CHECK-DAG: %[[FIRST:.*]] = arith.constant 0 : index
// CHECK-DAG: memref.view %[[WINDOW]][%[[FIRST]]][] {{.*}} to memref<1024xf16
// CHECK-DAG: %[[SECOND:.*]] = arith.constant 2048 : index
// CHECK-DAG: memref.view %[[WINDOW]][%[[SECOND]]][] {{.*}} to memref<16xi8
func.func @aligned() {
  %c1 = arith.constant 1 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %c0 = arith.constant 0 : index
    %zero = arith.constant 0.0 : f16
    %none = arith.constant 0 : i8
    %a = memref.alloc() : memref<16xi8, #gpu.address_space<workgroup>>
    %b = memref.alloc() {alignment = 1024 : i64} : memref<1024xf16, #gpu.address_space<workgroup>>
    memref.store %none, %a[%c0] : memref<16xi8, #gpu.address_space<workgroup>>
    memref.store %zero, %b[%c0] : memref<1024xf16, #gpu.address_space<workgroup>>
    gpu.terminator
  }
  return
}

// Bytes that were freed may be taken again, as far as all of it is free where the new
// buffer begins: %d has the bytes of %a and %b, but not those of %c.

// CHECK-LABEL: func @freed
// CHECK: arith.constant 640 : i32
// CHECK-DAG: %[[A:.*]] = arith.constant 0 : index
// CHECK-DAG: memref.view %{{.*}}[%[[A]]][] {{.*}} to memref<64xf32
// CHECK-DAG: %[[B:.*]] = arith.constant 256 : index
// CHECK-DAG: memref.view %{{.*}}[%[[B]]][] {{.*}} to memref<32xf32
// CHECK-DAG: %[[C:.*]] = arith.constant 384 : index
// CHECK-DAG: memref.view %{{.*}}[%[[C]]][] {{.*}} to memref<64xi32
// CHECK-DAG: %[[D:.*]] = arith.constant 0 : index
// CHECK-DAG: memref.view %{{.*}}[%[[D]]][] {{.*}} to memref<96xf32
// CHECK-NOT: memref.dealloc
func.func @freed() {
  %c1 = arith.constant 1 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %c0 = arith.constant 0 : index
    %zero = arith.constant 0.0 : f32
    %none = arith.constant 0 : i32
    %a = memref.alloc() : memref<64xf32, #gpu.address_space<workgroup>>
    %b = memref.alloc() : memref<32xf32, #gpu.address_space<workgroup>>
    %c = memref.alloc() : memref<64xi32, #gpu.address_space<workgroup>>
    memref.store %zero, %a[%c0] : memref<64xf32, #gpu.address_space<workgroup>>
    memref.store %zero, %b[%c0] : memref<32xf32, #gpu.address_space<workgroup>>
    gpu.barrier
    memref.dealloc %a : memref<64xf32, #gpu.address_space<workgroup>>
    memref.dealloc %b : memref<32xf32, #gpu.address_space<workgroup>>
    %d = memref.alloc() : memref<96xf32, #gpu.address_space<workgroup>>
    memref.store %zero, %d[%c0] : memref<96xf32, #gpu.address_space<workgroup>>
    memref.store %none, %c[%c0] : memref<64xi32, #gpu.address_space<workgroup>>
    gpu.terminator
  }
  return
}
