// RUN: nm-test-opt %s --transform-interpreter --split-input-file --canonicalize --cse | FileCheck %s

// The contraction of a product in parts, by upstream's tilings.

#w = #nm_sparse.encoding<2:4, block = [1, 32]>
#xm = affine_map<(m, n, k) -> (m, k)>
#wm = affine_map<(m, n, k) -> (k, n)>
#ym = affine_map<(m, n, k) -> (m, n)>

// 4 parts of 4 windows: each writes sums of its own, and the merge adds init.

// CHECK-LABEL: func @parallel
// CHECK-SAME: %[[X:.*]]: tensor<8x64xf32>, %[[V:.*]]: tensor<32x64xf32>, %[[I:.*]]: tensor<32x2xi8>, %[[INIT:.*]]: tensor<8x64xf32>
// CHECK: %[[ZERO:.*]] = linalg.fill {{.*}} -> tensor<4x8x64xf32>
// CHECK: %[[PARTS:.*]] = scf.forall (%[[W:.*]]) = (0) to (16) step (4) shared_outs(%[[OUT:.*]] = %[[ZERO]])
// CHECK: %[[PART:.*]] = affine.apply #{{.*}}()[%[[W]]]
// CHECK-DAG: %[[XW:.*]] = tensor.extract_slice %[[X]][0, %{{.*}}] [8, 16]
// CHECK-DAG: %[[VW:.*]] = tensor.extract_slice %[[V]][%{{.*}}, 0] [8, 64]
// CHECK-DAG: %[[IW:.*]] = tensor.extract_slice %[[I]][%{{.*}}, 0] [8, 2]
// CHECK-DAG: %[[SUM:.*]] = tensor.extract_slice %[[OUT]][%[[PART]], 0, 0] [1, 8, 64] {{.*}} to tensor<8x64xf32>
// CHECK: %[[NEW:.*]] = nm_sparse.matmul {{.*}} ins(%[[XW]], %[[VW]], %[[IW]] {{.*}} outs(%[[SUM]]
// CHECK: tensor.parallel_insert_slice %[[NEW]] into %[[OUT]][%[[PART]], 0, 0] [1, 8, 64]
// CHECK: %[[Y:.*]] = linalg.reduce { arith.addf } ins(%[[PARTS]] : tensor<4x8x64xf32>) outs(%[[INIT]] : tensor<8x64xf32>) dimensions = [0]
// CHECK: return %[[Y]]
func.func @parallel(%x: tensor<8x64xf32>, %v: tensor<32x64xf32>, %i: tensor<32x2xi8>, %init: tensor<8x64xf32>) -> tensor<8x64xf32> {
  %y = nm_sparse.matmul #w indexing_maps = [#xm, #wm, #ym]
    ins(%x, %v, %i : tensor<8x64xf32>, tensor<32x64xf32>, tensor<32x2xi8>)
    outs(%init : tensor<8x64xf32>) -> tensor<8x64xf32>
  return %y : tensor<8x64xf32>
}
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %y = transform.structured.match ops{["nm_sparse.matmul"]} in %root : (!transform.any_op) -> !transform.any_op
    %fill, %part, %merge, %loop = transform.structured.tile_reduction_using_forall %y by tile_sizes = [0, 0, 4]
      : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op, !transform.any_op)
    transform.yield
  }
}
// -----

#w = #nm_sparse.encoding<2:4, block = [1, 32]>
#xm = affine_map<(m, n, k) -> (m, k)>
#wm = affine_map<(m, n, k) -> (k, n)>
#ym = affine_map<(m, n, k) -> (m, n)>

// Partial sums of f16 are in f32, and rounded once. Neither the windows nor the
// contraction are a multiple of the part: the last part is smaller, and its last
// window is partial.

