// RUN: nm-opt %s --nm-sparse-select-schedule=chip=sm_90a --split-input-file --verify-diagnostics | FileCheck %s

// 2:4 goes through sparse tensor cores: with pairs of CTAs that copy for each
// other and metadata ahead where there are many tokens, without either where there
// are few.

#x = affine_map<(m, n, k) -> (m, k)>
#w = affine_map<(m, n, k) -> (k, n)>
#y = affine_map<(m, n, k) -> (m, n)>
#e = #nm_sparse.encoding<2:4>

// CHECK: #[[MANY:.*]] = #nm_tile.schedule<tile = [{{[0-9][0-9][0-9]}}, {{.*}} product = wgmma_sp<warps = {{[0-9]+}}, ahead = true>, transfers = {x = bulk, values = bulk, index = bulk}, pipeline = ring<{{.*}} grid = persistent<cluster = 2>>
// CHECK: #[[FEW:.*]] = #nm_tile.schedule<tile = [{{[0-9][0-9]}}, {{.*}} product = wgmma_sp<warps = {{[0-9]+}}>, {{.*}} grid = flat
// CHECK: #[[BYTES:.*]] = #nm_tile.schedule<tile = [{{[0-9][0-9][0-9]}}, {{.*}} product = wgmma_sp<warps = {{[0-9]+}}, ahead = true>
// CHECK-LABEL: func.func @many
// CHECK: config = #[[MANY]] ins
func.func @many(%x: tensor<8192x8192xf16>, %v: tensor<256x256x512xf16>, %b: tensor<256x256x32xi32>, %o: tensor<8192x8192xf16>) -> tensor<8192x8192xf16> {
  %0 = nm_sparse.matmul #e storage = #nm_sparse.bitmap<#e> indexing_maps = [#x, #w, #y]
    ins(%x, %v, %b : tensor<8192x8192xf16>, tensor<256x256x512xf16>, tensor<256x256x32xi32>) outs(%o : tensor<8192x8192xf16>) -> tensor<8192x8192xf16>
  return %0 : tensor<8192x8192xf16>
}

// CHECK-LABEL: func.func @few
// CHECK: config = #[[FEW]] ins
func.func @few(%x: tensor<64x8192xf16>, %v: tensor<256x256x512xf16>, %b: tensor<256x256x32xi32>, %o: tensor<64x8192xf16>) -> tensor<64x8192xf16> {
  %0 = nm_sparse.matmul #e storage = #nm_sparse.bitmap<#e> indexing_maps = [#x, #w, #y]
    ins(%x, %v, %b : tensor<64x8192xf16>, tensor<256x256x512xf16>, tensor<256x256x32xi32>) outs(%o : tensor<64x8192xf16>) -> tensor<64x8192xf16>
  return %0 : tensor<64x8192xf16>
}

// CHECK-LABEL: func.func @bytes
// CHECK: config = #[[BYTES]] ins
func.func @bytes(%x: tensor<8192x8192xi8>, %v: tensor<256x256x512xi8>, %b: tensor<256x256x32xi32>, %o: tensor<8192x8192xi32>) -> tensor<8192x8192xi32> {
  %0 = nm_sparse.matmul #e storage = #nm_sparse.bitmap<#e> indexing_maps = [#x, #w, #y]
    ins(%x, %v, %b : tensor<8192x8192xi8>, tensor<256x256x512xi8>, tensor<256x256x32xi32>) outs(%o : tensor<8192x8192xi32>) -> tensor<8192x8192xi32>
  return %0 : tensor<8192x8192xi32>
}

// -----

// A lone warpgroup waits less often in long steps, in a ring whose requests do not
// wait for each other; and tiles have at most 8 rows beyond the last of 200 tokens.

#x = affine_map<(m, n, k) -> (m, k)>
#w = affine_map<(m, n, k) -> (k, n)>
#y = affine_map<(m, n, k) -> (m, n)>
#e = #nm_sparse.encoding<2:4>

