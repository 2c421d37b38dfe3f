// RUN: nm-opt %s --nm-sparse-sink-reshapes --split-input-file | FileCheck %s

// A layer over batch x sequence, both dynamic, as PyTorch exports it: bias and
// ReLU are computed in two dimensions, where they are fused with the product.

#w = #nm_sparse.encoding<2:4>
#xm = affine_map<(m, n, k) -> (m, k)>
#wm = affine_map<(m, n, k) -> (k, n)>
#ym = affine_map<(m, n, k) -> (m, n)>
#id = affine_map<(b, s, n) -> (b, s, n)>
#bias = affine_map<(b, s, n) -> (n)>

// CHECK-DAG: #[[ID:.+]] = affine_map<(d0, d1) -> (d0, d1)>
// CHECK-DAG: #[[BIAS:.+]] = affine_map<(d0, d1) -> (d1)>
// CHECK-LABEL: func @dynamic
// CHECK-SAME: %{{[^:]*}}: tensor<?x64xf32>, %[[V:[^:]*]]: tensor<32x96xf32>
func.func @dynamic(%x: tensor<?x64xf32>, %v: tensor<32x96xf32>, %i: tensor<32x96xi8>, %bias: tensor<96xf32>,
                   %init: tensor<?x96xf32>, %b: index, %s: index) -> tensor<?x?x96xf32> {
  %zero = arith.constant 0.0 : f32
  // CHECK: %[[P:.+]] = nm_sparse.matmul
  %p = nm_sparse.matmul #w indexing_maps = [#xm, #wm, #ym]
    ins(%x, %v, %i : tensor<?x64xf32>, tensor<32x96xf32>, tensor<32x96xi8>) outs(%init : tensor<?x96xf32>) -> tensor<?x96xf32>
  %p3 = tensor.expand_shape %p [[0, 1], [2]] output_shape [%b, %s, 96] : tensor<?x96xf32> into tensor<?x?x96xf32>
  %e = tensor.empty(%b, %s) : tensor<?x?x96xf32>
  // CHECK: %[[A:.+]] = linalg.generic {indexing_maps = [#[[ID]], #[[BIAS]], #[[ID]]]
  // CHECK-SAME: ins(%[[P]], %{{.*}} : tensor<?x96xf32>, tensor<96xf32>)
  %a = linalg.generic {indexing_maps = [#id, #bias, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%p3, %bias : tensor<?x?x96xf32>, tensor<96xf32>) outs(%e : tensor<?x?x96xf32>) {
  ^bb0(%0: f32, %1: f32, %o: f32):
    %2 = arith.addf %0, %1 : f32
    linalg.yield %2 : f32
  } -> tensor<?x?x96xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?x?x96xf32>) -> tensor<?x?x96xf32>
  // CHECK-NOT: tensor.dim
  // A named op is generalized, and a constant tensor read as the constant.
  // CHECK: %[[R:.+]] = linalg.generic
  // CHECK-SAME: ins(%[[A]], %{{.*}} : tensor<?x96xf32>, f32)
  // CHECK: %[[Y:.+]] = tensor.expand_shape %[[R]]
  // CHECK: return %[[Y]]
  %r = linalg.max ins(%a, %f : tensor<?x?x96xf32>, tensor<?x?x96xf32>) outs(%e : tensor<?x?x96xf32>) -> tensor<?x?x96xf32>
  return %r : tensor<?x?x96xf32>
}

// -----

// A residual of three dimensions is collapsed; the next layer reads what was
// computed in two.

#w = #nm_sparse.encoding<2:4>
#xm = affine_map<(m, n, k) -> (m, k)>
#wm = affine_map<(m, n, k) -> (k, n)>
#ym = affine_map<(m, n, k) -> (m, n)>