// CHECK-DAG: #[[REST:.*]] = affine_map<(d0) -> (-d0 + 16, 6)>
// CHECK-LABEL: func @narrow
// CHECK-SAME: %[[X:.*]]: tensor<8x62xf16>, {{.*}}%[[INIT:.*]]: tensor<8x64xf16>
// CHECK: linalg.fill {{.*}} -> tensor<3x8x64xf32>
// CHECK: %[[PARTS:.*]] = scf.forall (%[[W:.*]]) = (0) to (16) step (6)
// CHECK: affine.min #[[REST]](%[[W]])
// CHECK: tensor.extract_slice %[[X]][0, %{{.*}}] [8, %{{.*}}]
// CHECK: nm_sparse.matmul {{.*}} -> tensor<8x64xf32>
// CHECK: %[[WIDE:.*]] = linalg.copy ins(%[[INIT]] : tensor<8x64xf16>) outs(%{{.*}} : tensor<8x64xf32>)
// CHECK: %[[SUM:.*]] = linalg.reduce { arith.addf } ins(%[[PARTS]] : tensor<3x8x64xf32>) outs(%[[WIDE]] : tensor<8x64xf32>) dimensions = [0]
// CHECK: linalg.copy ins(%[[SUM]] : tensor<8x64xf32>) outs(%[[INIT]] : tensor<8x64xf16>)
func.func @narrow(%x: tensor<8x62xf16>, %v: tensor<32x64xf16>, %i: tensor<32x2xi8>, %init: tensor<8x64xf16>) -> tensor<8x64xf16> {
  %y = nm_sparse.matmul #w indexing_maps = [#xm, #wm, #ym]
    ins(%x, %v, %i : tensor<8x62xf16>, tensor<32x64xf16>, tensor<32x2xi8>)
    outs(%init : tensor<8x64xf16>) -> tensor<8x64xf16>
  return %y : tensor<8x64xf16>
}
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %y = transform.structured.match ops{["nm_sparse.matmul"]} in %root : (!transform.any_op) -> !transform.any_op
    %fill, %part, %merge, %loop = transform.structured.tile_reduction_using_forall %y by tile_sizes = [0, 0, 6]
      : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op, !transform.any_op)
    transform.yield
  }
}
// -----

#w = #nm_sparse.encoding<2:4, block = [1, 32]>
#xm = affine_map<(m, n, k) -> (m, k)>
#wm = affine_map<(m, n, k) -> (k, n)>
#ym = affine_map<(m, n, k) -> (m, n)>

// By the number of parts; sums of integers, and tokens that are not known.

// CHECK-LABEL: func @integers
// CHECK: linalg.fill {{.*}} -> tensor<2x?x64xi32>
// CHECK: scf.forall (%[[PART:.*]]) in (2) shared_outs(%[[OUT:.*]] = %{{.*}})
// CHECK: nm_sparse.matmul {{.*}} -> tensor<?x64xi32>
// CHECK: tensor.parallel_insert_slice %{{.*}} into %[[OUT]][%[[PART]], 0, 0] [1, %{{.*}}, 64]
// CHECK: linalg.reduce { arith.addi {{.*}} dimensions = [0]
func.func @integers(%x: tensor<?x64xi8>, %v: tensor<32x64xi8>, %i: tensor<32x2xi8>, %init: tensor<?x64xi32>) -> tensor<?x64xi32> {
  %y = nm_sparse.matmul #w indexing_maps = [#xm, #wm, #ym]
    ins(%x, %v, %i : tensor<?x64xi8>, tensor<32x64xi8>, tensor<32x2xi8>)
    outs(%init : tensor<?x64xi32>) -> tensor<?x64xi32>
  return %y : tensor<?x64xi32>
}
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %y = transform.structured.match ops{["nm_sparse.matmul"]} in %root : (!transform.any_op) -> !transform.any_op
    %fill, %part, %merge, %loop = transform.structured.tile_reduction_using_forall %y by num_threads = [0, 0, 2] tile_sizes = []
      : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op, !transform.any_op)
    transform.yield
  }
}
// -----

#w = #nm_sparse.encoding<2:4, block = [1, 32]>
#xm = affine_map<(m, n, k) -> (m, k)>
#wm = affine_map<(m, n, k) -> (k, n)>
#ym = affine_map<(m, n, k) -> (m, n)>

// In steps of 4 windows, where each window of a step has sums of its own: the
// windows are the batch.

