// Functions that upstream calls a device library for, in an epilogue.

// RUN: nm-run %s --device emulate --check | FileCheck %s
// RUN: sed 's/f32/f16/g' %s > %t.mlir
// RUN: nm-run %t.mlir --device emulate --check | FileCheck %s
// CHECK: result #0: {{.*}} PASS

// RUN: nm-compile %s -o - | FileCheck %s --check-prefix=PTX
// PTX-NOT: .extern .func

#w = #nm_sparse.encoding<8:32, block = [1, 32]>
#id = affine_map<(m, n) -> (m, n)>
func.func @f(%x: tensor<17x64xf32>, %w: tensor<64x32xf32, #w>, %i: tensor<17x32xf32>) -> tensor<17x32xf32> {
  %y = linalg.matmul ins(%x, %w : tensor<17x64xf32>, tensor<64x32xf32, #w>) outs(%i : tensor<17x32xf32>) -> tensor<17x32xf32>
  %e = tensor.empty() : tensor<17x32xf32>
  %r = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%y : tensor<17x32xf32>) outs(%e : tensor<17x32xf32>) {
  ^bb0(%a: f32, %o: f32):
    %zero = arith.constant 0.0 : f32
    %half = arith.constant 0.5 : f32
    %one = arith.constant 1.0 : f32
    %low = arith.constant -0.75 : f32
    %positive = arith.maxnumf %a, %zero : f32
    %negative = arith.minnumf %a, %half : f32
    %rest = arith.remf %a, %low : f32
    %rounded = math.round %a : f32
    %s0 = arith.addf %positive, %negative : f32
    %s1 = arith.addf %s0, %rest : f32
    %s2 = arith.addf %s1, %rounded : f32
    %clamped = math.clampf %a to [%low, %half] : f32
    %s3 = arith.addf %s2, %clamped : f32
    %magnitude = math.absf %a : f32
    %shifted = arith.addf %magnitude, %one : f32
    %log = math.log10 %shifted : f32
    %sine, %cosine = math.sincos %a : f32
    %s4 = arith.addf %s3, %log : f32
    %s5 = arith.addf %s4, %sine : f32
    %s6 = arith.addf %s5, %cosine : f32
    %nan = math.isnan %a : f32
    %infinite = math.isinf %a : f32
    %finite = math.isfinite %a : f32
    %normal = math.isnormal %a : f32
    %s7 = arith.select %nan, %zero, %s6 : f32
    %s8 = arith.select %infinite, %zero, %s7 : f32
    %s9 = arith.select %finite, %s8, %zero : f32
    %s10 = arith.select %normal, %s9, %zero : f32
    %scaled = arith.mulf %a, %shifted : f32
    %int = arith.fptosi %scaled : f32 to i32
    %absolute = math.absi %int : i32
    %leading = math.ctlz %int : i32
    %trailing = math.cttz %int : i32
    %ones = math.ctpop %absolute : i32
    %bits0 = arith.addi %leading, %trailing : i32
    %bits = arith.addi %bits0, %ones : i32
    %count = arith.sitofp %bits : i32 to f32
    %s11 = arith.addf %s10, %count : f32
    linalg.yield %s11 : f32
  } -> tensor<17x32xf32>
  return %r : tensor<17x32xf32>
}
