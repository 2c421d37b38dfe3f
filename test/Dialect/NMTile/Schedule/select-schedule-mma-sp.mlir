// RUN: nm-opt %s --nm-sparse-select-schedule=chip=sm_80 | FileCheck %s --check-prefixes=CHECK,OLD
// RUN: nm-opt %s --nm-sparse-select-schedule=chip=sm_89 | FileCheck %s --check-prefixes=CHECK,FLOATS
// RUN: nm-opt %s --nm-sparse-select-schedule=chip=sm_120a | FileCheck %s --check-prefix=NEW
// RUN: nm-opt %s --nm-sparse-select-schedule=chip=sm_90a | FileCheck %s --check-prefix=WARPGROUPS

// 2:4 goes through the sparse tensor cores of warps where a chip has none of
// warpgroups.
// NEW: #[[MANY:.*]] = #nm_tile.schedule<tile = [{{.*}} product = mma_sp<warps = [{{.*}} pipeline = async_groups<
// NEW-LABEL: func.func @many
// NEW: config = #[[MANY]] ins
// WARPGROUPS-NOT: mma_sp<warps = [

#x = affine_map<(m, n, k) -> (m, k)>
#xf = affine_map<(m, n, k) -> (k, m)>
#w = affine_map<(m, n, k) -> (k, n)>
#y = affine_map<(m, n, k) -> (m, n)>
#e = #nm_sparse.encoding<2:4>

// CHECK-DAG: #[[MANY:.*]] = #nm_tile.schedule<tile = [{{[0-9][0-9][0-9]}}, {{.*}} product = mma_sp<{{.*}} transfers = {x = copy, values = copy, index = staged}, pipeline = async_groups<stages = {{[0-9]+}}>, grid = flat>
// CHECK-DAG: #[[ROWS:.*]] = #nm_tile.schedule<tile = [8, {{.*}} product = {{mma_expand|mma_sp|dot}}<
// CHECK-DAG: #[[FEATURES:.*]] = #nm_tile.schedule<tile = [{{8|16}}, {{.*}} product = mma_sp<warps = [1, {{.*}} grid = flat
// CHECK-DAG: #[[BYTES:.*]] = #nm_tile.schedule<tile = [{{[0-9][0-9]+}}, {{.*}} product = mma_sp<
// CHECK-DAG: #[[DOT:.*]] = #nm_tile.schedule<tile = [{{[0-9]+}}, {{.*}} product = dot<

// CHECK-LABEL: func.func @many
// CHECK: config = #[[MANY]] ins
func.func @many(%x: tensor<4096x8192xf16>, %v: tensor<256x256x512xf16>, %b: tensor<256x256x32xi32>, %o: tensor<4096x8192xf16>) -> tensor<4096x8192xf16> {
  %0 = nm_sparse.matmul #e storage = #nm_sparse.bitmap<#e> indexing_maps = [#x, #w, #y]
    ins(%x, %v, %b : tensor<4096x8192xf16>, tensor<256x256x512xf16>, tensor<256x256x32xi32>) outs(%o : tensor<4096x8192xf16>) -> tensor<4096x8192xf16>
  return %0 : tensor<4096x8192xf16>
}

// Few tokens are in tiles of as few; no chip without warpgroups has been measured.
// CHECK-LABEL: func.func @few
// CHECK: config = #[[ROWS]] ins
func.func @few(%x: tensor<8x8192xf16>, %v: tensor<256x256x512xf16>, %b: tensor<256x256x32xi32>, %o: tensor<8x8192xf16>) -> tensor<8x8192xf16> {
  %0 = nm_sparse.matmul #e storage = #nm_sparse.bitmap<#e> indexing_maps = [#x, #w, #y]
    ins(%x, %v, %b : tensor<8x8192xf16>, tensor<256x256x512xf16>, tensor<256x256x32xi32>) outs(%o : tensor<8x8192xf16>) -> tensor<8x8192xf16>
  return %0 : tensor<8x8192xf16>
}

// CHECK-LABEL: func.func @few_features
// CHECK: config = #[[FEATURES]] ins
func.func @few_features(%x: tensor<8192x16xbf16>, %v: tensor<256x256x512xbf16>, %b: tensor<256x256x32xi32>, %o: tensor<16x8192xbf16>) -> tensor<16x8192xbf16> {
  %0 = nm_sparse.matmul #e storage = #nm_sparse.bitmap<#e> indexing_maps = [#xf, #w, #y]
    ins(%x, %v, %b : tensor<8192x16xbf16>, tensor<256x256x512xbf16>, tensor<256x256x32xi32>) outs(%o : tensor<16x8192xbf16>) -> tensor<16x8192xbf16>
  return %0 : tensor<16x8192xbf16>
}

// CHECK-LABEL: func.func @bytes
// CHECK: config = #[[BYTES]] ins
func.func @bytes(%x: tensor<512x8192xi8>, %v: tensor<256x256x512xi8>, %b: tensor<256x256x32xi32>, %o: tensor<512x8192xi32>) -> tensor<512x8192xi32> {
  %0 = nm_sparse.matmul #e storage = #nm_sparse.bitmap<#e> indexing_maps = [#x, #w, #y]
    ins(%x, %v, %b : tensor<512x8192xi8>, tensor<256x256x512xi8>, tensor<256x256x32xi32>) outs(%o : tensor<512x8192xi32>) -> tensor<512x8192xi32>
  return %0 : tensor<512x8192xi32>
}

// What no matrix load transposes, and 8-bit floats on chips that have no products of
// them.
// CHECK-LABEL: func.func @feature_major_bytes
// CHECK: config = #[[DOT]] ins
func.func @feature_major_bytes(%x: tensor<8192x512xi8>, %v: tensor<256x256x512xi8>, %b: tensor<256x256x32xi32>, %o: tensor<512x8192xi32>) -> tensor<512x8192xi32> {
  %0 = nm_sparse.matmul #e storage = #nm_sparse.bitmap<#e> indexing_maps = [#xf, #w, #y]
    ins(%x, %v, %b : tensor<8192x512xi8>, tensor<256x256x512xi8>, tensor<256x256x32xi32>) outs(%o : tensor<512x8192xi32>) -> tensor<512x8192xi32>
  return %0 : tensor<512x8192xi32>
}

// CHECK-LABEL: func.func @narrow_floats
// OLD: config = #[[DOT]] ins
// FLOATS: config = #[[BYTES]] ins
func.func @narrow_floats(%x: tensor<512x8192xf8E5M2>, %v: tensor<256x256x512xf8E5M2>, %b: tensor<256x256x32xi32>, %o: tensor<512x8192xf32>) -> tensor<512x8192xf32> {
  %0 = nm_sparse.matmul #e storage = #nm_sparse.bitmap<#e> indexing_maps = [#x, #w, #y]
    ins(%x, %v, %b : tensor<512x8192xf8E5M2>, tensor<256x256x512xf8E5M2>, tensor<256x256x32xi32>) outs(%o : tensor<512x8192xf32>) -> tensor<512x8192xf32>
  return %0 : tensor<512x8192xf32>
}