// CHECK: #[[LONG:.*]] = #nm_tile.schedule<tile = [{{8|16}}, {{[0-9]+}}, {{[0-9][0-9][0-9]}}], product = wgmma_sp<warps = 4>, {{.*}} pipeline = ring<stages = {{[3-9]}}, {{.*}} grid = flat
// CHECK: #[[INSIDE:.*]] = #nm_tile.schedule<tile = [{{200|104|40}}, {{.*}} product = wgmma_sp
// CHECK-LABEL: func.func @decode
// CHECK: config = #[[LONG]] ins
func.func @decode(%x: tensor<16x4096xf16>, %v: tensor<128x128x512xf16>, %b: tensor<128x128x32xi32>, %o: tensor<16x4096xf16>) -> tensor<16x4096xf16> {
  %0 = nm_sparse.matmul #e storage = #nm_sparse.bitmap<#e> indexing_maps = [#x, #w, #y]
    ins(%x, %v, %b : tensor<16x4096xf16>, tensor<128x128x512xf16>, tensor<128x128x32xi32>) outs(%o : tensor<16x4096xf16>) -> tensor<16x4096xf16>
  return %0 : tensor<16x4096xf16>
}

// CHECK-LABEL: func.func @inside
// CHECK: config = #[[INSIDE]] ins
func.func @inside(%x: tensor<200x4736xf16>, %v: tensor<437x148x512xf16>, %b: tensor<437x148x32xi32>, %o: tensor<200x13984xf16>) -> tensor<200x13984xf16> {
  %0 = nm_sparse.matmul #e storage = #nm_sparse.bitmap<#e> indexing_maps = [#x, #w, #y]
    ins(%x, %v, %b : tensor<200x4736xf16>, tensor<437x148x512xf16>, tensor<437x148x32xi32>) outs(%o : tensor<200x13984xf16>) -> tensor<200x13984xf16>
  return %0 : tensor<200x13984xf16>
}

// -----

#x = affine_map<(m, n, k) -> (m, k)>
#w = affine_map<(m, n, k) -> (k, n)>
#y = affine_map<(m, n, k) -> (m, n)>
#e = #nm_sparse.encoding<2:4>

func.func @dynamic_outputs(%x: tensor<16x128xf16>, %v: tensor<?x4x512xf16>, %b: tensor<?x4x32xi32>, %o: tensor<16x?xf32>) -> tensor<16x?xf32> {
  // expected-error @below {{has a schedule with cluster = 2, which needs a static number of outputs, but its result is 'tensor<16x?xf32>'}}
  %0 = nm_sparse.matmul #e storage = #nm_sparse.bitmap<#e> indexing_maps = [#x, #w, #y]
    config = #nm_tile.schedule<tile = [16, 64, 32], product = wgmma_sp<warps = 4>, transfers = {x = bulk, values = bulk, index = bulk}, pipeline = ring<stages = 2, producers = 4>, grid = flat<cluster = 2>>
    ins(%x, %v, %b : tensor<16x128xf16>, tensor<?x4x512xf16>, tensor<?x4x32xi32>) outs(%o : tensor<16x?xf32>) -> tensor<16x?xf32>
  return %0 : tensor<16x?xf32>
}

// -----

#x = affine_map<(m, n, k) -> (m, k)>
#w = affine_map<(m, n, k) -> (k, n)>
#y = affine_map<(m, n, k) -> (m, n)>
#e = #nm_sparse.encoding<2:4>

func.func @six_tiles(%x: tensor<32x128xf16>, %v: tensor<12x4x512xf16>, %b: tensor<12x4x32xi32>, %o: tensor<32x384xf32>) -> tensor<32x384xf32> {
  // expected-error @below {{has a schedule with cluster = 4, but 6 tiles of 64 outputs; legal is a grid with cluster = 2}}
  %0 = nm_sparse.matmul #e storage = #nm_sparse.bitmap<#e> indexing_maps = [#x, #w, #y]
    config = #nm_tile.schedule<tile = [32, 64, 32], product = wgmma_sp<warps = 4>, transfers = {x = bulk, values = bulk, index = bulk}, pipeline = ring<stages = 2, producers = 4>, grid = flat<cluster = 4>>
    ins(%x, %v, %b : tensor<32x128xf16>, tensor<12x4x512xf16>, tensor<12x4x32xi32>) outs(%o : tensor<32x384xf32>) -> tensor<32x384xf32>
  return %0 : tensor<32x384xf32>
}
