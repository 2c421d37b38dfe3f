// RUN: nm-opt %s --convert-linalg-to-nm-sparse --nm-sparse-materialize-encodings --nm-sparse-select-storage=density=25 --nm-sparse-select-schedule=chip=sm_90a | FileCheck %s

// The kinds of schedules that were the fastest of ragged panels where they were
// measured (docs/decisions/058-ragged-panels.md).

// CHECK-DAG: #[[FEW:.*]] = #nm_tile.schedule<tile = [{{[0-9][0-9]}}, {{.*}} product = wgmma<{{.*}} producers = {{[0-9]+}}>, grid = flat>
// CHECK-DAG: #[[WAVE:.*]] = #nm_tile.schedule<tile = [{{1[0-9][0-9]}}, {{.*}} product = wgmma<{{.*}} producers = {{[0-9]+}}>, grid = flat>
// CHECK-DAG: #[[NARROW:.*]] = #nm_tile.schedule<{{.*}} 32, {{[0-9]+}}], product = mma<{{.*}} producers = {{[0-9]+}}>, grid = flat>
// CHECK-DAG: #[[NARROW_WAVES:.*]] = #nm_tile.schedule<{{.*}} 32, {{[0-9]+}}], product = mma<{{.*}} producers = {{[0-9]+}}>, grid = persistent>

#km = affine_map<(m, n, k) -> (k, m)>
#kn = affine_map<(m, n, k) -> (k, n)>
#nm = affine_map<(m, n, k) -> (n, m)>

// Few tokens: producers look rows up a step ahead. Warps that also multiply would wait
// for those of the first steps.
#wide = #nm_sparse.encoding<free, block = [1, 128]>
// CHECK-LABEL: func.func @few(
// CHECK: config = #[[FEW]] ins
func.func @few(%x: tensor<1024x64xf16>, %w: tensor<1024x4096xf16, #wide>, %init: tensor<4096x64xf16>) -> tensor<4096x64xf16> {
  %y = linalg.matmul indexing_maps = [#km, #kn, #nm]
    ins(%x, %w : tensor<1024x64xf16>, tensor<1024x4096xf16, #wide>) outs(%init : tensor<4096x64xf16>) -> tensor<4096x64xf16>
  return %y : tensor<4096x64xf16>
}

// Tiles of fewer than 200 tokens for 128 SMs, not of 256 for 96.
// CHECK-LABEL: func.func @wave(
// CHECK: config = #[[WAVE]] ins
func.func @wave(%x: tensor<2048x640xf16>, %w: tensor<2048x4096xf16, #wide>, %init: tensor<4096x640xf16>) -> tensor<4096x640xf16> {
  %y = linalg.matmul indexing_maps = [#km, #kn, #nm]
    ins(%x, %w : tensor<2048x640xf16>, tensor<2048x4096xf16, #wide>) outs(%init : tensor<4096x640xf16>) -> tensor<4096x640xf16>
  return %y : tensor<4096x640xf16>
}

// Narrow panels, of one tile and of several for each SM.
#narrow = #nm_sparse.encoding<free, block = [1, 32]>
// CHECK-LABEL: func.func @narrow(
// CHECK: config = #[[NARROW]] ins
func.func @narrow(%x: tensor<1024x128xf16>, %w: tensor<1024x4096xf16, #narrow>, %init: tensor<4096x128xf16>) -> tensor<4096x128xf16> {
  %y = linalg.matmul indexing_maps = [#km, #kn, #nm]
    ins(%x, %w : tensor<1024x128xf16>, tensor<1024x4096xf16, #narrow>) outs(%init : tensor<4096x128xf16>) -> tensor<4096x128xf16>
  return %y : tensor<4096x128xf16>
}

// CHECK-LABEL: func.func @narrow_waves(
// CHECK: config = #[[NARROW_WAVES]] ins
func.func @narrow_waves(%x: tensor<2048x2048xf16>, %w: tensor<2048x2048xf16, #narrow>, %init: tensor<2048x2048xf16>) -> tensor<2048x2048xf16> {
  %y = linalg.matmul indexing_maps = [#km, #kn, #nm]
    ins(%x, %w : tensor<2048x2048xf16>, tensor<2048x2048xf16, #narrow>) outs(%init : tensor<2048x2048xf16>) -> tensor<2048x2048xf16>
  return %y : tensor<2048x2048xf16>
}
