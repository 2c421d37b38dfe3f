// RUN: nm-opt %s --nm-sparse-approximate-math=packed=false -o %t.mlir
// RUN: FileCheck %s < %t.mlir
// RUN: nm-opt %s --nm-sparse-approximate-math -o %t.packed.mlir
// RUN: FileCheck %s --check-prefix=PACKED < %t.packed.mlir

// The errors, over all of f16's range that matters:
// RUN: %python %S/Inputs/approximate_math.py %t.mlir | FileCheck %s --check-prefix=ERROR
// RUN: %python %S/Inputs/approximate_math.py %t.packed.mlir | FileCheck %s --check-prefix=PACKED-ERROR

// ERROR-LABEL: gelu: absolute error
// ERROR-SAME: within 2.1e-05
// ERROR-SAME: within 0.5 of f16's rounding from 0 on
// CHECK-LABEL: func.func @gelu
// CHECK: %[[ABS:.*]] = math.absf %[[X:.*]] : vector<4xf32>
// CHECK: %[[Y:.*]] = arith.minimumf %[[ABS]], %{{.*}} : vector<4xf32>
// CHECK-COUNT-4: math.fma
// CHECK-NEXT: %[[P:.*]] = math.exp2 %{{.*}} fastmath<afn> : vector<4xf32>
// CHECK: %[[R:.*]] = arith.maximumf %[[X]], %{{.*}} : vector<4xf32>
// CHECK: %[[N:.*]] = arith.negf %[[Y]] : vector<4xf32>
// CHECK: %[[G:.*]] = math.fma %[[N]], %[[P]], %[[R]] : vector<4xf32>
// CHECK-NEXT: arith.truncf %[[G]] : vector<4xf32> to vector<4xf16>
// CHECK-NOT: math.erf

// In f16 throughout, with no function of the GPU.
// PACKED-ERROR-LABEL: packed_gelu: negative arguments:
// PACKED-ERROR-SAME: within 5.1e-04
// PACKED-ERROR-SAME: within 5.5 of f16's rounding from 0 on
// PACKED-LABEL: func.func @gelu
// PACKED: %[[X:.*]] = arith.truncf %{{.*}} : vector<4xf32> to vector<4xf16>
// PACKED: %[[Y:.*]] = math.absf %[[X]] : vector<4xf16>
// PACKED-COUNT-4: math.fma {{.*}}, %[[Y]], {{.*}} : vector<4xf16>
// PACKED-NEXT: %[[V:.*]] = arith.maximumf
// PACKED: %[[YV:.*]] = arith.mulf %[[Y]], %[[V]] : vector<4xf16>
// PACKED: %[[LOW:.*]] = arith.maxnumf %[[YV]]
// PACKED: %[[T:.*]] = arith.minnumf %[[LOW]]
// PACKED: %[[R:.*]] = arith.maximumf %[[X]], %{{.*}} : vector<4xf16>
// PACKED: %[[N:.*]] = arith.negf %[[T]] : vector<4xf16>
// PACKED: %[[G:.*]] = math.fma %[[N]], %[[V]], %[[R]] : vector<4xf16>
// PACKED: vector.store %[[G]]
func.func @gelu(%x: vector<4xf32>, %y: memref<4xf16>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %one = arith.constant dense<1.0> : vector<4xf32>
  %half = arith.constant dense<0.5> : vector<4xf32>
  %root = arith.constant dense<0.70710678118654752> : vector<4xf32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
      threads(%tx, %ty, %tz) in (%nx = %c1, %ny = %c1, %nz = %c1) {
    %t = arith.mulf %x, %root : vector<4xf32>
    %e = math.erf %t : vector<4xf32>
    %u = arith.addf %e, %one : vector<4xf32>
    %h = arith.mulf %x, %half : vector<4xf32>
    %g = arith.mulf %h, %u : vector<4xf32>
    %r = arith.truncf %g : vector<4xf32> to vector<4xf16>
    vector.store %r, %y[%c0] : memref<4xf16>, vector<4xf16>
    gpu.terminator
  }
  return
}

// The other way of writing it: x * (0.5 + 0.5 * tanh(...)).
// ERROR-LABEL: tanh_gelu: absolute error
// ERROR-SAME: within 2.1e-05
// ERROR-SAME: within 0.5 of f16's rounding from 0 on
// CHECK-LABEL: func.func @tanh_gelu
// CHECK-COUNT-5: math.fma
// CHECK-NEXT: math.exp2 %{{.*}} fastmath<afn> : f32
// CHECK-NOT: math.tanh
// PACKED-ERROR-LABEL: packed_tanh_gelu: negative arguments:
// PACKED-ERROR-SAME: within 5.1e-04
// PACKED-ERROR-SAME: within 5.5 of f16's rounding from 0 on
// PACKED-LABEL: func.func @tanh_gelu
// PACKED-COUNT-5: math.fma {{.*}} : f16
func.func @tanh_gelu(%x: f32, %y: memref<f16>) {
  %c1 = arith.constant 1 : index
  %one = arith.constant 1.0 : f32
  %half = arith.constant 0.5 : f32
  %linear = arith.constant 0.7978845608028654 : f32
  %cubic = arith.constant 0.044715 : f32
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
      threads(%tx, %ty, %tz) in (%nx = %c1, %ny = %c1, %nz = %c1) {
    %x2 = arith.mulf %x, %x : f32
    %a = arith.mulf %x2, %cubic : f32
    %b = arith.addf %one, %a : f32
    %c = arith.mulf %x, %b : f32
    %p = arith.mulf %linear, %c : f32
    %t = math.tanh %p : f32
    %th = arith.mulf %half, %t : f32
    %gate = arith.addf %half, %th : f32
    %g = arith.mulf %gate, %x : f32
    %r = arith.truncf %g : f32 to f16
    memref.store %r, %y[] : memref<f16>
    gpu.terminator
  }
  return
}

