// RUN: nm-opt %s --nm-sparse-tile | FileCheck %s --check-prefix=TILE
// RUN: nm-opt %s --nm-sparse-tile --nm-sparse-promote --canonicalize | FileCheck %s --check-prefix=PROMOTE

// A CTA takes a block of 32 outputs, and each K step the tiles that its two warps
// read at once; the last one may have fewer. The shares of the warps start from
// zero: init is added to their sum.

// TILE-DAG: #[[BLOCK:.*]] = affine_map<()[s0] -> (s0 floordiv 32)>
// TILE-DAG: #[[TILES:.*]] = affine_map<()[s0] -> (s0 floordiv 2)>
// TILE-LABEL: func.func @linear
// TILE: scf.forall (%{{.*}}, %[[N:.*]]) = (0, 0) to (3, 90) step (2, 32)
// TILE: %[[B:.*]] = affine.apply #[[BLOCK]]()[%[[N]]]
// TILE: tensor.extract_slice %{{.*}}[%[[B]], 0, 0] [%{{.*}}, 5, 512] [1, 1, 1] : tensor<3x5x512xf16>
// TILE: tensor.extract_slice %{{.*}}[%[[B]], 0, 0] [%{{.*}}, 5, 32] [1, 1, 1] : tensor<3x5x32xi32>
// TILE: nm_tile.k_loop %[[K:.*]] = %c0{{.*}} to %c10{{.*}} step %c4
// TILE: %[[T:.*]] = affine.apply #[[TILES]]()[%[[K]]]
// TILE: tensor.extract_slice %{{.*}}[0, %[[T]], 0]
// TILE: nm_sparse.matmul #{{.*}} storage = #nm_sparse.bitmap<

// PROMOTE-LABEL: func.func @linear
// PROMOTE: %[[ZERO:.*]] = arith.constant dense<0.000000e+00> : vector<2x32xf32>
// PROMOTE: %[[INIT:.*]] = vector.transfer_read
// PROMOTE: %[[SHARES:.*]] = nm_tile.k_loop {{.*}} iter_args(%[[ACC:.*]] = %[[ZERO]])
// PROMOTE: nm_tile.matmul #{{.*}} storage = #nm_sparse.bitmap<{{.*}}> schedule = {{.*}} acc(%[[ACC]] :
// PROMOTE: %[[SUM:.*]] = nm_tile.sum_warps %[[SHARES]] : vector<2x32xf32>
// PROMOTE: %[[ALL:.*]] = arith.addf %[[INIT]], %[[SUM]]
// PROMOTE: vector.transfer_write %[[ALL]]

func.func @linear(%x: tensor<3x150xf16>, %v: tensor<3x5x512xf16>, %b: tensor<3x5x32xi32>, %init: tensor<3x90xf32>) -> tensor<3x90xf32> {
  %0 = nm_sparse.matmul #nm_sparse.encoding<8:16> storage = #nm_sparse.bitmap<#nm_sparse.encoding<8:16>>
    indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
    config = #nm_tile.schedule<tile = [2, 32, 32], product = dot<warps = 2>, transfers = {x = direct, values = direct, index = direct}, pipeline = sequential>
    ins(%x, %v, %b : tensor<3x150xf16>, tensor<3x5x512xf16>, tensor<3x5x32xi32>) outs(%init : tensor<3x90xf32>) -> tensor<3x90xf32>
  return %0 : tensor<3x90xf32>
}

// Which values a K step has, only the bits of all say: everything stays, and the step
// has its number.
// TILE-LABEL: func.func @free
// TILE: tensor.extract_slice %{{.*}}[0] [%{{.*}}] [1] : tensor<?xf16> to tensor<?xf16>
// TILE: tensor.extract_slice %{{.*}} [%{{.*}}, 5, 296] [1, 1, 1] : tensor<3x5x296xi32>
// TILE: nm_tile.k_loop %[[R:.*]] = %c0{{.*}} to %c1280{{.*}} step %c512
// TILE: nm_sparse.matmul #{{.*}} storage = #nm_sparse.bitmap<{{.*}} at(first_row = %[[R]])
// PROMOTE-LABEL: func.func @free
// PROMOTE: nm_tile.k_loop %[[R:.*]] = %c0
// PROMOTE: nm_tile.matmul #{{.*}} storage = #nm_sparse.bitmap<{{.*}} tensor<?xf16>, tensor<?x5x296xi32>) at(first_row = %[[R]])
func.func @free(%x: tensor<3x1150xf16>, %v: tensor<?xf16>, %b: tensor<3x5x296xi32>, %init: tensor<3x90xf32>) -> tensor<3x90xf32> {
  %0 = nm_sparse.matmul #nm_sparse.encoding<free> storage = #nm_sparse.bitmap<#nm_sparse.encoding<free>>
    indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
    config = #nm_tile.schedule<tile = [2, 32, 512], product = dot<warps = 2>, transfers = {x = direct, values = direct, index = direct}, pipeline = sequential>
    ins(%x, %v, %b : tensor<3x1150xf16>, tensor<?xf16>, tensor<3x5x296xi32>) outs(%init : tensor<3x90xf32>) -> tensor<3x90xf32>
  return %0 : tensor<3x90xf32>
}
