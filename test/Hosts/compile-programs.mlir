// RUN: nm-opt %s --nm-sparse-outline-programs=only-programs -o %t.mlir
// RUN: nm-compile %t.mlir --tokens 64 --manifest %t.json -o %t.ptx
// RUN: FileCheck %s < %t.json

// The compiler takes the programs of a model alone: all that they do is in
// kernels, and the results lie where their last arguments are.

// CHECK: "name": "block_0"
// CHECK: "results": [
// CHECK-NEXT: {
// CHECK-NEXT: "buffer": "arg5"
// CHECK-NEXT: "type": "memref<?x64xf32>"
// CHECK: {
// CHECK-NEXT: "buffer": "arg6"
// CHECK-NEXT: "type": "memref<?x64xf32>"
// CHECK: "name": "block_1"
// CHECK: "results": [
// CHECK-NEXT: {
// CHECK-NEXT: "buffer": "arg8"
// CHECK-NEXT: "type": "memref<?x64xf32>"
#enc = #nm_sparse.encoding<8:32, block = [1, 32]>
#row = affine_map<(m, n) -> (m, n)>
#x = affine_map<(m, n, k) -> (m, k)>
#t = affine_map<(m, n, k) -> (n, k)>
#y = affine_map<(m, n, k) -> (m, n)>
func.func @block(%x: tensor<?x64xf16>, %q: tensor<64x64xf16, #enc>, %k: tensor<64x64xf16, #enc>, %g: tensor<64x128xf16, #enc>, %u: tensor<64x128xf16, #enc>, %d: tensor<128x64xf16, #enc>) -> tensor<?x64xf32> {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %m = tensor.dim %x, %c0 : tensor<?x64xf16>
  %e = tensor.empty(%m) : tensor<?x64xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<?x64xf32>) -> tensor<?x64xf32>
  %yq = linalg.matmul ins(%x, %q : tensor<?x64xf16>, tensor<64x64xf16, #enc>) outs(%z : tensor<?x64xf32>) -> tensor<?x64xf32>
  %yk = linalg.matmul ins(%x, %k : tensor<?x64xf16>, tensor<64x64xf16, #enc>) outs(%z : tensor<?x64xf32>) -> tensor<?x64xf32>
  %se = tensor.empty(%m, %m) : tensor<?x?xf32>
  %sz = linalg.fill ins(%zero : f32) outs(%se : tensor<?x?xf32>) -> tensor<?x?xf32>
  %s = linalg.matmul indexing_maps = [#x, #t, #y] ins(%yq, %yk : tensor<?x64xf32>, tensor<?x64xf32>) outs(%sz : tensor<?x?xf32>) -> tensor<?x?xf32>
  %p = linalg.softmax dimension(1) ins(%s : tensor<?x?xf32>) outs(%se : tensor<?x?xf32>) -> tensor<?x?xf32>
  %a = linalg.matmul ins(%p, %x : tensor<?x?xf32>, tensor<?x64xf16>) outs(%z : tensor<?x64xf32>) -> tensor<?x64xf32>
  %ne = tensor.empty(%m) : tensor<?x64xf16>
  %n = linalg.generic {indexing_maps = [#row, #row], iterator_types = ["parallel", "parallel"]}
      ins(%a : tensor<?x64xf32>) outs(%ne : tensor<?x64xf16>) {
  ^bb0(%v: f32, %o: f16):
    %c = arith.truncf %v : f32 to f16
    linalg.yield %c : f16
  } -> tensor<?x64xf16>
  %ge = tensor.empty(%m) : tensor<?x128xf32>
  %gz = linalg.fill ins(%zero : f32) outs(%ge : tensor<?x128xf32>) -> tensor<?x128xf32>
  %b = linalg.matmul ins(%n, %g : tensor<?x64xf16>, tensor<64x128xf16, #enc>) outs(%gz : tensor<?x128xf32>) -> tensor<?x128xf32>
  %f = linalg.matmul ins(%n, %u : tensor<?x64xf16>, tensor<64x128xf16, #enc>) outs(%gz : tensor<?x128xf32>) -> tensor<?x128xf32>
  %he = tensor.empty(%m) : tensor<?x128xf16>
  %h = linalg.generic {indexing_maps = [#row, #row, #row], iterator_types = ["parallel", "parallel"]}
      ins(%b, %f : tensor<?x128xf32>, tensor<?x128xf32>) outs(%he : tensor<?x128xf16>) {
  ^bb0(%v: f32, %w: f32, %o: f16):
    %i = math.tanh %v : f32
    %j = arith.mulf %i, %w : f32
    %c = arith.truncf %j : f32 to f16
    linalg.yield %c : f16
  } -> tensor<?x128xf16>
  %y = linalg.matmul ins(%h, %d : tensor<?x128xf16>, tensor<128x64xf16, #enc>) outs(%z : tensor<?x64xf32>) -> tensor<?x64xf32>
  %r = linalg.add ins(%y, %a : tensor<?x64xf32>, tensor<?x64xf32>) outs(%e : tensor<?x64xf32>) -> tensor<?x64xf32>
  return %r : tensor<?x64xf32>
}
