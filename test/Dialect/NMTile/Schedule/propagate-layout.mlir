// RUN: nm-opt %s --nm-sparse-propagate-layout="chip=sm_90a layout=feature-major" --canonicalize --split-input-file --verify-diagnostics | FileCheck %s

#w = #nm_sparse.encoding<8:32, block = [1, 128]>
#xm = affine_map<(m, n, k) -> (m, k)>
#wm = affine_map<(m, n, k) -> (k, n)>
#ym = affine_map<(m, n, k) -> (m, n)>
#row = affine_map<(m, n) -> (m, n)>
#bias = affine_map<(m, n) -> (n)>

// Two layers with a bias and GELU between: one transposition at the entry, none
// between, and the last result as it was.

// CHECK-DAG: #[[KM:.*]] = affine_map<(d0, d1, d2) -> (d2, d0)>
// CHECK-DAG: #[[MN:.*]] = affine_map<(d0, d1, d2) -> (d0, d1)>
// CHECK-DAG: #[[COLUMNS:.*]] = affine_map<(d0, d1) -> (d1, d0)>
// CHECK-LABEL: func @two_layers
// CHECK-SAME: (%[[X:.*]]: tensor<?x512xf16>, {{.*}}) -> tensor<?x512xf32>
// CHECK: %[[M:.*]] = tensor.dim %[[X]]
// CHECK: %[[XE:.*]] = tensor.empty(%[[M]]) : tensor<512x?xf16>
// CHECK: %[[T:.*]] = linalg.transpose ins(%[[X]] : tensor<?x512xf16>) outs(%[[XE]] : tensor<512x?xf16>) permutation = [1, 0]
// CHECK: nm_sparse.matmul {{.*}} indexing_maps = [#[[KM]], #{{.*}}, #[[MN]]] ins(%[[T]],
// CHECK: %[[HE:.*]] = tensor.empty(%{{.*}}) : tensor<1024x?xf16>
// CHECK: %[[H:.*]] = linalg.generic {indexing_maps = [#{{.*}}, #{{.*}}, #[[COLUMNS]]]
// CHECK-SAME: outs(%[[HE]] : tensor<1024x?xf16>)
// CHECK-NOT: linalg.transpose
// CHECK: %[[Y:.*]] = nm_sparse.matmul {{.*}} indexing_maps = [#[[KM]], #{{.*}}, #[[MN]]] ins(%[[H]],
// CHECK: return %[[Y]]
func.func @two_layers(%x: tensor<?x512xf16>, %v1: tensor<128x1024xf16>,
    %i1: tensor<128x8xi8>, %b1: tensor<1024xf32>, %v2: tensor<256x512xf16>,
    %i2: tensor<256x4xi8>) -> tensor<?x512xf32> {
  %c0 = arith.constant 0 : index
  %half = arith.constant 0.5 : f32
  %zero = arith.constant 0.0 : f32
  %m = tensor.dim %x, %c0 : tensor<?x512xf16>
  %e1 = tensor.empty(%m) : tensor<?x1024xf32>
  %f1 = linalg.fill ins(%zero : f32) outs(%e1 : tensor<?x1024xf32>) -> tensor<?x1024xf32>
  %p = nm_sparse.matmul #w indexing_maps = [#xm, #wm, #ym]
      ins(%x, %v1, %i1 : tensor<?x512xf16>, tensor<128x1024xf16>, tensor<128x8xi8>)
      outs(%f1 : tensor<?x1024xf32>) -> tensor<?x1024xf32>
  %he = tensor.empty(%m) : tensor<?x1024xf16>
  %h = linalg.generic {indexing_maps = [#row, #bias, #row],
                       iterator_types = ["parallel", "parallel"]}
      ins(%p, %b1 : tensor<?x1024xf32>, tensor<1024xf32>)
      outs(%he : tensor<?x1024xf16>) {
  ^bb0(%a: f32, %b: f32, %o: f16):
    %s = arith.addf %a, %b : f32
    %e = math.erf %s : f32
    %g = arith.mulf %s, %e : f32
    %t = arith.truncf %g : f32 to f16
    linalg.yield %t : f16
  } -> tensor<?x1024xf16>
  %e2 = tensor.empty(%m) : tensor<?x512xf32>
  %f2 = linalg.fill ins(%zero : f32) outs(%e2 : tensor<?x512xf32>) -> tensor<?x512xf32>
  %y = nm_sparse.matmul #w indexing_maps = [#xm, #wm, #ym]
      ins(%h, %v2, %i2 : tensor<?x1024xf16>, tensor<256x512xf16>, tensor<256x4xi8>)
      outs(%f2 : tensor<?x512xf32>) -> tensor<?x512xf32>
  return %y : tensor<?x512xf32>
}

// -----

#w = #nm_sparse.encoding<8:32, block = [1, 128]>
#xm = affine_map<(m, n, k) -> (m, k)>
#wm = affine_map<(m, n, k) -> (k, n)>
#ym = affine_map<(m, n, k) -> (m, n)>

// One product writes the next one's input; two products share a transposition,
// and the initial accumulator, a fill, is made anew.

// CHECK-LABEL: func.func @shared
// CHECK-SAME: %[[X:[a-z0-9]*]]: tensor<64x512xf16>
// CHECK: %[[T:.*]] = linalg.transpose ins(%[[X]]
// CHECK-NOT: linalg.transpose
// CHECK: %[[F:.*]] = linalg.fill {{.*}} -> tensor<512x64xf16>
// CHECK: %[[P:.*]] = nm_sparse.matmul {{.*}} ins(%[[T]], {{.*}} outs(%[[F]] : tensor<512x64xf16>)
// CHECK: nm_sparse.matmul {{.*}} ins(%[[P]],
// CHECK: nm_sparse.matmul {{.*}} ins(%[[T]],
func.func @shared(%x: tensor<64x512xf16>, %v: tensor<128x512xf16>,
    %i: tensor<128x4xi8>, %o: tensor<64x512xf16>)
    -> (tensor<64x512xf16>, tensor<64x512xf16>) {
  %zero = arith.constant 0.0 : f16
  %e = tensor.empty() : tensor<64x512xf16>
  %f = linalg.fill ins(%zero : f16) outs(%e : tensor<64x512xf16>) -> tensor<64x512xf16>
  %p = nm_sparse.matmul #w indexing_maps = [#xm, #wm, #ym]
      ins(%x, %v, %i : tensor<64x512xf16>, tensor<128x512xf16>, tensor<128x4xi8>)
      outs(%f : tensor<64x512xf16>) -> tensor<64x512xf16>
  %y = nm_sparse.matmul #w indexing_maps = [#xm, #wm, #ym]
      ins(%p, %v, %i : tensor<64x512xf16>, tensor<128x512xf16>, tensor<128x4xi8>)
      outs(%o : tensor<64x512xf16>) -> tensor<64x512xf16>
  %z = nm_sparse.matmul #w indexing_maps = [#xm, #wm, #ym]
      ins(%x, %v, %i : tensor<64x512xf16>, tensor<128x512xf16>, tensor<128x4xi8>)
      outs(%o : tensor<64x512xf16>) -> tensor<64x512xf16>
  return %y, %z : tensor<64x512xf16>, tensor<64x512xf16>
}

// -----

#w = #nm_sparse.encoding<8:32, block = [1, 128]>
#xm = affine_map<(m, n, k) -> (m, k)>
#wm = affine_map<(m, n, k) -> (k, n)>
#ym = affine_map<(m, n, k) -> (m, n)>
#row = affine_map<(m, n) -> (m, n)>

// A residual inside of the chain reads the transposed activations, also when
// the op is a named one; one that feeds the next product twice is changed once.

// CHECK-DAG: #[[COLUMNS:.*]] = affine_map<(d0, d1) -> (d1, d0)>
// CHECK-LABEL: func.func @residual
// CHECK-SAME: %[[X:[a-z0-9]*]]: tensor<64x512xf16>
// CHECK: %[[T:.*]] = linalg.transpose ins(%[[X]]
// CHECK-NOT: linalg.transpose
// CHECK: %[[P:.*]] = nm_sparse.matmul {{.*}} ins(%[[T]],
// CHECK: %[[H:.*]] = linalg.generic {indexing_maps = [#{{.*}}, #[[COLUMNS]], #[[COLUMNS]]]
// CHECK-SAME: ins(%[[P]], %[[T]] :
// CHECK: %[[Q:.*]] = nm_sparse.matmul {{.*}} ins(%[[H]],
// CHECK: linalg.generic {indexing_maps = [#{{.*}}, #[[COLUMNS]], #{{.*}}]
// CHECK-SAME: ins(%[[Q]], %[[H]] : tensor<64x512xf16>, tensor<512x64xf16>) outs({{.*}} : tensor<64x512xf16>)
func.func @residual(%x: tensor<64x512xf16>, %v: tensor<128x512xf16>,
    %i: tensor<128x4xi8>) -> tensor<64x512xf16> {
  %zero = arith.constant 0.0 : f16
  %e = tensor.empty() : tensor<64x512xf16>
  %f = linalg.fill ins(%zero : f16) outs(%e : tensor<64x512xf16>) -> tensor<64x512xf16>
  %p = nm_sparse.matmul #w indexing_maps = [#xm, #wm, #ym]
      ins(%x, %v, %i : tensor<64x512xf16>, tensor<128x512xf16>, tensor<128x4xi8>)
      outs(%f : tensor<64x512xf16>) -> tensor<64x512xf16>
  %h = linalg.add ins(%p, %x : tensor<64x512xf16>, tensor<64x512xf16>)
      outs(%e : tensor<64x512xf16>) -> tensor<64x512xf16>
  %q = nm_sparse.matmul #w indexing_maps = [#xm, #wm, #ym]
      ins(%h, %v, %i : tensor<64x512xf16>, tensor<128x512xf16>, tensor<128x4xi8>)
      outs(%f : tensor<64x512xf16>) -> tensor<64x512xf16>
  %y = linalg.add ins(%q, %h : tensor<64x512xf16>, tensor<64x512xf16>)
      outs(%h : tensor<64x512xf16>) -> tensor<64x512xf16>
  return %y : tensor<64x512xf16>
}

// -----

#w = #nm_sparse.encoding<8:32, block = [1, 128]>
#xm = affine_map<(m, n, k) -> (m, k)>
#wm = affine_map<(m, n, k) -> (k, n)>
#ym = affine_map<(m, n, k) -> (m, n)>

// An intermediate that is returned keeps its layout.

// CHECK-LABEL: func.func @other_user
// CHECK-SAME: %[[X:[a-z0-9]*]]: tensor<64x512xf16>
// CHECK: linalg.transpose ins(%[[X]]
// CHECK: %[[P:.*]] = nm_sparse.matmul
// CHECK: %[[T:.*]] = linalg.transpose ins(%[[P]]
// CHECK: %[[Y:.*]] = nm_sparse.matmul {{.*}} ins(%[[T]],
// CHECK: return %[[P]], %[[Y]]
func.func @other_user(%x: tensor<64x512xf16>, %v: tensor<128x512xf16>,
    %i: tensor<128x4xi8>, %o: tensor<64x512xf16>)
    -> (tensor<64x512xf16>, tensor<64x512xf16>) {
  %zero = arith.constant 0.0 : f16
  %e = tensor.empty() : tensor<64x512xf16>
  %f = linalg.fill ins(%zero : f16) outs(%e : tensor<64x512xf16>) -> tensor<64x512xf16>
  // expected-remark @below {{is transposed for a product, because it has a use that wants it token-major}}
  %p = nm_sparse.matmul #w indexing_maps = [#xm, #wm, #ym]
      ins(%x, %v, %i : tensor<64x512xf16>, tensor<128x512xf16>, tensor<128x4xi8>)
      outs(%f : tensor<64x512xf16>) -> tensor<64x512xf16>
  %y = nm_sparse.matmul #w indexing_maps = [#xm, #wm, #ym]
      ins(%p, %v, %i : tensor<64x512xf16>, tensor<128x512xf16>, tensor<128x4xi8>)
      outs(%o : tensor<64x512xf16>) -> tensor<64x512xf16>
  // expected-note @below {{that use is here}}
  return %p, %y : tensor<64x512xf16>, tensor<64x512xf16>
}

// -----

#w = #nm_sparse.encoding<8:32, block = [1, 128]>
#xm = affine_map<(b, m, n, k) -> (b, m, k)>
#wm = affine_map<(b, m, n, k) -> (k, n)>
#ym = affine_map<(b, m, n, k) -> (b, m, n)>

// With a batch, its dimension stays where it is; sizes are asked of the other
// dimension.

// CHECK-DAG: #[[BKM:.*]] = affine_map<(d0, d1, d2, d3) -> (d0, d3, d1)>
// CHECK-DAG: #[[BNM:.*]] = affine_map<(d0, d1, d2, d3) -> (d0, d2, d1)>
// CHECK-LABEL: func.func @batch
// CHECK-SAME: %[[X:[a-z0-9]*]]: tensor<4x?x512xf16>
// CHECK: %[[T:.*]] = linalg.transpose ins(%[[X]] : tensor<4x?x512xf16>) outs(%{{.*}} : tensor<4x512x?xf16>) permutation = [0, 2, 1]
// CHECK-NOT: linalg.transpose
// CHECK: %[[P:.*]] = nm_sparse.matmul {{.*}} indexing_maps = [#[[BKM]], #{{.*}}, #[[BNM]]] ins(%[[T]],
// CHECK-SAME: -> tensor<4x512x?xf16>
// CHECK: nm_sparse.matmul {{.*}} indexing_maps = [#[[BKM]], {{.*}} ins(%[[P]],
func.func @batch(%x: tensor<4x?x512xf16>, %v: tensor<128x512xf16>,
    %i: tensor<128x4xi8>, %o: tensor<4x?x512xf16>)
    -> (tensor<4x?x512xf16>, index) {
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f16
  %m = tensor.dim %x, %c1 : tensor<4x?x512xf16>
  %e = tensor.empty(%m) : tensor<4x?x512xf16>
  %f = linalg.fill ins(%zero : f16) outs(%e : tensor<4x?x512xf16>) -> tensor<4x?x512xf16>
  %p = nm_sparse.matmul #w indexing_maps = [#xm, #wm, #ym]
      ins(%x, %v, %i : tensor<4x?x512xf16>, tensor<128x512xf16>, tensor<128x4xi8>)
      outs(%f : tensor<4x?x512xf16>) -> tensor<4x?x512xf16>
  %d = tensor.dim %p, %c1 : tensor<4x?x512xf16>
  %y = nm_sparse.matmul #w indexing_maps = [#xm, #wm, #ym]
      ins(%p, %v, %i : tensor<4x?x512xf16>, tensor<128x512xf16>, tensor<128x4xi8>)
      outs(%o : tensor<4x?x512xf16>) -> tensor<4x?x512xf16>
  return %y, %d : tensor<4x?x512xf16>, index
}

// -----

#w = #nm_sparse.encoding<8:32, block = [1, 128]>
#xm = affine_map<(m, n, k) -> (m, k)>
#xt = affine_map<(m, n, k) -> (k, m)>
#wm = affine_map<(m, n, k) -> (k, n)>
#ym = affine_map<(m, n, k) -> (m, n)>
#yt = affine_map<(m, n, k) -> (n, m)>

// A chain that is feature-major already is left alone, and a transposition that
// is there is not undone by another one.

// CHECK-LABEL: func.func @feature_major
// CHECK-SAME: %[[X:[a-z0-9]*]]: tensor<512x64xf16>
// CHECK-NOT: linalg
// CHECK: %[[P:.*]] = nm_sparse.matmul {{.*}} ins(%[[X]],
// CHECK: nm_sparse.matmul {{.*}} ins(%[[P]],
// CHECK: nm_sparse.matmul {{.*}} ins(%[[X]],
// CHECK-NOT: linalg
func.func @feature_major(%x: tensor<512x64xf16>, %v: tensor<128x512xf16>,
    %i: tensor<128x4xi8>, %f: tensor<512x64xf16>, %o: tensor<64x512xf16>)
    -> (tensor<64x512xf16>, tensor<64x512xf16>) {
  %p = nm_sparse.matmul #w indexing_maps = [#xt, #wm, #yt]
      ins(%x, %v, %i : tensor<512x64xf16>, tensor<128x512xf16>, tensor<128x4xi8>)
      outs(%f : tensor<512x64xf16>) -> tensor<512x64xf16>
  %y = nm_sparse.matmul #w indexing_maps = [#xt, #wm, #ym]
      ins(%p, %v, %i : tensor<512x64xf16>, tensor<128x512xf16>, tensor<128x4xi8>)
      outs(%o : tensor<64x512xf16>) -> tensor<64x512xf16>
  %e = tensor.empty() : tensor<64x512xf16>
  %t = linalg.transpose ins(%x : tensor<512x64xf16>) outs(%e : tensor<64x512xf16>)
      permutation = [1, 0]
  %z = nm_sparse.matmul #w indexing_maps = [#xm, #wm, #ym]
      ins(%t, %v, %i : tensor<64x512xf16>, tensor<128x512xf16>, tensor<128x4xi8>)
      outs(%o : tensor<64x512xf16>) -> tensor<64x512xf16>
  return %y, %z : tensor<64x512xf16>, tensor<64x512xf16>
}

// -----

// The order of outputs does not stand in the way: it changes with the layout.
#w = #nm_sparse.encoding<8:32, block = [1, 128]>
#xm = affine_map<(m, n, k) -> (m, k)>
#wm = affine_map<(m, n, k) -> (k, n)>
#ym = affine_map<(m, n, k) -> (m, n)>
// CHECK-LABEL: func @shuffled
// CHECK: linalg.transpose
// CHECK: %[[Y:.*]] = nm_sparse.matmul {{.*}} -> tensor<1024x?xf16>
// CHECK: %[[P:.*]] = nm_sparse.permute %[[Y]], %{{.*}} dim = 0 : tensor<1024x?xf16>, tensor<1024xi32>
// CHECK-NOT: linalg.transpose
// CHECK: nm_sparse.matmul {{.*}} ins(%[[P]],
func.func @shuffled(%x: tensor<?x512xf16>, %v1: tensor<128x1024xf16>, %i1: tensor<128x8xi8>, %p: tensor<1024xi32>,
    %v2: tensor<256x512xf16>, %i2: tensor<256x4xi8>, %init: tensor<?x512xf16>) -> tensor<?x512xf16> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f16
  %m = tensor.dim %x, %c0 : tensor<?x512xf16>
  %e = tensor.empty(%m) : tensor<?x1024xf16>
  %f = linalg.fill ins(%zero : f16) outs(%e : tensor<?x1024xf16>) -> tensor<?x1024xf16>
  %y = nm_sparse.matmul #w indexing_maps = [#xm, #wm, #ym]
      ins(%x, %v1, %i1 : tensor<?x512xf16>, tensor<128x1024xf16>, tensor<128x8xi8>)
      outs(%f : tensor<?x1024xf16>) -> tensor<?x1024xf16>
  %q = nm_sparse.permute %y, %p dim = 1 : tensor<?x1024xf16>, tensor<1024xi32>
  %z = nm_sparse.matmul #w indexing_maps = [#xm, #wm, #ym]
      ins(%q, %v2, %i2 : tensor<?x1024xf16>, tensor<256x512xf16>, tensor<256x4xi8>)
      outs(%init : tensor<?x512xf16>) -> tensor<?x512xf16>
  return %z : tensor<?x512xf16>
}
