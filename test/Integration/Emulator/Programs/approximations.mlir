// Approximations that a rounding to 16 bits does not hide: 1 - erf(z) and
// 1 - tanh(z)^2 cancel, and e^z / (1 + e^z) has a divisor above 2^126.

// RUN: split-file %s %t
// RUN: nm-run %t/erfc.mlir --device emulate --check | FileCheck %s
// RUN: nm-run %t/tanh.mlir --device emulate --check | FileCheck %s
// RUN: nm-run %t/sigmoid.mlir --device emulate --check | FileCheck %s
// CHECK: result #0: {{.*}} PASS

//--- erfc.mlir
#w = #nm_sparse.encoding<8:32, block = [1, 32]>
#id = affine_map<(m, n) -> (m, n)>
func.func @f(%x: tensor<16x64xf16>, %w: tensor<64x32xf16, #w>) -> tensor<16x32xf16> {
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %scale = arith.constant 0.1 : f32
  %center = arith.constant 2.0 : f32
  %e = tensor.empty() : tensor<16x32xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<16x32xf32>) -> tensor<16x32xf32>
  %y = linalg.matmul ins(%x, %w : tensor<16x64xf16>, tensor<64x32xf16, #w>) outs(%i : tensor<16x32xf32>) -> tensor<16x32xf32>
  %o = tensor.empty() : tensor<16x32xf16>
  %r = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%y : tensor<16x32xf32>) outs(%o : tensor<16x32xf16>) {
  ^bb0(%a: f32, %b: f16):
    %a1 = arith.mulf %a, %scale : f32
    %z = arith.addf %a1, %center : f32
    %t = math.erf %z : f32
    %d = arith.subf %one, %t : f32
    %c = arith.truncf %d : f32 to f16
    linalg.yield %c : f16
  } -> tensor<16x32xf16>
  return %r : tensor<16x32xf16>
}
//--- tanh.mlir
#w = #nm_sparse.encoding<8:32, block = [1, 32]>
#id = affine_map<(m, n) -> (m, n)>
func.func @f(%x: tensor<16x64xf16>, %w: tensor<64x32xf16, #w>) -> tensor<16x32xf16> {
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %scale = arith.constant 0.1 : f32
  %center = arith.constant 4.0 : f32
  %e = tensor.empty() : tensor<16x32xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<16x32xf32>) -> tensor<16x32xf32>
  %y = linalg.matmul ins(%x, %w : tensor<16x64xf16>, tensor<64x32xf16, #w>) outs(%i : tensor<16x32xf32>) -> tensor<16x32xf32>
  %o = tensor.empty() : tensor<16x32xf16>
  %r = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%y : tensor<16x32xf32>) outs(%o : tensor<16x32xf16>) {
  ^bb0(%a: f32, %b: f16):
    %a1 = arith.mulf %a, %scale : f32
    %z = arith.addf %a1, %center : f32
    %t = math.tanh %z : f32
    %q = arith.mulf %t, %t : f32
    %d = arith.subf %one, %q : f32
    %c = arith.truncf %d : f32 to f16
    linalg.yield %c : f16
  } -> tensor<16x32xf16>
  return %r : tensor<16x32xf16>
}
//--- sigmoid.mlir
#w = #nm_sparse.encoding<8:32, block = [1, 32]>
#id = affine_map<(m, n) -> (m, n)>
func.func @f(%x: tensor<16x64xf16>, %w: tensor<64x32xf16, #w>) -> tensor<16x32xf16> {
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %scale = arith.constant 0.01 : f32
  %center = arith.constant 88.0 : f32
  %e = tensor.empty() : tensor<16x32xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<16x32xf32>) -> tensor<16x32xf32>
  %y = linalg.matmul ins(%x, %w : tensor<16x64xf16>, tensor<64x32xf16, #w>) outs(%i : tensor<16x32xf32>) -> tensor<16x32xf32>
  %o = tensor.empty() : tensor<16x32xf16>
  %r = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%y : tensor<16x32xf32>) outs(%o : tensor<16x32xf16>) {
  ^bb0(%a: f32, %b: f16):
    %a1 = arith.mulf %a, %scale : f32
    %z = arith.addf %a1, %center : f32
    %t = math.exp %z : f32
    %q = arith.addf %one, %t : f32
    %d = arith.divf %t, %q : f32
    %c = arith.truncf %d : f32 to f16
    linalg.yield %c : f16
  } -> tensor<16x32xf16>
  return %r : tensor<16x32xf16>
}
