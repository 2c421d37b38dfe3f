// RUN: nm-test-opt %s | FileCheck %s --check-prefix=TEXT
// RUN: nm-test-opt %s --nm-sparse-to-nvvm=chip=sm_90a | FileCheck %s
// RUN: not nm-opt %s 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// RUN: nm-test-run %s gathered 37 | FileCheck %s --check-prefix=PASSED
// RUN: nm-test-run %s selected 64 | FileCheck %s --check-prefix=PASSED
// RUN: nm-test-run %s halves 21 | FileCheck %s --check-prefix=PASSED
// RUN: nm-test-run %s ring 100 | FileCheck %s --check-prefix=PASSED
// RUN: nm-test-run %s padded 35 | FileCheck %s --check-prefix=PASSED

// A transfer of another dialect, which the compiler knows by its interface
// alone: values of all K steps come before the K loop, whose copies bring only
// activations. Ragged windows, panels and tiles.

// TEXT: values = #nm_test_transfers.whole,
// CHECK: llvm.func @gathered_kernel
// PASSED: relative error {{.*}}: PASS
// UNKNOWN: #"nm_test_transfers"<"whole">

#w = #nm_sparse.encoding<4:8, block = [1, 32]>
#s = #nm_tile.schedule<tile = [32, 32, 8], product = simt<warps = [2, 2]>,
  transfers = {x = gather, values = #nm_test_transfers.whole, index = resident},
  pipeline = async_groups<stages = 3>>

func.func @gathered(%x: tensor<?x83xf32>, %w: tensor<83x75xf32, #w>, %init: tensor<?x75xf32>) -> tensor<?x75xf32> {
  %y = linalg.matmul {nm_sparse.config = #s}
    ins(%x, %w : tensor<?x83xf32>, tensor<83x75xf32, #w>)
    outs(%init : tensor<?x75xf32>) -> tensor<?x75xf32>
  return %y : tensor<?x75xf32>
}

#selected = #nm_tile.schedule<tile = [32, 32, 16], product = simt<warps = [2, 2]>,
  transfers = {x = copy, values = #nm_test_transfers.whole, index = staged},
  pipeline = async_groups<stages = 2>>

func.func @selected(%x: tensor<96x?xf32>, %w: tensor<96x64xf32, #w>, %init: tensor<?x64xf32>) -> tensor<?x64xf32> {
  %y = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (k, n)>,
                                      affine_map<(m, n, k) -> (m, n)>]
    {nm_sparse.config = #selected}
    ins(%x, %w : tensor<96x?xf32>, tensor<96x64xf32, #w>)
    outs(%init : tensor<?x64xf32>) -> tensor<?x64xf32>
  return %y : tensor<?x64xf32>
}

#halves = #nm_tile.schedule<tile = [32, 64, 16], product = mma<warps = [2, 2]>,
  transfers = {x = gather, values = #nm_test_transfers.whole, index = rows},
  pipeline = async_groups<stages = 2>>
#v = #nm_sparse.encoding<8:16, block = [1, 64]>

func.func @halves(%x: tensor<?x128xf16>, %w: tensor<128x128xf16, #v>, %init: tensor<?x128xf16>) -> tensor<?x128xf16> {
  %y = linalg.matmul {nm_sparse.config = #halves}
    ins(%x, %w : tensor<?x128xf16>, tensor<128x128xf16, #v>)
    outs(%init : tensor<?x128xf16>) -> tensor<?x128xf16>
  return %y : tensor<?x128xf16>
}

#ring = #nm_tile.schedule<tile = [64, 64, 32], product = mma<warps = [2, 2]>,
  transfers = {x = gather, values = #nm_test_transfers.whole, index = resident},
  pipeline = ring<stages = 2, producers = 2>>

func.func @ring(%x: tensor<192x?xbf16>, %w: tensor<192x192xbf16, #v>, %init: tensor<?x192xbf16>) -> tensor<?x192xbf16> {
  %y = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (k, n)>,
                                      affine_map<(m, n, k) -> (m, n)>]
    {nm_sparse.config = #ring}
    ins(%x, %w : tensor<192x?xbf16>, tensor<192x192xbf16, #v>)
    outs(%init : tensor<?x192xbf16>) -> tensor<?x192xbf16>
  return %y : tensor<?x192xbf16>
}

// K steps of 3 rows, of which fragments read 16: a step is copied by itself.

#odd = #nm_sparse.encoding<3:8, block = [1, 32]>
#padded = #nm_tile.schedule<tile = [32, 32, 3], product = mma<warps = [2, 2]>,
  transfers = {x = gather, values = #nm_test_transfers.whole, index = staged},
  pipeline = async_groups<stages = 2>>

func.func @padded(%x: tensor<?x180xbf16>, %w: tensor<180x149xbf16, #odd>, %init: tensor<?x149xbf16>) -> tensor<?x149xbf16> {
  %y = linalg.matmul {nm_sparse.config = #padded}
    ins(%x, %w : tensor<?x180xbf16>, tensor<180x149xbf16, #odd>)
    outs(%init : tensor<?x149xbf16>) -> tensor<?x149xbf16>
  return %y : tensor<?x149xbf16>
}
