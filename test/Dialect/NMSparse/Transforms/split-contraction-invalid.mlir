// RUN: nm-test-opt %s --transform-interpreter --split-input-file -verify-diagnostics

// What has no parts, and why.

#w = #nm_sparse.encoding<2:4, block = [1, 32]>
#xm = affine_map<(m, n, k) -> (m, k)>
#wm = affine_map<(m, n, k) -> (k, n)>
#ym = affine_map<(m, n, k) -> (m, n)>

// Rows that begin inside a window.

func.func @part(%x: tensor<8x64xf32>, %v: tensor<6x64xf32>, %i: tensor<32x2xi8>, %init: tensor<8x64xf32>, %r: index) -> tensor<8x64xf32> {
  // expected-error @below {{with first_row cannot be split: its values are a part of what its index names}}
  %y = nm_sparse.matmul #w indexing_maps = [#xm, #wm, #ym]
    ins(%x, %v, %i : tensor<8x64xf32>, tensor<6x64xf32>, tensor<32x2xi8>)
    outs(%init : tensor<8x64xf32>) at(first_row = %r) -> tensor<8x64xf32>
  return %y : tensor<8x64xf32>
}
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %y = transform.structured.match ops{["nm_sparse.matmul"]} in %root : (!transform.any_op) -> !transform.any_op
    // expected-error @below {{could not tile reduction}}
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

// The last window of x is partial.

func.func @partial_window(%x: tensor<8x62xf32>, %v: tensor<32x64xf32>, %i: tensor<32x2xi8>, %init: tensor<8x64xf32>) -> tensor<8x64xf32> {
  // expected-error @below {{with a contraction of 62 cannot be split into the windows of a tile, legal is a multiple of the 4 rows of a window}}
  // expected-error @below {{to tile operation}}
  // expected-error @below {{failed to generate tiling loops}}
  %y = nm_sparse.matmul #w indexing_maps = [#xm, #wm, #ym]
    ins(%x, %v, %i : tensor<8x62xf32>, tensor<32x64xf32>, tensor<32x2xi8>)
    outs(%init : tensor<8x64xf32>) -> tensor<8x64xf32>
  return %y : tensor<8x64xf32>
}
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %y = transform.structured.match ops{["nm_sparse.matmul"]} in %root : (!transform.any_op) -> !transform.any_op
    // expected-error @below {{failed to tile using partial reduction}}
    %fill, %part, %merge, %loop = transform.structured.tile_reduction_using_for %y by tile_sizes = [0, 0, 4]
      : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op, !transform.any_op)
    transform.yield
  }
}

// -----

#w = #nm_sparse.encoding<2:4, block = [1, 32]>
#xm = affine_map<(m, n, k) -> (m, k)>
#wm = affine_map<(m, n, k) -> (k, n)>
#ym = affine_map<(m, n, k) -> (m, n)>

// Nor is it known whether it is.

func.func @unknown(%x: tensor<8x?xf32>, %v: tensor<32x64xf32>, %i: tensor<32x2xi8>, %init: tensor<8x64xf32>) -> tensor<8x64xf32> {
  // expected-error @below {{with a contraction of unknown size cannot be split into the windows of a tile}}
  // expected-error @below {{to tile operation}}
  // expected-error @below {{failed to generate tiling loops}}
  %y = nm_sparse.matmul #w indexing_maps = [#xm, #wm, #ym]
    ins(%x, %v, %i : tensor<8x?xf32>, tensor<32x64xf32>, tensor<32x2xi8>)
    outs(%init : tensor<8x64xf32>) -> tensor<8x64xf32>
  return %y : tensor<8x64xf32>
}
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %y = transform.structured.match ops{["nm_sparse.matmul"]} in %root : (!transform.any_op) -> !transform.any_op
    // expected-error @below {{failed to tile using partial reduction}}
    %fill, %part, %merge, %loop = transform.structured.tile_reduction_using_for %y by tile_sizes = [0, 0, 4]
      : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op, !transform.any_op)
    transform.yield
  }
}

// -----

#w = #nm_sparse.encoding<2:4, block = [1, 32]>
#xm = affine_map<(b, m, n, k) -> (b, m, k)>
#wm = affine_map<(b, m, n, k) -> (k, n)>
#ym = affine_map<(b, m, n, k) -> (b, m, n)>

// A batch that is not of windows.

func.func @batch(%x: tensor<3x8x64xf32>, %v: tensor<32x64xf32>, %i: tensor<32x2xi8>, %init: tensor<3x8x64xf32>) -> tensor<3x8x64xf32> {
  // expected-error @below {{with a batch cannot be split into the windows of a tile}}
  // expected-error @below {{to tile operation}}
  // expected-error @below {{failed to generate tiling loops}}
  %y = nm_sparse.matmul #w indexing_maps = [#xm, #wm, #ym]
    ins(%x, %v, %i : tensor<3x8x64xf32>, tensor<32x64xf32>, tensor<32x2xi8>)
    outs(%init : tensor<3x8x64xf32>) -> tensor<3x8x64xf32>
  return %y : tensor<3x8x64xf32>
}
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %y = transform.structured.match ops{["nm_sparse.matmul"]} in %root : (!transform.any_op) -> !transform.any_op
    // expected-error @below {{failed to tile using partial reduction}}
    %fill, %part, %merge, %loop = transform.structured.tile_reduction_using_for %y by tile_sizes = [0, 0, 0, 4]
      : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op, !transform.any_op)
    transform.yield
  }
}

// -----

#w = #nm_sparse.encoding<free>
#xm = affine_map<(m, n, k) -> (m, k)>
#wm = affine_map<(m, n, k) -> (k, n)>
#ym = affine_map<(m, n, k) -> (m, n)>

// Rows of which nothing says where their values begin.

func.func @free(%x: tensor<8x512xf32>, %v: tensor<?xf32>, %b: tensor<2x2x296xi32>, %init: tensor<8x64xf32>) -> tensor<8x64xf32> {
  // expected-error @below {{has a free weight, and only all of it says where what belongs to a row is: legal is to tile its results}}
  // expected-error @below {{to tile operation}}
  // expected-error @below {{failed to generate tiling loops}}
  %y = nm_sparse.matmul #w storage = #nm_sparse.bitmap<#w> indexing_maps = [#xm, #wm, #ym]
    ins(%x, %v, %b : tensor<8x512xf32>, tensor<?xf32>, tensor<2x2x296xi32>)
    outs(%init : tensor<8x64xf32>) -> tensor<8x64xf32>
  return %y : tensor<8x64xf32>
}
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %y = transform.structured.match ops{["nm_sparse.matmul"]} in %root : (!transform.any_op) -> !transform.any_op
    // expected-error @below {{could not tile reduction}}
    %fill, %part, %merge, %loop = transform.structured.tile_reduction_using_forall %y by tile_sizes = [0, 0, 256]
      : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op, !transform.any_op)
    transform.yield
  }
}
