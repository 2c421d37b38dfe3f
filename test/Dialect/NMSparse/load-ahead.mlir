// RUN: nm-opt %s --nm-sparse-load-ahead | FileCheck %s

// The row of the next iteration is on its way while this one is copied. A branch that
// all iterations take alike does not keep it.
// CHECK-LABEL: func.func @gather
// CHECK: %[[FIRST:.*]] = scf.if %{{.*}} -> (i32) {
// CHECK: memref.load %[[INDEX:.*]][
// CHECK: scf.for %[[I:.*]] = %[[LB:.*]] to %[[UB:.*]] step %[[STEP:.*]] iter_args(%[[ROW:.*]] = %[[FIRST]]) -> (i32)
// CHECK: %[[NEXT:.*]] = scf.if %{{.*}} -> (i32) {
// CHECK-NEXT: memref.load %[[INDEX]]
// CHECK: scf.if %{{.*}} {
// CHECK-NOT: memref.load
// CHECK: arith.index_castui %[[ROW]]
// CHECK: nvgpu.device_async_copy
// CHECK: scf.yield %[[NEXT]]
func.func @gather(%x: memref<64x64xf16>, %index: memref<?xi32>, %ub: index, %wide: i1) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %tile = memref.alloc() : memref<64xf16, #gpu.address_space<workgroup>>
    scf.for %i = %c0 to %ub step %c1 {
      scf.if %wide {
        %word = memref.load %index[%i] : memref<?xi32>
        %row = arith.index_castui %word : i32 to index
        %t = nvgpu.device_async_copy %x[%row, %c0], %tile[%c0], 8 : memref<64x64xf16> to memref<64xf16, #gpu.address_space<workgroup>>
      }
    }
    gpu.terminator
  }
  return
}

// What the launch writes, or may not be there, is loaded where it is.
// CHECK-LABEL: func.func @stay
// CHECK: scf.for %[[I:.*]] = %{{.*}} step %{{[a-z0-9_]+}} {
// CHECK-NEXT: memref.load
// CHECK: scf.for %[[J:.*]] = %{{.*}} step %{{[a-z0-9_]+}} {
// CHECK: scf.if
// CHECK-NEXT: memref.load
func.func @stay(%x: memref<64x64xf16>, %index: memref<?xi32>, %other: memref<?xi32>, %ub: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c5 = arith.constant 5 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %tile = memref.alloc() : memref<64xf16, #gpu.address_space<workgroup>>
    scf.for %i = %c0 to %ub step %c1 {
      %word = memref.load %index[%i] : memref<?xi32>
      %row = arith.index_castui %word : i32 to index
      memref.store %word, %index[%row] : memref<?xi32>
      %t = nvgpu.device_async_copy %x[%row, %c0], %tile[%c0], 8 : memref<64x64xf16> to memref<64xf16, #gpu.address_space<workgroup>>
    }
    scf.for %i = %c0 to %ub step %c1 {
      %there = arith.cmpi ult, %i, %c5 : index
      scf.if %there {
        %word = memref.load %other[%i] : memref<?xi32>
        %row = arith.index_castui %word : i32 to index
        %t = nvgpu.device_async_copy %x[%row, %c0], %tile[%c0], 8 : memref<64x64xf16> to memref<64xf16, #gpu.address_space<workgroup>>
      }
    }
    gpu.terminator
  }
  return
}
