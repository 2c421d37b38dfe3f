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
