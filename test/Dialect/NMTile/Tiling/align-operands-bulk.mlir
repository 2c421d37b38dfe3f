// RUN: nm-opt %s --nm-sparse-align-operands="chip=sm_90a tokens=5" --nm-sparse-select-schedule="chip=sm_90a tokens=5" | FileCheck %s --check-prefix=FEW
// RUN: nm-opt %s --nm-sparse-align-operands="chip=sm_90a tokens=515" --nm-sparse-select-schedule="chip=sm_90a tokens=515" | FileCheck %s --check-prefix=MANY
// RUN: nm-opt %s --nm-sparse-select-schedule="chip=sm_90a tokens=515" | FileCheck %s --check-prefix=ALONE

// The tensor memory accelerator reads no rows that may begin anywhere: for a few
// tokens a copy of them takes longer than a product that reads them as they come.
// Where there is no copy, no schedule may have bulk copies.

#e = #nm_sparse.encoding<4:16>
#xf = affine_map<(m, n, k) -> (k, m)>
#wm = affine_map<(m, n, k) -> (k, n)>
#y = affine_map<(m, n, k) -> (m, n)>

// FEW: #schedule = {{.*}}product = dot<
// FEW-LABEL: func @callers
// FEW-NOT: nm_tile.align_rows
// FEW: nm_sparse.matmul
// MANY: #schedule = {{.*}}x = bulk
// MANY-LABEL: func @callers
// MANY: %[[A:.*]] = nm_tile.align_rows alignment = {{16|32}} always
// MANY: nm_sparse.matmul {{.*}} ins(%[[A]],
// ALONE-NOT: bulk
// ALONE-LABEL: func @callers
func.func @callers(%x: tensor<1024x?xbf16>, %v: tensor<256x32x256xbf16>, %b: tensor<256x32x32xi32>, %init: tensor<?x8192xf32>) -> tensor<?x8192xf32> {
  %0 = nm_sparse.matmul #e storage = #nm_sparse.bitmap<#e> indexing_maps = [#xf, #wm, #y]
    ins(%x, %v, %b : tensor<1024x?xbf16>, tensor<256x32x256xbf16>, tensor<256x32x32xi32>) outs(%init : tensor<?x8192xf32>) -> tensor<?x8192xf32>
  return %0 : tensor<?x8192xf32>
}
