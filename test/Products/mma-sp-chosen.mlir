// REQUIRES: nm-slow
// RUN: nm-run %s --entry token_major --chip sm_80 --device emulate --check | FileCheck %s
// RUN: nm-run %s --entry feature_major --chip sm_89 --device emulate --check --size 200 | FileCheck %s
// RUN: nm-run %s --entry token_major --chip sm_120a --device emulate --check | FileCheck %s
// RUN: nm-run %s --entry integers --chip sm_86 --device emulate --check | FileCheck %s
// RUN: nm-run %s --entry floats --chip sm_89 --device emulate --check | FileCheck %s
// RUN: nm-run %s --entry floats --chip sm_120a --schedule 'tile = [8, 64, 64], product = mma_sp<warps = [1, 2]>, transfers = {x = copy, values = copy, index = staged}, pipeline = async_groups<stages = 4>, grid = flat' --device emulate --check | FileCheck %s
// CHECK: product = mma_sp<
// CHECK: relative error {{.*}}: PASS

// What the model chooses for chips without products of warpgroups. Metadata of
// sm_120a says that it is ordered, which the emulator checks.

#w = #nm_sparse.encoding<2:4>
func.func @token_major(%x: tensor<200x512xf16>, %w: tensor<512x330xf16, #w>, %init: tensor<200x330xf16>) -> tensor<200x330xf16> {
  %y = linalg.matmul ins(%x, %w : tensor<200x512xf16>, tensor<512x330xf16, #w>) outs(%init : tensor<200x330xf16>) -> tensor<200x330xf16>
  return %y : tensor<200x330xf16>
}

func.func @feature_major(%x: tensor<512x?xbf16>, %w: tensor<512x330xbf16, #w>, %init: tensor<330x?xf32>) -> tensor<330x?xf32> {
  %y = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (k, n)>,
                                      affine_map<(m, n, k) -> (n, m)>]
    ins(%x, %w : tensor<512x?xbf16>, tensor<512x330xbf16, #w>) outs(%init : tensor<330x?xf32>) -> tensor<330x?xf32>
  return %y : tensor<330x?xf32>
}

func.func @integers(%x: tensor<200x512xi8>, %w: tensor<512x330xi8, #w>, %init: tensor<200x330xi32>) -> tensor<200x330xi32> {
  %y = linalg.matmul ins(%x, %w : tensor<200x512xi8>, tensor<512x330xi8, #w>) outs(%init : tensor<200x330xi32>) -> tensor<200x330xi32>
  return %y : tensor<200x330xi32>
}

func.func @floats(%x: tensor<512x200xf8E4M3FN>, %w: tensor<512x330xf8E4M3FN, #w>, %init: tensor<200x330xf32>) -> tensor<200x330xf32> {
  %y = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (k, n)>,
                                      affine_map<(m, n, k) -> (m, n)>]
    ins(%x, %w : tensor<512x200xf8E4M3FN>, tensor<512x330xf8E4M3FN, #w>) outs(%init : tensor<200x330xf32>) -> tensor<200x330xf32>
  return %y : tensor<200x330xf32>
}
