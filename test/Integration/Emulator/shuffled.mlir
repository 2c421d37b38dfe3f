// Weights of shuffled outputs, by kernels: one with a bias and an activation, in both
// layouts of the result, and a batch of them.
//
// RUN: nm-run %s --entry layer --device emulate --check --size m=77 | FileCheck %s
// RUN: nm-run %s --entry turned --device emulate --check --size m=30 --storage bitmap | FileCheck %s
// RUN: nm-run %s --entry batch --device emulate --check | FileCheck %s
// CHECK: PASS

#w = #nm_sparse.encoding<2:4, block = [1, 32], dim = 1, order = shuffled>
#b = #nm_sparse.encoding<1:3, block = [1, 8], dim = 1, order = shuffled>
#id = affine_map<(m, n) -> (m, n)>
#turn = affine_map<(m, n) -> (n, m)>
#bias = affine_map<(m, n) -> (n)>

func.func @layer(%x: tensor<?x256xf16>, %w: tensor<200x256xf16, #w>, %b: tensor<200xf32>) -> tensor<?x200xf16> {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %m = tensor.dim %x, %c0 : tensor<?x256xf16>
  %empty = tensor.empty(%m) : tensor<?x200xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<?x200xf32>) -> tensor<?x200xf32>
  %y = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>]
    ins(%x, %w : tensor<?x256xf16>, tensor<200x256xf16, #w>) outs(%init : tensor<?x200xf32>) -> tensor<?x200xf32>
  %out = tensor.empty(%m) : tensor<?x200xf16>
  %r = linalg.generic {indexing_maps = [#id, #bias, #id], iterator_types = ["parallel", "parallel"]}
    ins(%y, %b : tensor<?x200xf32>, tensor<200xf32>) outs(%out : tensor<?x200xf16>) {
  ^bb0(%p: f32, %q: f32, %o: f16):
    %s = arith.addf %p, %q : f32
    %t = arith.maximumf %s, %zero : f32
    %u = arith.truncf %t : f32 to f16
    linalg.yield %u : f16
  } -> tensor<?x200xf16>
  return %r : tensor<?x200xf16>
}

func.func @turned(%x: tensor<256x?xf16>, %w: tensor<200x256xf16, #w>, %b: tensor<200xf32>) -> tensor<200x?xf16> {
  %zero = arith.constant 0.0 : f32
  %c1 = arith.constant 1 : index
  %m = tensor.dim %x, %c1 : tensor<256x?xf16>
  %empty = tensor.empty(%m) : tensor<200x?xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<200x?xf32>) -> tensor<200x?xf32>
  %y = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (n, m)>]
    ins(%x, %w : tensor<256x?xf16>, tensor<200x256xf16, #w>) outs(%init : tensor<200x?xf32>) -> tensor<200x?xf32>
  %out = tensor.empty(%m) : tensor<200x?xf16>
  %r = linalg.generic {indexing_maps = [#turn, #bias, #turn], iterator_types = ["parallel", "parallel"]}
    ins(%y, %b : tensor<200x?xf32>, tensor<200xf32>) outs(%out : tensor<200x?xf16>) {
  ^bb0(%p: f32, %q: f32, %o: f16):
    %s = arith.addf %p, %q : f32
    %u = arith.truncf %s : f32 to f16
    linalg.yield %u : f16
  } -> tensor<200x?xf16>
  return %r : tensor<200x?xf16>
}

func.func @batch(%x: tensor<2x40x90xf32>, %w: tensor<2x90x70xf32, #b>, %init: tensor<2x40x70xf32>) -> tensor<2x40x70xf32> {
  %y = linalg.batch_matmul ins(%x, %w : tensor<2x40x90xf32>, tensor<2x90x70xf32, #b>)
    outs(%init : tensor<2x40x70xf32>) -> tensor<2x40x70xf32>
  return %y : tensor<2x40x70xf32>
}
