// RUN: nm-test-opt %s --transform-interpreter --split-input-file --canonicalize --cse | FileCheck %s

// What upstream's tilings find out of a tile's offset and size: that it lies in
// one panel, so that its index has one column.

#w = #nm_sparse.encoding<2:4, block = [1, 64]>
#xm = affine_map<(m, n, k) -> (m, k)>
#wm = affine_map<(m, n, k) -> (k, n)>
#ym = affine_map<(m, n, k) -> (m, n)>

// The offset is a multiple of 32 of the induction variable, which has steps of 1.

// CHECK-LABEL: func @threads
// CHECK: scf.forall (%{{.*}}) in (4)
// CHECK: tensor.extract_slice %{{.*}}[0, %{{.*}}] [32, 32] [1, 1] : tensor<32x128xf32>
// CHECK: tensor.extract_slice %{{.*}}[0, %{{.*}}] [32, 1] [1, 1] : tensor<32x2xi8>
// CHECK: nm_sparse.matmul
// CHECK-NOT: panel_offset
func.func @threads(%x: tensor<8x64xf32>, %v: tensor<32x128xf32>,
                   %i: tensor<32x2xi8>, %init: tensor<8x128xf32>) -> tensor<8x128xf32> {
  %y = nm_sparse.matmul #w indexing_maps = [#xm, #wm, #ym]
    ins(%x, %v, %i : tensor<8x64xf32>, tensor<32x128xf32>, tensor<32x2xi8>)
    outs(%init : tensor<8x128xf32>) -> tensor<8x128xf32>
  return %y : tensor<8x128xf32>
}
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %y = transform.structured.match ops{["nm_sparse.matmul"]} in %root : (!transform.any_op) -> !transform.any_op
    %t, %l = transform.structured.tile_using_forall %y num_threads [0, 4]
      : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.yield
  }
}

// -----

#w = #nm_sparse.encoding<2:4, block = [1, 64]>
#xm = affine_map<(m, n, k) -> (m, k)>
#wm = affine_map<(m, n, k) -> (k, n)>
#ym = affine_map<(m, n, k) -> (m, n)>

// The last tile is ragged; no tile has more than 32 outputs.

// CHECK-LABEL: func @ragged
// CHECK: scf.for
// CHECK: tensor.extract_slice %{{.*}}[0, %{{.*}}] [32, 32] [1, 1] : tensor<32x128xf32>
// CHECK: tensor.extract_slice %{{.*}}[0, %{{.*}}] [32, 1] [1, 1] : tensor<32x2xi8>
// CHECK: nm_sparse.matmul
// CHECK-NOT: panel_offset
func.func @ragged(%x: tensor<8x64xf32>, %v: tensor<32x128xf32>,
                  %i: tensor<32x2xi8>, %init: tensor<8x100xf32>) -> tensor<8x100xf32> {
  %y = nm_sparse.matmul #w indexing_maps = [#xm, #wm, #ym]
    ins(%x, %v, %i : tensor<8x64xf32>, tensor<32x128xf32>, tensor<32x2xi8>)
    outs(%init : tensor<8x100xf32>) -> tensor<8x100xf32>
  return %y : tensor<8x100xf32>
}
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %y = transform.structured.match ops{["nm_sparse.matmul"]} in %root : (!transform.any_op) -> !transform.any_op
    %t, %l = transform.structured.tile_using_for %y tile_sizes [0, 32]
      : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.yield
  }
}