// ERROR-LABEL: erf: absolute error
// ERROR-SAME: within 6.0e-05
// CHECK-LABEL: func.func @erf
// CHECK: math.tanh %{{.*}} fastmath<afn> : f32
func.func @erf(%x: f32, %y: memref<bf16>) {
  %c1 = arith.constant 1 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
      threads(%tx, %ty, %tz) in (%nx = %c1, %ny = %c1, %nz = %c1) {
    %e = math.erf %x : f32
    %r = arith.truncf %e : f32 to bf16
    memref.store %r, %y[] : memref<bf16>
    gpu.terminator
  }
  return
}

// ERROR-LABEL: silu: absolute error
// ERROR-SAME: within 3.0e-06
// CHECK-LABEL: func.func @silu
// CHECK: math.exp2 %{{.*}} fastmath<afn> : f32
// CHECK: arith.divf %{{.*}} fastmath<afn> : f32
func.func @silu(%x: f32, %y: memref<f16>) {
  %c1 = arith.constant 1 : index
  %one = arith.constant 1.0 : f32
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
      threads(%tx, %ty, %tz) in (%nx = %c1, %ny = %c1, %nz = %c1) {
    %n = arith.negf %x : f32
    %e = math.exp %n : f32
    %d = arith.addf %one, %e : f32
    %q = arith.divf %x, %d : f32
    %r = arith.truncf %q : f32 to f16
    memref.store %r, %y[] : memref<f16>
    gpu.terminator
  }
  return
}

// One that is used before it is rounded, or rounded to bf16, is not packed.
// PACKED-LABEL: func.func @gelu_and_sum
// PACKED-NOT: math.fma {{.*}} : f16
// PACKED: math.exp2 %{{.*}} fastmath<afn> : f32
// PACKED: math.exp2 %{{.*}} fastmath<afn> : f32
func.func @gelu_and_sum(%x: f32, %z: f32, %y: memref<f16>, %w: memref<bf16>) {
  %c1 = arith.constant 1 : index
  %one = arith.constant 1.0 : f32
  %half = arith.constant 0.5 : f32
  %root = arith.constant 0.70710678118654752 : f32
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
      threads(%tx, %ty, %tz) in (%nx = %c1, %ny = %c1, %nz = %c1) {
    %t = arith.mulf %x, %root : f32
    %e = math.erf %t : f32
    %u = arith.addf %e, %one : f32
    %h = arith.mulf %x, %half : f32
    %g = arith.mulf %h, %u : f32
    %s = arith.addf %g, %z : f32
    %r = arith.truncf %s : f32 to f16
    memref.store %r, %y[] : memref<f16>
    %t2 = arith.mulf %z, %root : f32
    %e2 = math.erf %t2 : f32
    %u2 = arith.addf %e2, %one : f32
    %h2 = arith.mulf %z, %half : f32
    %g2 = arith.mulf %h2, %u2 : f32
    %b = arith.truncf %g2 : f32 to bf16
    memref.store %b, %w[] : memref<bf16>
    gpu.terminator
  }
  return
}

// A result that stays f32 stays exact, unless the operation allows otherwise; so
// does the host's code, and a division by what may be too large.
// CHECK-LABEL: func.func @exact
// CHECK: math.tanh %{{.*}} : f32
// CHECK: math.erf %{{.*}} : f32
// CHECK: math.tanh %{{.*}} fastmath<afn> : f32
// CHECK: arith.divf %{{.*}}, %{{[a-z0-9_]*}} : f32
func.func @exact(%x: f32, %y: memref<f32>, %z: memref<f16>) {
  %c1 = arith.constant 1 : index
  %h = math.tanh %x : f32
  %n = arith.truncf %h : f32 to f16
  memref.store %n, %z[] : memref<f16>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
      threads(%tx, %ty, %tz) in (%nx = %c1, %ny = %c1, %nz = %c1) {
    %e = math.erf %x : f32
    memref.store %e, %y[] : memref<f32>
    %t = math.tanh %e fastmath<afn> : f32
    memref.store %t, %y[] : memref<f32>
    %d = arith.divf %x, %e : f32
    %r = arith.truncf %d : f32 to f16
    memref.store %r, %z[] : memref<f16>
    gpu.terminator
  }
  return
}
