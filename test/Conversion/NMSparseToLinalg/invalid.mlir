// RUN: nm-opt %s --convert-nm-sparse-to-linalg --verify-diagnostics

#w = #nm_sparse.encoding<2:4, block = [1, 4]>
#xm = affine_map<(m, n, k) -> (m, k)>
#wm = affine_map<(m, n, k) -> (k, n)>
#ym = affine_map<(m, n, k) -> (m, n)>

// A part of a contraction belongs to a kernel.

func.func @part(%x: tensor<3x8xf32>, %v: tensor<2x8xf32>, %i: tensor<4x2xi8>,
                %init: tensor<3x8xf32>, %row: index) -> tensor<3x8xf32> {
  // expected-error @below {{failed to legalize operation 'nm_sparse.matmul' that was explicitly marked illegal}}
  %y = nm_sparse.matmul #w indexing_maps = [#xm, #wm, #ym]
    ins(%x, %v, %i : tensor<3x8xf32>, tensor<2x8xf32>, tensor<4x2xi8>)
    outs(%init : tensor<3x8xf32>) at(first_row = %row) -> tensor<3x8xf32>
  return %y : tensor<3x8xf32>
}
