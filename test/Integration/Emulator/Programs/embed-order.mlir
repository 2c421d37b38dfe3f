// RUN: nm-run %s --device emulate --embed never --output %t.never
// RUN: nm-run %s --device emulate --embed always --output %t.always
// RUN: %python -c "import sys, numpy as np; a, b = (np.load(f + '.0.npy') for f in sys.argv[1:]); print('close' if np.allclose(a, b, atol=1e-5) and np.ptp(a) > 1 else 'apart')" %t.never %t.always | FileCheck %s
// CHECK: close

// Components of a weight of two levels come in any order, and the inner index is
// dropped where it is stored by its elements.

#packed = #nm_sparse.packed<#nm_sparse.encoding<[4:8, block = [1, 64]], [2:4]>, [16, 64], f16>
#x = affine_map<(m, n, k) -> (m, k)>
#w = affine_map<(m, n, k) -> (k, n)>
#y = affine_map<(m, n, k) -> (m, n)>

func.func @levels(%x: tensor<8x16xf16>,
    %j: tensor<4x64xi8> {nm_sparse.component = #nm_sparse.component<"inner_index", weight = 0, of = #packed>},
    %i: tensor<8x1xi8> {nm_sparse.component = #nm_sparse.component<"index", weight = 0, of = #packed>},
    %v: tensor<4x64xf16> {nm_sparse.component = #nm_sparse.component<"values", weight = 0, of = #packed>},
    %init: tensor<8x64xf32>) -> tensor<8x64xf32> {
  %y = nm_sparse.matmul #nm_sparse.encoding<[4:8, block = [1, 64]], [2:4]> indexing_maps = [#x, #w, #y]
    ins(%x, %v, %i, %j : tensor<8x16xf16>, tensor<4x64xf16>, tensor<8x1xi8>, tensor<4x64xi8>) outs(%init : tensor<8x64xf32>) -> tensor<8x64xf32>
  return %y : tensor<8x64xf32>
}
