// RUN: nm-opt %s --nm-sparse-to-nvvm=chip=sm_80 | FileCheck %s
// RUN: nm-run %s --entry element_wise --device emulate --check | FileCheck %s --check-prefix=PASSED
// RUN: nm-run %s --entry block_wise --device emulate --check --size 3 | FileCheck %s --check-prefix=PASSED
// RUN: nm-run %s --entry long_windows --device emulate --check --size 5 | FileCheck %s --check-prefix=PASSED
// RUN: nm-run %s --entry split_windows --device emulate --check --storage bitmap --size 2 | FileCheck %s --check-prefix=PASSED
// RUN: nm-run %s --entry constant --device emulate --check | FileCheck %s --check-prefix=PASSED
// RUN: nm-run %s --entry batched --device emulate --check --size 2 | FileCheck %s --check-prefix=PASSED
// RUN: nm-run %s --entry odd_panels --device emulate --check --size 19 | FileCheck %s --check-prefix=PASSED
// PASSED: relative error {{.*}}: PASS

// Weights that are read once: from global memory to registers, 16 bytes at a time,
// and no shared memory but for the shares of the warps. Windows of 16 rows need no
// branch.
// CHECK-LABEL: llvm.func @element_wise_kernel
// CHECK-NOT: nvvm.cp.async
// CHECK: "ld.global.nc.L1::no_allocate.L2::128B.v4.b32
// CHECK: "bfind.shiftamt.u32 $0, $1;"
// CHECK: "ld.global.nc.b16
// CHECK: llvm.return

#w = #nm_sparse.encoding<8:16>
#s = #nm_tile.schedule<tile = [1, 32, 64], product = dot<warps = 2>,
  transfers = {x = direct, values = direct, index = direct}, pipeline = sequential>

// Three K steps, of which the last one is short, and 33 outputs.
func.func @element_wise(%x: tensor<1x330xf16>, %w: tensor<330x33xf16, #w>, %bias: tensor<33xf16>) -> tensor<1x33xf16> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<1x33xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<1x33xf32>) -> tensor<1x33xf32>
  %y = linalg.matmul {nm_sparse.config = #s} ins(%x, %w : tensor<1x330xf16>, tensor<330x33xf16, #w>)
    outs(%init : tensor<1x33xf32>) -> tensor<1x33xf32>
  %half = tensor.empty() : tensor<1x33xf16>
  %sum = linalg.generic
    {indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (n)>, affine_map<(m, n) -> (m, n)>],
     iterator_types = ["parallel", "parallel"]}
    ins(%y, %bias : tensor<1x33xf32>, tensor<33xf16>) outs(%half : tensor<1x33xf16>) {
  ^bb0(%a: f32, %b: f16, %out: f16):
    %c = arith.extf %b : f16 to f32
    %d = arith.addf %a, %c : f32
    %r = arith.truncf %d : f32 to f16
    linalg.yield %r : f16
  } -> tensor<1x33xf16>
  return %sum : tensor<1x33xf16>
}

// Feature-major activations and result, parts of the contraction in three CTAs.
#blocks = #nm_sparse.encoding<2:5, block = [3, 4]>
#blocks_schedule = #nm_tile.schedule<tile = [4, 32, 288], product = dot<warps = 3>,
  transfers = {x = direct, values = direct, index = direct}, pipeline = sequential, grid = flat<split_k = 3>>
func.func @block_wise(%x: tensor<1000x?xbf16>, %w: tensor<1000x70xbf16, #blocks>, %init: tensor<70x?xf32>) -> tensor<70x?xf32> {
  %y = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (k, n)>,
                                      affine_map<(m, n, k) -> (n, m)>]
    {nm_sparse.config = #blocks_schedule}
    ins(%x, %w : tensor<1000x?xbf16>, tensor<1000x70xbf16, #blocks>) outs(%init : tensor<70x?xf32>) -> tensor<70x?xf32>
  return %y : tensor<70x?xf32>
}

// Windows of more rows than a word has bits, some words of which are empty.
#long = #nm_sparse.encoding<3:64, block = [2, 1], dim = 1>
#long_schedule = #nm_tile.schedule<tile = [8, 32, 48], product = dot<warps = 2>,
  transfers = {x = direct, values = direct, index = direct}, pipeline = sequential>
func.func @long_windows(%x: tensor<?x700xf16>, %w: tensor<40x700xf16, #long>, %init: tensor<?x40xf32>) -> tensor<?x40xf32> {
  %y = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>,
                                      affine_map<(m, n, k) -> (m, n)>]
    {nm_sparse.config = #long_schedule}
    ins(%x, %w : tensor<?x700xf16>, tensor<40x700xf16, #long>) outs(%init : tensor<?x40xf32>) -> tensor<?x40xf32>
  return %y : tensor<?x40xf32>
}

// Windows of 9 rows, which words cut.
#split = #nm_sparse.encoding<4:9>
#split_schedule = #nm_tile.schedule<tile = [2, 32, 64], product = dot<warps = 1>,
  transfers = {x = direct, values = direct, index = direct}, pipeline = sequential>
func.func @split_windows(%x: tensor<?x300xf32>, %w: tensor<300x64xf32, #split>, %init: tensor<?x64xf32>) -> tensor<?x64xf32> {
  %y = linalg.matmul {nm_sparse.config = #split_schedule}
    ins(%x, %w : tensor<?x300xf32>, tensor<300x64xf32, #split>) outs(%init : tensor<?x64xf32>) -> tensor<?x64xf32>
  return %y : tensor<?x64xf32>
}

#pairs = #nm_sparse.encoding<2:4>
func.func @constant(%x: tensor<1x4xf16>) -> tensor<1x2xf32> {
  %w = arith.constant dense<[[0.0, 1.0], [2.0, 0.0], [0.0, 0.0], [3.0, 4.0]]> : tensor<4x2xf16, #pairs>
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<1x2xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<1x2xf32>) -> tensor<1x2xf32>
  %y = linalg.matmul ins(%x, %w : tensor<1x4xf16>, tensor<4x2xf16, #pairs>) outs(%init : tensor<1x2xf32>) -> tensor<1x2xf32>
  return %y : tensor<1x2xf32>
}

#heads = #nm_sparse.encoding<4:16, dim = 1>
func.func @batched(%x: tensor<3x?x96xf16>, %w: tensor<3x96x40xf16, #heads>, %init: tensor<3x?x40xf32>) -> tensor<3x?x40xf32> {
  %y = linalg.batch_matmul ins(%x, %w : tensor<3x?x96xf16>, tensor<3x96x40xf16, #heads>)
    outs(%init : tensor<3x?x40xf32>) -> tensor<3x?x40xf32>
  return %y : tensor<3x?x40xf32>
}

// The schedule is the model's, which takes three passes over the weight.
#panels = #nm_sparse.encoding<3:32, block = [1, 12], dim = 1>
func.func @odd_panels(%x: tensor<?x768xbf16>, %w: tensor<97x768xbf16, #panels>, %init: tensor<?x97xf32>) -> tensor<?x97xf32> {
  %y = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>,
                                      affine_map<(m, n, k) -> (m, n)>]
    ins(%x, %w : tensor<?x768xbf16>, tensor<97x768xbf16, #panels>) outs(%init : tensor<?x97xf32>) -> tensor<?x97xf32>
  return %y : tensor<?x97xf32>
}
