// RUN: nm-opt %s --nm-sparse-lower-align-rows --split-input-file --verify-diagnostics | FileCheck %s

// A grid that is empty where the rows are aligned, aligned words that are
// shifted, and a choice in the kernel that reads.

// CHECK: affine_map<()[s0] -> (s0 mod 16)>
// CHECK-LABEL: func @f
// CHECK-SAME: %[[X:.*]]: memref<4096x?xf16>,
// CHECK: %[[COPY:.*]] = memref.alloc
// CHECK: %[[MISALIGNED:.*]] = affine.apply
// CHECK: %[[ANY:.*]] = affine.min
// CHECK: %[[GRID:.*]] = arith.muli %{{.*}}, %[[ANY]]
// CHECK: gpu.launch {{.*}} in (%{{.*}} = %[[GRID]], {{.*}} function(@f_align)
// CHECK: llvm.load
// CHECK: llvm.intr.fshr
// CHECK: vector.store {{.*}}, %[[COPY]]{{.*}} {alignment = 16 : i64}
// CHECK: gpu.launch
// CHECK: %[[ALIGNED:.*]] = arith.cmpi eq, %[[MISALIGNED]]
// CHECK: %[[A:.*]] = arith.select %[[ALIGNED]], %{{.*}}, %{{.*}} : memref<4096x?xf16, strided<[?, 1], offset: ?>>
// CHECK: memref.load %[[A]]
func.func @f(%x: memref<4096x?xf16>, %m: index, %p: index, %y: memref<1xf16>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %all = memref.alloc(%p) : memref<4096x?xf16>
  %copy = memref.subview %all[0, 0] [4096, %m] [1, 1]
      : memref<4096x?xf16> to memref<4096x?xf16, strided<[?, 1]>>
  %a = nm_tile.align_rows alignment = 32 ins(%x : memref<4096x?xf16>)
      outs(%copy : memref<4096x?xf16, strided<[?, 1]>>)
      -> memref<4096x?xf16, strided<[?, 1], offset: ?>>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %e = memref.load %a[%c0, %c0] : memref<4096x?xf16, strided<[?, 1], offset: ?>>
    memref.store %e, %y[%c0] : memref<1xf16>
    gpu.terminator
  }
  return
}

// -----

// A copy in any case, which who reads it knows before the launch.

// CHECK-LABEL: func @always
// CHECK: %[[COPY:.*]] = memref.alloc
// CHECK: gpu.launch {{.*}} function(@always_align)
// CHECK: %[[A:.*]] = memref.cast %[[COPY]]
// CHECK: return %[[A]]
func.func @always(%x: memref<4096x?xf16>, %p: index) -> memref<4096x?xf16, strided<[?, 1], offset: ?>> {
  %copy = memref.alloc(%p) : memref<4096x?xf16>
  %a = nm_tile.align_rows alignment = 16 always ins(%x : memref<4096x?xf16>)
      outs(%copy : memref<4096x?xf16>) -> memref<4096x?xf16, strided<[?, 1], offset: ?>>
  return %a : memref<4096x?xf16, strided<[?, 1], offset: ?>>
}

// -----

// Rows at multiples of 16 bytes are copied if they are long.

// CHECK-DAG: #[[UNIT:.*]] = affine_map<()[s0] -> (s0 mod 16)>
// CHECK-DAG: #[[LONG:.*]] = affine_map<()[s0] -> (s0 floordiv 512, 1)>
// CHECK-DAG: #[[ACCESS:.*]] = affine_map<()[s0] -> (s0 mod 8)>
// CHECK-LABEL: func @long
// CHECK: %[[SECTORS:.*]] = affine.apply #[[UNIT]]
// CHECK: %[[LONG_ROWS:.*]] = affine.min #[[LONG]]
// CHECK: %[[ACCESSES:.*]] = affine.apply #[[ACCESS]]
// CHECK: %[[BOTH:.*]] = arith.muli %[[SECTORS]], %[[LONG_ROWS]]
// CHECK: %[[COPIED:.*]] = arith.addi %[[ACCESSES]], %[[BOTH]]
// CHECK: affine.min #{{.*}}()[%[[COPIED]]]
func.func @long(%x: memref<4096x?xf16>, %copy: memref<4096x?xf16, strided<[?, 1]>>)
    -> memref<4096x?xf16, strided<[?, 1], offset: ?>> {
  %a = nm_tile.align_rows alignment = 32 from 512 ins(%x : memref<4096x?xf16>)
      outs(%copy : memref<4096x?xf16, strided<[?, 1]>>)
      -> memref<4096x?xf16, strided<[?, 1], offset: ?>>
  return %a : memref<4096x?xf16, strided<[?, 1], offset: ?>>
}

// -----

func.func @tensors(%x: tensor<4096x?xf16>) -> tensor<4096x?xf16> {
  // expected-error @below {{must be on buffers of two or three dimensions}}
  %a = nm_tile.align_rows alignment = 16 ins(%x : tensor<4096x?xf16>)
      -> tensor<4096x?xf16>
  return %a : tensor<4096x?xf16>
}
