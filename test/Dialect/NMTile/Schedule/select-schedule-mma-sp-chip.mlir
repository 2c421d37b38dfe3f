// RUN: not nm-opt %s --nm-sparse-select-schedule=chip=sm_86 2>&1 | FileCheck %s
// RUN: nm-opt %s --nm-sparse-select-schedule=chip=sm_89 | FileCheck %s --check-prefix=NEW

// Chips before sm_89 have no products of 8-bit floats.

// CHECK: has a schedule with product = mma_sp, which sm_86 has no products of e4m3 for; sm_89 and newer have them
// NEW-LABEL: func.func @narrow_floats
// NEW: nm_sparse.matmul

#x = affine_map<(m, n, k) -> (m, k)>
#w = affine_map<(m, n, k) -> (k, n)>
#y = affine_map<(m, n, k) -> (m, n)>
#e = #nm_sparse.encoding<2:4>

func.func @narrow_floats(%x: tensor<16x128xf8E4M3FN>, %v: tensor<2x4x512xf8E4M3FN>, %b: tensor<2x4x32xi32>, %init: tensor<16x64xf32>) -> tensor<16x64xf32> {
  %0 = nm_sparse.matmul #e storage = #nm_sparse.bitmap<#e> indexing_maps = [#x, #w, #y]
    config = #nm_tile.schedule<tile = [16, 64, 32], product = mma_sp<warps = [1, 2]>, transfers = {x = copy, values = copy, index = staged}, pipeline = async_groups<stages = 2>>
    ins(%x, %v, %b : tensor<16x128xf8E4M3FN>, tensor<2x4x512xf8E4M3FN>, tensor<2x4x32xi32>) outs(%init : tensor<16x64xf32>) -> tensor<16x64xf32>
  return %0 : tensor<16x64xf32>
}
