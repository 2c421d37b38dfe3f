// RUN: nm-opt %s --nm-sparse-to-nvvm=chip=sm_80 | FileCheck %s
// RUN: nm-run %s --entry element_wise --device emulate --check | FileCheck %s --check-prefix=PASSED
// RUN: nm-run %s --entry block_wise --device emulate --check --size 13 | FileCheck %s --check-prefix=PASSED
// RUN: nm-run %s --entry block_wise --device emulate --check --size 48 | FileCheck %s --check-prefix=PASSED
// RUN: nm-run %s --entry batched --device emulate --check --size 9 | FileCheck %s --check-prefix=PASSED
// PASSED: relative error {{.*}}: PASS

// Values come from global memory to registers, 16 bytes at a time, and are
// expanded there: no shared memory but for the sum of both shares. A shuffle
// brings the bits of four rows, and the queue of a half window of 16 rows advances
// by three registers, two and one.
// CHECK-LABEL: llvm.func @element_wise_kernel
// CHECK-NOT: nvvm.cp.async
// CHECK-COUNT-4: "ld.global.nc.L1::no_allocate.L2::128B.v4.b32
// CHECK: "ld.global.nc.b32
// CHECK: nvvm.shfl.sync
// CHECK: nvvm.dot.accumulate.2way
// CHECK: nvvm.prmt
// CHECK-COUNT-3: "shf.r.clamp.b32
// CHECK-NOT: ld.shared
// CHECK: nvvm.mma.sync
// CHECK-COUNT-3: "shf.l.clamp.b32
// CHECK: llvm.return

#w = #nm_sparse.encoding<8:16>
#s = #nm_tile.schedule<tile = [8, 32, 64], product = mma_expand<warps = 2, shares = 2>,
  transfers = {x = direct, values = direct, index = direct}, pipeline = sequential>

// Three K steps, of which the last one is short, and 33 outputs.
func.func @element_wise(%x: tensor<5x330xf16>, %w: tensor<330x33xf16, #w>, %bias: tensor<33xf16>) -> tensor<5x33xf16> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<5x33xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<5x33xf32>) -> tensor<5x33xf32>
  %y = linalg.matmul {nm_sparse.config = #s} ins(%x, %w : tensor<5x330xf16>, tensor<330x33xf16, #w>)
    outs(%init : tensor<5x33xf32>) -> tensor<5x33xf32>
  %half = tensor.empty() : tensor<5x33xf16>
  %sum = linalg.generic
    {indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (n)>, affine_map<(m, n) -> (m, n)>],
     iterator_types = ["parallel", "parallel"]}
    ins(%y, %bias : tensor<5x33xf32>, tensor<33xf16>) outs(%half : tensor<5x33xf16>) {
  ^bb0(%a: f32, %b: f16, %out: f16):
    %c = arith.extf %b : f16 to f32
    %d = arith.addf %a, %c : f32
    %r = arith.truncf %d : f32 to f16
    linalg.yield %r : f16
  } -> tensor<5x33xf16>
  return %sum : tensor<5x33xf16>
}

// Windows of three rows, feature-major activations of any number of tokens, two
// passes over the weight, and parts of the contraction in three CTAs.
#blocks = #nm_sparse.encoding<1:3, block = [1, 4]>
#blocks_schedule = #nm_tile.schedule<tile = [16, 64, 256], product = mma_expand<warps = 4, shares = 2>,
  transfers = {x = direct, values = direct, index = direct}, pipeline = sequential, grid = flat<split_k = 3>>
func.func @block_wise(%x: tensor<1000x?xbf16>, %w: tensor<1000x70xbf16, #blocks>, %init: tensor<70x?xf32>) -> tensor<70x?xf32> {
  %y = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (k, n)>,
                                      affine_map<(m, n, k) -> (n, m)>]
    {nm_sparse.config = #blocks_schedule}
    ins(%x, %w : tensor<1000x?xbf16>, tensor<1000x70xbf16, #blocks>) outs(%init : tensor<70x?xf32>) -> tensor<70x?xf32>
  return %y : tensor<70x?xf32>
}

#heads = #nm_sparse.encoding<4:16, dim = 1>
#heads_schedule = #nm_tile.schedule<tile = [16, 64, 64], product = mma_expand<warps = 4, shares = 2>,
  transfers = {x = direct, values = direct, index = direct}, pipeline = sequential>
func.func @batched(%x: tensor<3x?x96xf16>, %w: tensor<3x96x40xf16, #heads>, %init: tensor<3x?x40xf32>) -> tensor<3x?x40xf32> {
  %y = linalg.batch_matmul {nm_sparse.config = #heads_schedule} ins(%x, %w : tensor<3x?x96xf16>, tensor<3x96x40xf16, #heads>)
    outs(%init : tensor<3x?x40xf32>) -> tensor<3x?x40xf32>
  return %y : tensor<3x?x40xf32>
}
