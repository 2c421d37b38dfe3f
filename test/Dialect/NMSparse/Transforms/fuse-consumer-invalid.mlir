// RUN: nm-test-tensor %s --transform-interpreter --split-input-file -verify-diagnostics

// Tiles of an operand that no tile of the product reads alone.

#w = #nm_sparse.encoding<2:4>
#xm = affine_map<(m, n, k) -> (m, k)>
#wm = affine_map<(m, n, k) -> (k, n)>
#ym = affine_map<(m, n, k) -> (m, n)>

func.func @part_of_a_window(%x: tensor<32x60xf32>, %v: tensor<30x32xf32>, %i: tensor<30x32xi8>,
                            %init: tensor<32x32xf32>) -> tensor<32x32xf32> {
  %empty = tensor.empty() : tensor<32x60xf32>
  %e = linalg.exp ins(%x : tensor<32x60xf32>) outs(%empty : tensor<32x60xf32>) -> tensor<32x60xf32>
  // expected-error@below {{has no tile that reads just this tile of operand #0, 'tensor<32x60xf32>': along dimension 1 legal are whole windows, which begin and end at a multiple of 4}}
  // expected-error@below {{failed to fuse consumer of slice}}
  %y = nm_sparse.matmul #w indexing_maps = [#xm, #wm, #ym]
    ins(%e, %v, %i : tensor<32x60xf32>, tensor<30x32xf32>, tensor<30x32xi8>)
    outs(%init : tensor<32x32xf32>) -> tensor<32x32xf32>
  return %y : tensor<32x32xf32>
}
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %e = transform.structured.match ops{["linalg.exp"]} in %root : (!transform.any_op) -> !transform.any_op
    %t, %loop = transform.structured.tile_using_for %e tile_sizes [0, 6]
      : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    %y = transform.structured.match ops{["nm_sparse.matmul"]} in %root : (!transform.any_op) -> !transform.any_op
    %f, %l = transform.test.fuse_consumer %y into (%loop)
      : (!transform.any_op, !transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.yield
  }
}

// -----

#w = #nm_sparse.encoding<2:4>
#xm = affine_map<(m, n, k) -> (m, k)>
#wm = affine_map<(m, n, k) -> (k, n)>
#ym = affine_map<(m, n, k) -> (m, n)>

func.func @part_of_kept_rows(%x: tensor<8x60xf32>, %v: tensor<30x32xf32>, %i: tensor<30x32xi8>,
                             %init: tensor<8x32xf32>) -> tensor<8x32xf32> {
  %empty = tensor.empty() : tensor<30x32xf32>
  %e = linalg.exp ins(%v : tensor<30x32xf32>) outs(%empty : tensor<30x32xf32>) -> tensor<30x32xf32>
  // expected-error@below {{has no tile that reads just this tile of operand #1, 'tensor<30x32xf32>': along dimension 0 legal are whole windows, which begin and end at a multiple of 2}}
  // expected-error@below {{failed to fuse consumer of slice}}
  %y = nm_sparse.matmul #w indexing_maps = [#xm, #wm, #ym]
    ins(%x, %e, %i : tensor<8x60xf32>, tensor<30x32xf32>, tensor<30x32xi8>)
    outs(%init : tensor<8x32xf32>) -> tensor<8x32xf32>
  return %y : tensor<8x32xf32>
}
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %e = transform.structured.match ops{["linalg.exp"]} in %root : (!transform.any_op) -> !transform.any_op
    %t, %loop = transform.structured.tile_using_for %e tile_sizes [3, 0]
      : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    %y = transform.structured.match ops{["nm_sparse.matmul"]} in %root : (!transform.any_op) -> !transform.any_op
    %f, %l = transform.test.fuse_consumer %y into (%loop)
      : (!transform.any_op, !transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.yield
  }
}

// -----

#e = #nm_sparse.encoding<8:16>
#xm = affine_map<(m, n, k) -> (m, k)>
#wm = affine_map<(m, n, k) -> (k, n)>
#ym = affine_map<(m, n, k) -> (m, n)>

func.func @bitmap(%x: tensor<8x64xf16>, %v: tensor<2x2x512xf16>, %b: tensor<2x2x32xi32>,
                  %init: tensor<8x64xf32>) -> tensor<8x64xf32> {
  %empty = tensor.empty() : tensor<2x2x512xf16>
  %exp = linalg.exp ins(%v : tensor<2x2x512xf16>) outs(%empty : tensor<2x2x512xf16>) -> tensor<2x2x512xf16>
  // expected-error@below {{has no tile that reads just a tile of operand #1, 'tensor<2x2x512xf16>': legal are those of x and init, and of values and index in canonical form with one level}}
  // expected-error@below {{failed to fuse consumer of slice}}
  %y = nm_sparse.matmul #e storage = #nm_sparse.bitmap<#e> indexing_maps = [#xm, #wm, #ym]
    ins(%x, %exp, %b : tensor<8x64xf16>, tensor<2x2x512xf16>, tensor<2x2x32xi32>)
    outs(%init : tensor<8x64xf32>) -> tensor<8x64xf32>
  return %y : tensor<8x64xf32>
}
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %e = transform.structured.match ops{["linalg.exp"]} in %root : (!transform.any_op) -> !transform.any_op
    %t, %loop = transform.structured.tile_using_for %e tile_sizes [1, 0, 0]
      : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    %y = transform.structured.match ops{["nm_sparse.matmul"]} in %root : (!transform.any_op) -> !transform.any_op
    %f, %l = transform.test.fuse_consumer %y into (%loop)
      : (!transform.any_op, !transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.yield
  }
}

// -----

#w = #nm_sparse.encoding<2:4>
#xm = affine_map<(m, n, k) -> (m, k)>
#wm = affine_map<(m, n, k) -> (k, n)>
#ym = affine_map<(m, n, k) -> (m, n)>

func.func @parallel_contraction(%x: tensor<32x64xf32>, %v: tensor<32x32xf32>, %i: tensor<32x32xi8>,
                                %init: tensor<32x32xf32>) -> tensor<32x32xf32> {
  %empty = tensor.empty() : tensor<32x64xf32>
  %e = linalg.exp ins(%x : tensor<32x64xf32>) outs(%empty : tensor<32x64xf32>) -> tensor<32x64xf32>
  // expected-error@below {{has no tile that reads just this tile of operand #0, 'tensor<32x64xf32>': dimension 1 is the contraction, and a parallel loop would not sum up its parts; tile it by a sequential loop}}
  // expected-error@below {{failed to fuse consumer of slice}}
  %y = nm_sparse.matmul #w indexing_maps = [#xm, #wm, #ym]
    ins(%e, %v, %i : tensor<32x64xf32>, tensor<32x32xf32>, tensor<32x32xi8>)
    outs(%init : tensor<32x32xf32>) -> tensor<32x32xf32>
  return %y : tensor<32x32xf32>
}
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %e = transform.structured.match ops{["linalg.exp"]} in %root : (!transform.any_op) -> !transform.any_op
    %t, %loop = transform.structured.tile_using_forall %e tile_sizes [0, 16]
      : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    %y = transform.structured.match ops{["nm_sparse.matmul"]} in %root : (!transform.any_op) -> !transform.any_op
    %f, %l = transform.test.fuse_consumer %y into (%loop)
      : (!transform.any_op, !transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.yield
  }
}