// CHECK-LABEL: func @two_layers
// CHECK-SAME: %{{[^:]*}}: tensor<16x64xf32>, %{{[^:]*}}: tensor<32x64xf32>, %{{[^:]*}}: tensor<32x64xi8>, %[[RES:[^:]*]]: tensor<2x8x64xf32>
func.func @two_layers(%x: tensor<16x64xf32>, %v: tensor<32x64xf32>, %i: tensor<32x64xi8>, %res: tensor<2x8x64xf32>,
                      %init: tensor<16x64xf32>) -> tensor<16x64xf32> {
  // CHECK: %[[P:.+]] = nm_sparse.matmul
  %p = nm_sparse.matmul #w indexing_maps = [#xm, #wm, #ym]
    ins(%x, %v, %i : tensor<16x64xf32>, tensor<32x64xf32>, tensor<32x64xi8>) outs(%init : tensor<16x64xf32>) -> tensor<16x64xf32>
  %p3 = tensor.expand_shape %p [[0, 1], [2]] output_shape [2, 8, 64] : tensor<16x64xf32> into tensor<2x8x64xf32>
  %e = tensor.empty() : tensor<2x8x64xf32>
  // CHECK: %[[C:.+]] = tensor.collapse_shape %[[RES]]
  // CHECK: %[[A:.+]] = linalg.generic
  // CHECK-SAME: ins(%[[P]], %[[C]] : tensor<16x64xf32>, tensor<16x64xf32>)
  %a = linalg.add ins(%p3, %res : tensor<2x8x64xf32>, tensor<2x8x64xf32>) outs(%e : tensor<2x8x64xf32>) -> tensor<2x8x64xf32>
  %c = tensor.collapse_shape %a [[0, 1], [2]] : tensor<2x8x64xf32> into tensor<16x64xf32>
  // CHECK: nm_sparse.matmul {{.*}} ins(%[[A]],
  %q = nm_sparse.matmul #w indexing_maps = [#xm, #wm, #ym]
    ins(%c, %v, %i : tensor<16x64xf32>, tensor<32x64xf32>, tensor<32x64xi8>) outs(%init : tensor<16x64xf32>) -> tensor<16x64xf32>
  return %q : tensor<16x64xf32>
}

// -----

// What is not elementwise, and what no product computes, keeps its dimensions.

#w = #nm_sparse.encoding<2:4>
#id = affine_map<(b, s, n) -> (b, s, n)>
#swap = affine_map<(b, s, n) -> (s, b, n)>

