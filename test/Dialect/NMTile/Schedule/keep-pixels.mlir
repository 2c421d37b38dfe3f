// RUN: nm-opt %s --nm-sparse-keep-pixels | FileCheck %s

#nm = affine_map<(m, n, k) -> (n, m)>
#xm = affine_map<(m, n, k) -> (k, m)>
#wm = affine_map<(m, n, k) -> (k, n)>
#id = affine_map<(n, m) -> (n, m)>
#bias = affine_map<(n, m) -> (n)>

// The product, the epilogue and the residual become rows of channels, of which
// only the order changes.
// CHECK-DAG: #[[TOKENS:.*]] = affine_map<(d0, d1, d2) -> (d0, d1)>
// CHECK-DAG: #[[ROWS:.*]] = affine_map<(d0, d1) -> (d1, d0)>
// CHECK-LABEL: func.func @residual
// CHECK-SAME: %[[OTHER:[a-z0-9]+]]: tensor<?x49x64xf16>
// CHECK: %[[Y:.*]] = nm_sparse.matmul {{.*}}, #[[TOKENS]]] {{.*}} -> tensor<?x64xf32>
// CHECK: %[[MOVED:.*]] = linalg.transpose ins(%[[OTHER]] {{.*}} permutation = [1, 0, 2]
// CHECK: %[[R:.*]] = tensor.collapse_shape %[[MOVED]] {{\[\[}}0, 1], [2]] : tensor<49x?x64xf16> into tensor<?x64xf16>
// CHECK: %[[F:.*]] = linalg.generic {indexing_maps = [#[[ROWS]], #{{.*}}, #[[ROWS]], #[[ROWS]]]
// CHECK-SAME: ins(%[[Y]], %{{.*}}, %[[R]] :
// CHECK: %[[E:.*]] = tensor.expand_shape %[[F]] {{\[\[}}0, 1], [2]] output_shape [49, %{{.*}}, 64]
// CHECK: linalg.transpose ins(%[[E]] {{.*}} permutation = [1, 0, 2]
// CHECK-NOT: linalg.
func.func @residual(%x: tensor<576x?xf16>, %values: tensor<144x64xf16>, %index: tensor<144x1xi8>, %b: tensor<64xf32>, %other: tensor<?x49x64xf16>, %tokens: index, %batch: index) -> tensor<?x49x64xf16> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty(%tokens) : tensor<64x?xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<64x?xf32>) -> tensor<64x?xf32>
  %y = nm_sparse.matmul <8:32, block = [1, 64]> indexing_maps = [#xm, #wm, #nm]
    ins(%x, %values, %index : tensor<576x?xf16>, tensor<144x64xf16>, tensor<144x1xi8>) outs(%init : tensor<64x?xf32>) -> tensor<64x?xf32>
  %oe = tensor.empty(%batch) : tensor<64x49x?xf16>
  %ot = linalg.transpose ins(%other : tensor<?x49x64xf16>) outs(%oe : tensor<64x49x?xf16>) permutation = [2, 1, 0]
  %r = tensor.collapse_shape %ot [[0], [1, 2]] : tensor<64x49x?xf16> into tensor<64x?xf16>
  %fe = tensor.empty(%tokens) : tensor<64x?xf16>
  %f = linalg.generic {indexing_maps = [#id, #bias, #id, #id], iterator_types = ["parallel", "parallel"]}
    ins(%y, %b, %r : tensor<64x?xf32>, tensor<64xf32>, tensor<64x?xf16>) outs(%fe : tensor<64x?xf16>) {
  ^bb0(%p: f32, %q: f32, %s: f16, %o: f16):
    %0 = arith.addf %p, %q : f32
    %1 = arith.extf %s : f16 to f32
    %2 = arith.addf %0, %1 : f32
    %3 = arith.truncf %2 : f32 to f16
    linalg.yield %3 : f16
  } -> tensor<64x?xf16>
  %e = tensor.expand_shape %f [[0], [1, 2]] output_shape [64, 49, %batch] : tensor<64x?xf16> into tensor<64x49x?xf16>
  %te = tensor.empty(%batch) : tensor<?x49x64xf16>
  %t = linalg.transpose ins(%e : tensor<64x49x?xf16>) outs(%te : tensor<?x49x64xf16>) permutation = [2, 1, 0]
  return %t : tensor<?x49x64xf16>
}

// A result that something else reads, too, keeps its layout.
// CHECK-LABEL: func.func @read_twice
// CHECK: nm_sparse.matmul {{.*}} -> tensor<64x784xf32>
// CHECK: linalg.transpose {{.*}} permutation = [2, 1, 0]
func.func @read_twice(%x: tensor<576x784xf16>, %values: tensor<144x64xf16>, %index: tensor<144x1xi8>) -> (tensor<64x784xf32>, tensor<16x49x64xf32>) {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<64x784xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<64x784xf32>) -> tensor<64x784xf32>
  %y = nm_sparse.matmul <8:32, block = [1, 64]> indexing_maps = [#xm, #wm, #nm]
    ins(%x, %values, %index : tensor<576x784xf16>, tensor<144x64xf16>, tensor<144x1xi8>) outs(%init : tensor<64x784xf32>) -> tensor<64x784xf32>
  %e = tensor.expand_shape %y [[0], [1, 2]] output_shape [64, 49, 16] : tensor<64x784xf32> into tensor<64x49x16xf32>
  %te = tensor.empty() : tensor<16x49x64xf32>
  %t = linalg.transpose ins(%e : tensor<64x49x16xf32>) outs(%te : tensor<16x49x64xf32>) permutation = [2, 1, 0]
  return %y, %t : tensor<64x784xf32>, tensor<16x49x64xf32>
}
