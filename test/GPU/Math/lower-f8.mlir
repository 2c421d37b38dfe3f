// RUN: nm-opt %s --nm-sparse-lower-f8 | FileCheck %s

// e4m3 has exponents that are 8 less than those of f16, and one NaN.
// CHECK-LABEL: func @widen
// CHECK: %[[BYTE:.*]] = arith.bitcast %{{.*}} : f8E4M3FN to i8
// CHECK: arith.extui %[[BYTE]] : i8 to i16
// CHECK: %[[HALF:.*]] = arith.bitcast %{{.*}} : i16 to f16
// CHECK: %[[SINGLE:.*]] = arith.extf %[[HALF]] : f16 to f32
// CHECK: arith.mulf %[[SINGLE]], %{{.*}} : f32
// CHECK: arith.select
// CHECK-NOT: f8E4M3FN to f32
func.func @widen(%x: f8E4M3FN) -> f32 {
  %y = arith.extf %x : f8E4M3FN to f32
  return %y : f32
}

// Those of e5m2 are its upper half.
// CHECK-LABEL: func @widen_vector
// CHECK: arith.bitcast %{{.*}} : vector<4xf8E5M2> to vector<4xi8>
// CHECK: %[[HALF:.*]] = arith.bitcast %{{.*}} : vector<4xi16> to vector<4xf16>
// CHECK: %[[SINGLE:.*]] = arith.extf %[[HALF]] : vector<4xf16> to vector<4xf32>
// CHECK-NOT: arith.mulf
// CHECK: arith.truncf %[[SINGLE]] : vector<4xf32> to vector<4xbf16>
func.func @widen_vector(%x: vector<4xf8E5M2>) -> vector<4xbf16> {
  %y = arith.extf %x : vector<4xf8E5M2> to vector<4xbf16>
  return %y : vector<4xbf16>
}

// What is lost of f64 counts where two numbers are as near.
// CHECK-LABEL: func @round
// CHECK: %[[SINGLE:.*]] = arith.truncf %{{.*}} : f64 to f32
// CHECK: arith.extf %[[SINGLE]] : f32 to f64
// CHECK: arith.cmpi ugt
// CHECK: arith.cmpi ne
// CHECK: arith.cmpf uno
// CHECK: arith.addf
// CHECK-COUNT-3: arith.select
// CHECK: arith.bitcast %{{.*}} : i8 to f8E4M3FN
// CHECK-NOT: truncf
func.func @round(%x: f64) -> f8E4M3FN {
  %y = arith.truncf %x : f64 to f8E4M3FN
  return %y : f8E4M3FN
}

// Other rounding, other types, and shapes that are not known are left alone.
// CHECK-LABEL: func @others
// CHECK: arith.truncf %{{.*}} downward : f32 to f8E4M3FN
// CHECK: arith.extf %{{.*}} : f8E8M0FNU to f32
// CHECK: arith.truncf %{{.*}} : tensor<?x3xf32> to tensor<?x3xf8E5M2>
func.func @others(%x: f32, %z: f8E8M0FNU, %t: tensor<?x3xf32>) -> (f8E4M3FN, f32, tensor<?x3xf8E5M2>) {
  %y = arith.truncf %x downward : f32 to f8E4M3FN
  %w = arith.extf %z : f8E8M0FNU to f32
  %s = arith.truncf %t : tensor<?x3xf32> to tensor<?x3xf8E5M2>
  return %y, %w, %s : f8E4M3FN, f32, tensor<?x3xf8E5M2>
}