// CHECK-LABEL: func @others
func.func @others(%x: tensor<16x64xf32>, %v: tensor<32x64xf32>, %i: tensor<32x64xi8>, %init: tensor<16x64xf32>)
    -> (tensor<8x2x64xf32>, tensor<2x8x64xf32>) {
  // CHECK: %[[P:.+]] = nm_sparse.matmul
  // CHECK: %[[P3:.+]] = tensor.expand_shape %[[P]]
  %p = nm_sparse.matmul #w indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
    ins(%x, %v, %i : tensor<16x64xf32>, tensor<32x64xf32>, tensor<32x64xi8>) outs(%init : tensor<16x64xf32>) -> tensor<16x64xf32>
  %p3 = tensor.expand_shape %p [[0, 1], [2]] output_shape [2, 8, 64] : tensor<16x64xf32> into tensor<2x8x64xf32>
  %e = tensor.empty() : tensor<8x2x64xf32>
  // CHECK: linalg.generic
  // CHECK-SAME: ins(%[[P3]] : tensor<2x8x64xf32>)
  %t = linalg.generic {indexing_maps = [#swap, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%p3 : tensor<2x8x64xf32>) outs(%e : tensor<8x2x64xf32>) {
  ^bb0(%0: f32, %o: f32):
    linalg.yield %0 : f32
  } -> tensor<8x2x64xf32>
  %x3 = tensor.expand_shape %x [[0, 1], [2]] output_shape [2, 8, 64] : tensor<16x64xf32> into tensor<2x8x64xf32>
  // CHECK: linalg.exp
  %f = tensor.empty() : tensor<2x8x64xf32>
  %y = linalg.exp ins(%x3 : tensor<2x8x64xf32>) outs(%f : tensor<2x8x64xf32>) -> tensor<2x8x64xf32>
  return %t, %y : tensor<8x2x64xf32>, tensor<2x8x64xf32>
}

// -----

// --linalg-fuse-elementwise-ops lets the product have three dimensions, between
// reshapes that take back each other: one that is shown to have the same sizes.

#w = #nm_sparse.encoding<2:4>
#xm = affine_map<(b, m, n, k) -> (b, m, k)>
#wm = affine_map<(b, m, n, k) -> (k, n)>
#ym = affine_map<(b, m, n, k) -> (b, m, n)>

// CHECK-LABEL: func @pair
func.func @pair(%x: tensor<?x?x64xf32>, %v: tensor<32x96xf32>, %i: tensor<32x96xi8>, %other: index) -> (tensor<?x?x96xf32>, tensor<?x?x96xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %b = tensor.dim %x, %c0 : tensor<?x?x64xf32>
  %s = tensor.dim %x, %c1 : tensor<?x?x64xf32>
  %b2 = tensor.dim %x, %c0 : tensor<?x?x64xf32>
  %e = tensor.empty(%b, %s) : tensor<?x?x96xf32>
  // CHECK: %[[P:.+]] = nm_sparse.matmul
  %p = nm_sparse.matmul #w indexing_maps = [#xm, #wm, #ym]
    ins(%x, %v, %i : tensor<?x?x64xf32>, tensor<32x96xf32>, tensor<32x96xi8>) outs(%e : tensor<?x?x96xf32>) -> tensor<?x?x96xf32>
  %c = tensor.collapse_shape %p [[0, 1], [2]] : tensor<?x?x96xf32> into tensor<?x96xf32>
  %same = tensor.expand_shape %c [[0, 1], [2]] output_shape [%b2, %s, 96] : tensor<?x96xf32> into tensor<?x?x96xf32>
  // CHECK: %[[OTHER:.+]] = tensor.expand_shape
  // CHECK: return %[[P]], %[[OTHER]]
  %differs = tensor.expand_shape %c [[0, 1], [2]] output_shape [%other, %s, 96] : tensor<?x96xf32> into tensor<?x?x96xf32>
  return %same, %differs : tensor<?x?x96xf32>, tensor<?x?x96xf32>
}

// -----

// A bias that is broadcast by an op of its own.

#w = #nm_sparse.encoding<2:4>

// CHECK-DAG: #[[ID:.+]] = affine_map<(d0, d1) -> (d0, d1)>
// CHECK-DAG: #[[BIAS:.+]] = affine_map<(d0, d1) -> (d1)>
// CHECK-LABEL: func @broadcast
// CHECK-SAME: %[[B:[^:]*]]: tensor<96xf32>, %[[T:[^:]*]]: tensor<16xf32>
func.func @broadcast(%x: tensor<16x64xf32>, %v: tensor<32x96xf32>, %i: tensor<32x96xi8>, %init: tensor<16x96xf32>,
                     %bias: tensor<96xf32>, %other: tensor<16xf32>) -> (tensor<16x96xf32>, tensor<96x16xf32>) {
  // CHECK: %[[P:.+]] = nm_sparse.matmul
  %p = nm_sparse.matmul #w indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
    ins(%x, %v, %i : tensor<16x64xf32>, tensor<32x96xf32>, tensor<32x96xi8>) outs(%init : tensor<16x96xf32>) -> tensor<16x96xf32>
  %e = tensor.empty() : tensor<16x96xf32>
  // CHECK: %[[Y:.+]] = linalg.generic {indexing_maps = [#[[ID]], #[[BIAS]], #[[ID]]]
  // CHECK-SAME: ins(%[[P]], %[[B]] :
  %b = linalg.broadcast ins(%bias : tensor<96xf32>) outs(%e : tensor<16x96xf32>) dimensions = [0]
  %y = linalg.add ins(%p, %b : tensor<16x96xf32>, tensor<16x96xf32>) outs(%e : tensor<16x96xf32>) -> tensor<16x96xf32>
  // What has nothing to do with a product stays as it is.
  // CHECK: %[[O:.+]] = linalg.broadcast ins(%[[T]]
  // CHECK: linalg.exp ins(%[[O]]
  %f = tensor.empty() : tensor<96x16xf32>
  %o = linalg.broadcast ins(%other : tensor<16xf32>) outs(%f : tensor<96x16xf32>) dimensions = [0]
  %z = linalg.exp ins(%o : tensor<96x16xf32>) outs(%f : tensor<96x16xf32>) -> tensor<96x16xf32>
  return %y, %z : tensor<16x96xf32>, tensor<96x16xf32>
}
