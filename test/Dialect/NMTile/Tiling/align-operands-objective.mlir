// REQUIRES: nm-all-products
// RUN: nm-opt %s --nm-sparse-align-operands="chip=sm_90a gpu=h100 tokens=9" | FileCheck %s --check-prefix=TIME
// RUN: nm-opt %s --nm-sparse-align-operands="chip=sm_90a gpu=h100 tokens=9 objective=energy" | FileCheck %s --check-prefix=ENERGY
// RUN: nm-opt %s --nm-sparse-align-operands="chip=sm_90a gpu=h100 tokens=9 objective=energy" --nm-sparse-select-schedule="chip=sm_90a gpu=h100 tokens=9 objective=energy" | FileCheck %s --check-prefix=SCHEDULE

// Products that read rows at any distance take less time than a copy and tensor
// cores do, but more energy: lanes decode each weight for each token.

#w = #nm_sparse.encoding<4:16, block = [1, 32]>
#xm = affine_map<(m, n, k) -> (k, m)>
#wm = affine_map<(m, n, k) -> (k, n)>
#ym = affine_map<(m, n, k) -> (n, m)>

// TIME-LABEL: func @few_tokens
// TIME-NOT: nm_tile.align_rows
// TIME: nm_sparse.matmul
// ENERGY-LABEL: func @few_tokens
// ENERGY-SAME: %[[X:.*]]: tensor<1280x?xf16>,
// ENERGY: %[[A:.*]] = nm_tile.align_rows {{.*}}ins(%[[X]] :
// ENERGY: nm_sparse.matmul {{.*}} ins(%[[A]],
// SCHEDULE: product = mma<
func.func @few_tokens(%x: tensor<1280x?xf16>, %v: tensor<320x11744xf16>,
    %i: tensor<320x367xi8>, %o: tensor<11737x?xf16>) -> tensor<11737x?xf16> {
  %y = nm_sparse.matmul #w indexing_maps = [#xm, #wm, #ym]
      ins(%x, %v, %i : tensor<1280x?xf16>, tensor<320x11744xf16>, tensor<320x367xi8>)
      outs(%o : tensor<11737x?xf16>) -> tensor<11737x?xf16>
  return %y : tensor<11737x?xf16>
}
