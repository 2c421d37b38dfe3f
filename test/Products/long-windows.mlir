// Windows of more rows than shared memory holds: a kernel gathers parts of those
// that are kept, which a table names. Ragged contractions and outputs.
//
// REQUIRES: nm-slow
// RUN: nm-run %s --entry cuda_cores --device emulate --check --size 51 | FileCheck %s --check-prefixes=SIMT,PASSED
// RUN: nm-run %s --entry cuda_cores --device emulate --check --size 19 | FileCheck %s --check-prefixes=FEW,PASSED
// RUN: nm-run %s --entry few_kept --device emulate --check --size 67 | FileCheck %s --check-prefixes=SIMT,PASSED
// RUN: nm-run %s --entry few_kept --device emulate --check --size 35 | FileCheck %s --check-prefixes=FEW,PASSED
// RUN: nm-run %s --entry fragments --device emulate --check --size 61 --chip sm_80 --storage canonical | FileCheck %s --check-prefixes=MMA,PASSED
// RUN: nm-run %s --entry single_rows --device emulate --check --size 9 | FileCheck %s --check-prefix=PASSED
//
// No part of a block can be gathered alone.
//
// RUN: sed 's/16:32, block = .64, 64./1:8, block = [4096, 64]/' %s > %t.mlir
// RUN: not nm-run %t.mlir --entry cuda_cores --device emulate 2>&1 | FileCheck %s --check-prefix=NONE
//
// SIMT: product = simt<{{.*}}index = rows
// FEW: product = panel_dot<
// MMA: product = mma<{{.*}}index = rows
// PASSED: relative error {{.*}}: PASS
// NONE: on #nm_sparse.encoding<1:8, block = [4096, 64]>: no schedule fits the 232448 bytes of shared memory of sm_90a

#half = #nm_sparse.encoding<16:32, block = [64, 64]>
#eighth = #nm_sparse.encoding<4:32, block = [64, 64]>
#xt = affine_map<(m, n, k) -> (m, k)>
#xf = affine_map<(m, n, k) -> (k, m)>
#w = affine_map<(m, n, k) -> (k, n)>
#yt = affine_map<(m, n, k) -> (m, n)>
#yf = affine_map<(m, n, k) -> (n, m)>

func.func @cuda_cores(%x: tensor<1990x?xf32>, %w: tensor<1990x70xf32, #half>, %init: tensor<70x?xf32>) -> tensor<70x?xf32> {
  %y = linalg.matmul indexing_maps = [#xf, #w, #yf]
    ins(%x, %w : tensor<1990x?xf32>, tensor<1990x70xf32, #half>) outs(%init : tensor<70x?xf32>) -> tensor<70x?xf32>
  return %y : tensor<70x?xf32>
}

// Two windows, of token-major activations.
func.func @few_kept(%x: tensor<?x3000xf32>, %w: tensor<3000x70xf32, #eighth>, %init: tensor<?x70xf32>) -> tensor<?x70xf32> {
  %y = linalg.matmul ins(%x, %w : tensor<?x3000xf32>, tensor<3000x70xf32, #eighth>) outs(%init : tensor<?x70xf32>) -> tensor<?x70xf32>
  return %y : tensor<?x70xf32>
}

func.func @fragments(%x: tensor<?x1990xf16>, %w: tensor<1990x70xf16, #half>, %init: tensor<?x70xf32>) -> tensor<?x70xf32> {
  %y = linalg.matmul ins(%x, %w : tensor<?x1990xf16>, tensor<1990x70xf16, #half>) outs(%init : tensor<?x70xf32>) -> tensor<?x70xf32>
  return %y : tensor<?x70xf32>
}

// Positions of 16 bits; few enough rows are kept to gather those of a window.
#sparse = #nm_sparse.encoding<12:4096, block = [1, 8]>
func.func @single_rows(%x: tensor<5000x?xf32>, %w: tensor<5000x20xf32, #sparse>, %init: tensor<20x?xf32>) -> tensor<20x?xf32> {
  %y = linalg.matmul indexing_maps = [#xf, #w, #yf]
    ins(%x, %w : tensor<5000x?xf32>, tensor<5000x20xf32, #sparse>) outs(%init : tensor<20x?xf32>) -> tensor<20x?xf32>
  return %y : tensor<20x?xf32>
}
