// RUN: nm-opt %s --nm-sparse-load-ahead | FileCheck %s

// The row of the next iteration is on its way while this one is copied, on the
// conditions that it was loaded on.
// CHECK-LABEL: func.func @gather
// CHECK: %[[FIRST:.*]] = scf.if %{{.*}} -> (i32) {
// CHECK: memref.load %[[INDEX:.*]][
// CHECK: scf.for %[[I:.*]] = %[[LB:.*]] to %[[UB:.*]] step %[[STEP:.*]] iter_args(%[[ROW:.*]] = %[[FIRST]]) -> (i32)
// CHECK: %[[MORE:.*]] = arith.cmpi slt, %[[I]]
// CHECK: %[[BOTH:.*]] = arith.andi %[[MORE]], %[[WIDE:arg[0-9]+]] : i1
// CHECK: %[[NEXT:.*]] = scf.if %[[BOTH]] -> (i32) {
// CHECK-NEXT: memref.load %[[INDEX]]
// CHECK: scf.if %[[WIDE]] {
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

// So are the rows of a later step, where there is one: whether there is can be told
// ahead. Another row may be loaded where there is none.
// CHECK-LABEL: func.func @later
// CHECK: scf.for %[[I:[a-z0-9_]+]] = %{{.*}} iter_args(%[[ROW:.*]] = %{{.*}}, %[[OTHER:.*]] = %{{.*}}) -> (i32, i32)
// CHECK: %[[MORE:.*]] = arith.cmpi slt, %[[I]]
// CHECK: %[[NEXT:.*]] = arith.addi %[[I]]
// CHECK: %[[THERE:.*]] = arith.cmpi ult, %[[NEXT]], %c5
// CHECK: %[[IF:.*]] = arith.andi %[[MORE]], %[[THERE]] : i1
// CHECK: scf.if %[[IF]] -> (i32) {
// CHECK-NEXT: memref.load
// CHECK: %[[GONE:.*]] = arith.xori %[[THERE]], %true
// CHECK: %[[ELSE:.*]] = arith.andi %[[MORE]], %[[GONE]] : i1
// CHECK: scf.if %[[ELSE]] -> (i32) {
// CHECK-NEXT: memref.load
// CHECK: scf.if
// CHECK-NOT: memref.load
// CHECK: gpu.terminator
func.func @later(%x: memref<64x64xf16>, %index: memref<?xi32>, %other: memref<?xi32>, %ub: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c5 = arith.constant 5 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %tile = memref.alloc() : memref<64xf16, #gpu.address_space<workgroup>>
    scf.for %i = %c0 to %ub step %c1 {
      %there = arith.cmpi ult, %i, %c5 : index
      scf.if %there {
        %word = memref.load %index[%i] : memref<?xi32>
        %row = arith.index_castui %word : i32 to index
        %t = nvgpu.device_async_copy %x[%row, %c0], %tile[%c0], 8 : memref<64x64xf16> to memref<64xf16, #gpu.address_space<workgroup>>
      } else {
        %word = memref.load %other[%i] : memref<?xi32>
        %row = arith.index_castui %word : i32 to index
        %t = nvgpu.device_async_copy %x[%row, %c0], %tile[%c0], 8 : memref<64x64xf16> to memref<64xf16, #gpu.address_space<workgroup>>
      }
    }
    gpu.terminator
  }
  return
}

// What the launch writes, or what the iteration before decides on, is loaded where it
// is.
// CHECK-LABEL: func.func @stay
// CHECK: scf.for %[[I:.*]] = %{{.*}} step %{{[a-z0-9_]+}} {
// CHECK-NEXT: memref.load
// CHECK: scf.for %{{.*}} iter_args(%[[THERE:.*]] = %{{.*}}) -> (i1) {
// CHECK-NEXT: scf.if %[[THERE]]
// CHECK-NEXT: memref.load
func.func @stay(%x: memref<64x64xf16>, %index: memref<?xi32>, %other: memref<?xi32>, %ub: index, %first: i1) {
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
    %last = scf.for %i = %c0 to %ub step %c1 iter_args(%there = %first) -> (i1) {
      scf.if %there {
        %word = memref.load %other[%i] : memref<?xi32>
        %row = arith.index_castui %word : i32 to index
        %t = nvgpu.device_async_copy %x[%row, %c0], %tile[%c0], 8 : memref<64x64xf16> to memref<64xf16, #gpu.address_space<workgroup>>
      }
      %more = arith.cmpi ult, %i, %c5 : index
      scf.yield %more : i1
    }
    gpu.terminator
  }
  return
}
