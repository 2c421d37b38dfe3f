// RUN: nm-opt %s --nm-sparse-lower-math | FileCheck %s

// CHECK-LABEL: func.func @native
// CHECK: llvm.call_intrinsic "llvm.fma"(%{{.*}}) : (f32, f32, f32) -> f32
// CHECK: llvm.call_intrinsic "llvm.sqrt"(%{{.*}}) : (f32) -> f32
// CHECK-NOT: math.
func.func @native(%a: f32, %b: f32) -> f32 {
  %0 = math.fma %a, %b, %a : f32
  %1 = math.sqrt %0 : f32
  return %1 : f32
}

// Polynomials are evaluated in f32, also for narrower types.
// CHECK-LABEL: func.func @polynomial
// CHECK-NOT: math.
// CHECK: arith.extf
// CHECK: "llvm.fma"
// CHECK: arith.truncf
func.func @polynomial(%a: f16) -> f16 {
  %0 = math.erf %a : f16
  %1 = math.tanh %0 : f16
  %2 = math.exp %1 : f16
  return %2 : f16
}

// CHECK-LABEL: func.func @vectors
// CHECK: vector.shape_cast %{{.*}} : vector<2x4xf32> to vector<8xf32>
// CHECK: llvm.call_intrinsic "llvm.fabs"(%{{.*}}) : (vector<8xf32>) -> vector<8xf32>
// CHECK: vector.shape_cast %{{.*}} : vector<8xf32> to vector<2x4xf32>
func.func @vectors(%a: vector<2x4xf32>) -> vector<2x4xf32> {
  %0 = math.absf %a : vector<2x4xf32>
  return %0 : vector<2x4xf32>
}

// Where it is allowed, the GPU's own approximations.
// CHECK-LABEL: func.func @approximate
// CHECK: llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz"(%{{.*}}) : (f32) -> f32
// CHECK: nvvm.inline_ptx "tanh.approx.f32 {$w0}, {$r0};"
// CHECK: llvm.call_intrinsic "llvm.nvvm.div.approx.ftz.f"(%{{.*}}) : (f32, f32) -> f32
// CHECK: arith.divf
// CHECK-NOT: approx
func.func @approximate(%a: f32) -> f32 {
  %0 = math.exp2 %a fastmath<afn> : f32
  %1 = math.tanh %0 fastmath<afn> : f32
  %2 = arith.divf %1, %a fastmath<afn> : f32
  %3 = arith.divf %2, %a : f32
  %4 = math.exp2 %3 : f32
  return %4 : f32
}

// f16, alone and in pairs: products with the limits that PTX has.
// CHECK-LABEL: func.func @half(
// CHECK: %[[ONE:.*]] = arith.constant dense<1.000000e+00> : vector<2xf16>
// CHECK: "llvm.nvvm.fma.rn.f16x2"(%{{.*}}) : (vector<2xf16>, vector<2xf16>, vector<2xf16>) -> vector<2xf16>
// CHECK-NEXT: %{{.*}} = llvm.call_intrinsic "llvm.nvvm.fma.rn.relu.f16x2"(%{{.*}}, %arg1, %arg0)
// CHECK-NEXT: %{{.*}} = llvm.call_intrinsic "llvm.nvvm.fma.rn.relu.f16x2"(%{{.*}}, %[[ONE]], %{{.*}})
// CHECK: "llvm.nvvm.fma.rn.sat.f16x2"
// CHECK-NOT: arith.m
// CHECK: return
func.func @half(%a: vector<2xf16>, %b: vector<2xf16>) -> vector<2xf16> {
  %zero = arith.constant dense<0.0> : vector<2xf16>
  %one = arith.constant dense<1.0> : vector<2xf16>
  %0 = math.fma %a, %b, %a : vector<2xf16>
  %1 = math.fma %0, %b, %a : vector<2xf16>
  %2 = arith.maximumf %1, %zero : vector<2xf16>
  %3 = arith.maximumf %2, %zero : vector<2xf16>
  %4 = arith.mulf %3, %b : vector<2xf16>
  %5 = arith.maxnumf %4, %zero : vector<2xf16>
  %6 = arith.minnumf %5, %one : vector<2xf16>
  return %6 : vector<2xf16>
}

// A limit that keeps NaN is no saturation; a product with other uses stays.
// CHECK-LABEL: func.func @half_scalar
// CHECK: %[[P:.*]] = llvm.call_intrinsic "llvm.nvvm.fma.rn.f16"
// CHECK: "llvm.nvvm.fma.rn.relu.f16"(%[[P]],
// CHECK: arith.mulf
// CHECK: arith.maximumf
// CHECK: "llvm.minnum"
func.func @half_scalar(%a: f16, %b: f16, %c: f16) -> (f16, f16) {
  %zero = arith.constant 0.0 : f16
  %one = arith.constant 1.0 : f16
  %0 = math.fma %a, %b, %a : f16
  %1 = arith.maximumf %0, %zero : f16
  %2 = arith.mulf %0, %1 : f16
  %3 = arith.maximumf %2, %c : f16
  %4 = arith.minnumf %3, %one : f16
  return %4, %0 : f16, f16
}

// What upstream calls a device library for.
// CHECK-LABEL: func.func @library
// CHECK-NOT: math.
// CHECK: "llvm.maxnum"
// CHECK: "llvm.minnum"
// CHECK: "llvm.round"
// CHECK: "llvm.ctlz"(%{{.*}}, %false{{.*}}) : (i32, i1) -> i32
// CHECK: arith.cmpf uno
// CHECK: "llvm.trunc"({{.*}}f64
// CHECK-NOT: arith.remf
// CHECK: arith.maximumf
// CHECK-NEXT: arith.minimumf
// CHECK-NOT: math.
// CHECK: return
func.func @library(%a: vector<2x4xf32>, %d: vector<2x4xf32>, %b: f16, %c: i32) -> (vector<2x4xf32>, f16, i32, i1, f16, f16) {
  %0 = arith.maxnumf %a, %d : vector<2x4xf32>
  %1 = arith.minnumf %0, %a : vector<2x4xf32>
  %2 = math.round %b : f16
  %3 = math.ctlz %c : i32
  %4 = math.isnan %b : f16
  %5 = arith.remf %2, %b : f16
  %6 = math.clampf %b to [%2, %5] : f16
  return %1, %2, %3, %4, %5, %6 : vector<2x4xf32>, f16, i32, i1, f16, f16
}
