// RUN: nm-opt %s --nm-sparse-select-schedule=chip=sm_90a --split-input-file | FileCheck %s
// RUN: nm-opt %s --nm-sparse-select-schedule=chip=sm_80 --split-input-file | FileCheck %s --check-prefix=OLD
// RUN: not nm-opt %S/Inputs/part-of-a-tile.mlir --nm-sparse-select-schedule 2>&1 | FileCheck %s --check-prefix=PART

// PART: has a schedule with tile = [8, 64, 8], but a weight in tiles of 32 outputs and 16 kept rows; legal are multiples of them

// One token: from memory to registers. Many: through tensor cores, where the
// chip's warpgroups have first operands in registers.

#x = affine_map<(m, n, k) -> (m, k)>
#xf = affine_map<(m, n, k) -> (k, m)>
#w = affine_map<(m, n, k) -> (k, n)>
#y = affine_map<(m, n, k) -> (m, n)>
#e = #nm_sparse.encoding<8:16>

// CHECK: #[[ONE:.*]] = #nm_tile.schedule<tile = [{{[1-8]}}, {{.*}}product = dot<
// CHECK: #[[MANY:.*]] = #nm_tile.schedule<tile = [{{[0-9][0-9][0-9]}}, {{.*}} product = wgmma_expand<warps = {{[0-9]+}}, ahead = true>, transfers = {x = bulk, values = bulk, index = bulk}, pipeline = ring<{{.*}} grid = persistent>
// CHECK-DAG: #[[FEW:.*]] = #nm_tile.schedule<tile = [{{8|16|24|32}}, {{.*}} product = wgmma_expand<
// CHECK-DAG: #[[ROWS:.*]] = #nm_tile.schedule<tile = [{{8|16|32}}, {{.*}} product = {{mma_expand|wgmma_expand}}<
// OLD: #[[ONE:.*]] = #nm_tile.schedule<tile = [1, {{.*}} product = dot<
// OLD: #[[OTHERS:.*]] = #nm_tile.schedule<tile = [8, {{.*}} product = dot<
// OLD: #[[ROWS:.*]] = #nm_tile.schedule<tile = [{{8|16|32}}, {{.*}} product = mma_expand<
// OLD-NOT: #nm_tile.schedule<
// OLD: config = #[[ONE]] ins
// OLD-COUNT-2: config = #[[OTHERS]] ins

// CHECK-LABEL: func.func @decode
// CHECK: config = #[[ONE]] ins
func.func @decode(%x: tensor<1x4096xf16>, %v: tensor<128x128x512xf16>, %b: tensor<128x128x32xi32>, %o: tensor<1x4096xf16>) -> tensor<1x4096xf16> {
  %0 = nm_sparse.matmul #e storage = #nm_sparse.bitmap<#e> indexing_maps = [#x, #w, #y]
    ins(%x, %v, %b : tensor<1x4096xf16>, tensor<128x128x512xf16>, tensor<128x128x32xi32>) outs(%o : tensor<1x4096xf16>) -> tensor<1x4096xf16>
  return %0 : tensor<1x4096xf16>
}

// CHECK-LABEL: func.func @prefill
// CHECK: config = #[[MANY]] ins
func.func @prefill(%x: tensor<4096x4096xf16>, %v: tensor<128x128x512xf16>, %b: tensor<128x128x32xi32>, %o: tensor<4096x4096xf16>) -> tensor<4096x4096xf16> {
  %0 = nm_sparse.matmul #e storage = #nm_sparse.bitmap<#e> indexing_maps = [#x, #w, #y]
    ins(%x, %v, %b : tensor<4096x4096xf16>, tensor<128x128x512xf16>, tensor<128x128x32xi32>) outs(%o : tensor<4096x4096xf16>) -> tensor<4096x4096xf16>
  return %0 : tensor<4096x4096xf16>
}

// A few tokens of feature-major activations, in tiles of as many.
// CHECK-LABEL: func.func @batch
// CHECK: config = #[[FEW]] ins
func.func @batch(%x: tensor<8192x16xf16>, %v: tensor<896x256x512xf16>, %b: tensor<896x256x32xi32>, %o: tensor<16x28672xf16>) -> tensor<16x28672xf16> {
  %0 = nm_sparse.matmul #e storage = #nm_sparse.bitmap<#e> indexing_maps = [#xf, #w, #y]
    ins(%x, %v, %b : tensor<8192x16xf16>, tensor<896x256x512xf16>, tensor<896x256x32xi32>) outs(%o : tensor<16x28672xf16>) -> tensor<16x28672xf16>
  return %0 : tensor<16x28672xf16>
}

// Rows of activations that lanes read for the windows that they expand.
// CHECK-LABEL: func.func @rows
// CHECK: config = #[[ROWS]] ins
// OLD-LABEL: func.func @rows
// OLD: config = #[[ROWS]] ins
func.func @rows(%x: tensor<16x28672xf16>, %v: tensor<256x896x512xf16>, %b: tensor<256x896x32xi32>, %o: tensor<16x8192xf16>) -> tensor<16x8192xf16> {
  %0 = nm_sparse.matmul #e storage = #nm_sparse.bitmap<#e> indexing_maps = [#x, #w, #y]
    ins(%x, %v, %b : tensor<16x28672xf16>, tensor<256x896x512xf16>, tensor<256x896x32xi32>) outs(%o : tensor<16x8192xf16>) -> tensor<16x8192xf16>
  return %0 : tensor<16x8192xf16>
}