// CHECK-DAG: #[[XMAP:.*]] = affine_map<(d0, d1, d2, d3) -> (d1, d0, d3)>
// CHECK-DAG: #[[WMAP:.*]] = affine_map<(d0, d1, d2, d3) -> (d0, d3, d2)>
// CHECK-DAG: #[[YMAP:.*]] = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>
// CHECK-LABEL: func @sequential
// CHECK-SAME: %[[X:.*]]: tensor<8x64xf32>, %[[V:.*]]: tensor<32x64xf32>, %[[I:.*]]: tensor<32x2xi8>, %[[INIT:.*]]: tensor<8x64xf32>
// CHECK: %[[ZERO:.*]] = linalg.fill {{.*}} -> tensor<4x8x64xf32>
// CHECK: %[[PARTS:.*]] = scf.for %{{.*}} step %c4 iter_args(%[[SUM:.*]] = %[[ZERO]])
// CHECK-DAG: %[[XW:.*]] = tensor.expand_shape %{{.*}} {{\[\[}}0], [1, 2]] output_shape [8, 4, 4]
// CHECK-DAG: %[[VW:.*]] = tensor.expand_shape %{{.*}} {{\[\[}}0, 1], [2]] output_shape [4, 2, 64]
// CHECK-DAG: %[[IW:.*]] = tensor.expand_shape %{{.*}} {{\[\[}}0, 1], [2]] output_shape [4, 2, 2]
// CHECK: nm_sparse.matmul {{.*}} indexing_maps = [#[[XMAP]], #[[WMAP]], #[[YMAP]]] ins(%[[XW]], %[[VW]], %[[IW]] {{.*}} outs(%[[SUM]] :
// CHECK: linalg.reduce { arith.addf } ins(%[[PARTS]] : tensor<4x8x64xf32>) outs(%[[INIT]] : tensor<8x64xf32>) dimensions = [0]
func.func @sequential(%x: tensor<8x64xf32>, %v: tensor<32x64xf32>, %i: tensor<32x2xi8>, %init: tensor<8x64xf32>) -> tensor<8x64xf32> {
  %y = nm_sparse.matmul #w indexing_maps = [#xm, #wm, #ym]
    ins(%x, %v, %i : tensor<8x64xf32>, tensor<32x64xf32>, tensor<32x2xi8>)
    outs(%init : tensor<8x64xf32>) -> tensor<8x64xf32>
  return %y : tensor<8x64xf32>
}
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %y = transform.structured.match ops{["nm_sparse.matmul"]} in %root : (!transform.any_op) -> !transform.any_op
    %fill, %part, %merge, %loop = transform.structured.tile_reduction_using_for %y by tile_sizes = [0, 0, 4]
      : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op, !transform.any_op)
    transform.yield
  }
}
// -----

#w = #nm_sparse.encoding<2:4, block = [1, 32]>
#xm = affine_map<(m, n, k) -> (k, m)>
#wm = affine_map<(m, n, k) -> (k, n)>
#ym = affine_map<(m, n, k) -> (n, m)>

// The last step has fewer windows, and both x and the result are feature-major.

// CHECK-LABEL: func @rest
// CHECK: linalg.fill {{.*}} -> tensor<6x64x8xf32>
// CHECK: tensor.expand_shape %{{.*}} {{\[\[}}0, 1], [2]] output_shape [%[[C:.*]], 4, 8]
// CHECK: nm_sparse.matmul {{.*}} -> tensor<?x64x8xf32>
func.func @rest(%x: tensor<64x8xf32>, %v: tensor<32x64xf32>, %i: tensor<32x2xi8>, %init: tensor<64x8xf32>) -> tensor<64x8xf32> {
  %y = nm_sparse.matmul #w indexing_maps = [#xm, #wm, #ym]
    ins(%x, %v, %i : tensor<64x8xf32>, tensor<32x64xf32>, tensor<32x2xi8>)
    outs(%init : tensor<64x8xf32>) -> tensor<64x8xf32>
  return %y : tensor<64x8xf32>
}
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %y = transform.structured.match ops{["nm_sparse.matmul"]} in %root : (!transform.any_op) -> !transform.any_op
    %fill, %part, %merge, %loop = transform.structured.tile_reduction_using_for %y by tile_sizes = [0, 0, 6]
      : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op, !transform.any_op)
    transform.yield
  }
}
