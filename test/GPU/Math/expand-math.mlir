// RUN: nm-opt %s --nm-sparse-expand-math | FileCheck %s

// CHECK-LABEL: func.func @remainder
//       CHECK:   %[[X:.*]] = arith.extf %{{.*}} : vector<4xf32> to vector<4xf64>
//       CHECK:   %[[Y:.*]] = arith.extf %{{.*}} : vector<4xf32> to vector<4xf64>
//       CHECK:   %[[D:.*]] = arith.divf %[[X]], %[[Y]]
//       CHECK:   math.trunc %[[D]]
//   CHECK-NOT:   arith.remf
func.func @remainder(%x: vector<4xf32>, %y: vector<4xf32>) -> vector<4xf32> {
  %r = arith.remf %x, %y : vector<4xf32>
  return %r : vector<4xf32>
}

// CHECK-LABEL: func.func @log10
//       CHECK:   %[[X:.*]] = arith.extf %{{.*}} : f16 to f32
//       CHECK:   %[[L:.*]] = math.log %[[X]] : f32
//       CHECK:   %[[R:.*]] = arith.mulf %[[L]], %{{.*}} : f32
//       CHECK:   arith.truncf %[[R]] : f32 to f16
func.func @log10(%x: f16) -> f16 {
  %r = math.log10 %x : f16
  return %r : f16
}

// CHECK-LABEL: func.func @classes
//       CHECK:   arith.cmpf uno, %[[X:.*]], %[[X]] : f32
//       CHECK:   %[[A:.*]] = math.absf
//       CHECK:   arith.cmpf oeq, %[[A]], %{{.*}} : f32
//   CHECK-NOT:   math.is
func.func @classes(%x: f32) -> (i1, i1) {
  %n = math.isnan %x : f32
  %i = math.isinf %x : f32
  return %n, %i : i1, i1
}

// CHECK-LABEL: func.func @both
//       CHECK:   %[[S:.*]] = math.sin
//       CHECK:   %[[C:.*]] = math.cos
//       CHECK:   return %[[S]], %[[C]]
func.func @both(%x: f32) -> (f32, f32) {
  %s, %c = math.sincos %x : f32
  return %s, %c : f32, f32
}

// Tensors have no constants of dynamic extents, and f64 no such logarithm.
// CHECK-LABEL: func.func @kept
//       CHECK:   math.log10 %{{.*}} : tensor<?xf32>
//       CHECK:   math.log10 %{{.*}} : f64
func.func @kept(%x: tensor<?xf32>, %y: f64) -> (tensor<?xf32>, f64) {
  %r = math.log10 %x : tensor<?xf32>
  %s = math.log10 %y : f64
  return %r, %s : tensor<?xf32>, f64
}
