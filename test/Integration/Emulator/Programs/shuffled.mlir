// Weights of shuffled outputs, by kernels: one with a bias and an activation, in both
// layouts of the result, a batch of them, and one between two layers.
//
// RUN: nm-run %s --entry layer --device emulate --check --size m=77 | FileCheck %s
// RUN: nm-run %s --entry turned --device emulate --check --size m=30 --storage bitmap | FileCheck %s
// RUN: nm-run %s --entry batch --device emulate --check | FileCheck %s
// RUN: nm-run %s --entry mlp --device emulate --check --size m=77 | FileCheck %s
// RUN: nm-compile %s -o - --emit front | FileCheck %s --check-prefix=FRONT
// CHECK: PASS

// Nothing is put into another order between the layers but a bias and the second weight.
// FRONT-LABEL: func.func @mlp
// FRONT-NOT: nm_sparse.permute %
// FRONT: nm_sparse.permute inverse %{{.*}} dim = 0 : tensor<192xf32>
// FRONT-NOT: nm_sparse.permute %
// FRONT: nm_sparse.permute inverse %{{.*}} dim = 1 : tensor<128x192xf16>
// FRONT-NOT: nm_sparse.permute
// FRONT: return

#w = #nm_sparse.encoding<2:4, block = [1, 32], dim = 1, order = shuffled>
#b = #nm_sparse.encoding<1:3, block = [1, 8], dim = 1, order = shuffled>
#id = affine_map<(m, n) -> (m, n)>
#turn = affine_map<(m, n) -> (n, m)>
#bias = affine_map<(m, n) -> (n)>
#f = #nm_sparse.encoding<free, block = [1, 32], dim = 1>
#xm = affine_map<(m, n, k) -> (m, k)>
#wm = affine_map<(m, n, k) -> (n, k)>
#ym = affine_map<(m, n, k) -> (m, n)>

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

// The second weight comes dense, and is packed by the program, with its rows in the
// order of the first one's outputs.
func.func @mlp(%x: tensor<?x256xf16>, %w: tensor<192x256xf16, #w>, %b: tensor<192xf32>, %d: tensor<128x192xf16>) -> tensor<?x128xf32> {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %m = tensor.dim %x, %c0 : tensor<?x256xf16>
  %e = tensor.empty(%m) : tensor<?x192xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<?x192xf32>) -> tensor<?x192xf32>
  %y = linalg.matmul indexing_maps = [#xm, #wm, #ym]
    ins(%x, %w : tensor<?x256xf16>, tensor<192x256xf16, #w>) outs(%i : tensor<?x192xf32>) -> tensor<?x192xf32>
  %o = tensor.empty(%m) : tensor<?x192xf16>
  %h = linalg.generic {indexing_maps = [#id, #bias, #id], iterator_types = ["parallel", "parallel"]}
    ins(%y, %b : tensor<?x192xf32>, tensor<192xf32>) outs(%o : tensor<?x192xf16>) {
  ^bb0(%p: f32, %q: f32, %u: f16):
    %s = arith.addf %p, %q : f32
    %t = arith.maximumf %s, %zero : f32
    %v = arith.truncf %t : f32 to f16
    linalg.yield %v : f16
  } -> tensor<?x192xf16>
  %free = nm_sparse.prune #f density = 0.5 %d : tensor<128x192xf16> to tensor<128x192xf16, #f>
  %e2 = tensor.empty(%m) : tensor<?x128xf32>
  %i2 = linalg.fill ins(%zero : f32) outs(%e2 : tensor<?x128xf32>) -> tensor<?x128xf32>
  %z = linalg.matmul indexing_maps = [#xm, #wm, #ym]
    ins(%h, %free : tensor<?x192xf16>, tensor<128x192xf16, #f>) outs(%i2 : tensor<?x128xf32>) -> tensor<?x128xf32>
  return %z : tensor<?x128xf32>
}
