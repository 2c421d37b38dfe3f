// RUN: nm-opt %s --nm-sparse-to-nvvm=chip=sm_80 | FileCheck %s
// RUN: nm-run %s --entry vector_wise --device emulate --check | FileCheck %s --check-prefix=PASSED
// RUN: nm-run %s --entry block_wise --device emulate --check --size 3 | FileCheck %s --check-prefix=PASSED
// RUN: nm-run %s --entry odd_windows --device emulate --check --size 5 | FileCheck %s --check-prefix=PASSED
// RUN: nm-run %s --entry pytorch --device emulate --check | FileCheck %s --check-prefix=PASSED
// RUN: nm-run %s --entry batched --device emulate --check --size 2 | FileCheck %s --check-prefix=PASSED
// RUN: nm-run %s --entry chosen --device emulate --check | FileCheck %s --check-prefix=CHOSEN
// PASSED: relative error {{.*}}: PASS

// Values and positions of eight rows of 16 bytes are read before the first is
// multiplied; there is no shared memory but for the shares of the warps, and each
// thread is left the registers for what is on its way.
// CHECK-LABEL: llvm.func @vector_wise_kernel
// CHECK-SAME: nvvm.minctasm
// CHECK-NOT: nvvm.cp.async
// CHECK-COUNT-8: "ld.global.nc.L1::no_allocate.L2::128B.v4.b32
// CHECK: "ld.global.nc.b16
// CHECK: nvvm.shfl.sync
// CHECK: llvm.return

#w = #nm_sparse.encoding<8:32, block = [1, 32]>
#s = #nm_tile.schedule<tile = [1, 64, 64], product = panel_dot<warps = 2, shares = 8>,
  transfers = {x = direct, values = direct, index = direct}, pipeline = sequential>

// The last K step is short, and the last panel is not whole.
func.func @vector_wise(%x: tensor<1x1000xf16>, %w: tensor<1000x204xf16, #w>, %bias: tensor<204xf16>) -> tensor<1x204xf16> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<1x204xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<1x204xf32>) -> tensor<1x204xf32>
  %y = linalg.matmul {nm_sparse.config = #s} ins(%x, %w : tensor<1x1000xf16>, tensor<1000x204xf16, #w>)
    outs(%init : tensor<1x204xf32>) -> tensor<1x204xf32>
  %half = tensor.empty() : tensor<1x204xf16>
  %sum = linalg.generic
    {indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (n)>, affine_map<(m, n) -> (m, n)>],
     iterator_types = ["parallel", "parallel"]}
    ins(%y, %bias : tensor<1x204xf32>, tensor<204xf16>) outs(%half : tensor<1x204xf16>) {
  ^bb0(%a: f32, %b: f16, %out: f16):
    %c = arith.extf %b : f16 to f32
    %d = arith.addf %a, %c : f32
    %r = arith.truncf %d : f32 to f16
    linalg.yield %r : f16
  } -> tensor<1x204xf16>
  return %sum : tensor<1x204xf16>
}

// Feature-major activations and result, blocks of three rows, and parts of the
// contraction in three CTAs.
#blocks = #nm_sparse.encoding<2:5, block = [3, 8]>
#blocks_schedule = #nm_tile.schedule<tile = [4, 32, 96], product = panel_dot<warps = 1, shares = 8>,
  transfers = {x = direct, values = direct, index = direct}, pipeline = sequential, grid = flat<split_k = 3>>
func.func @block_wise(%x: tensor<1000x?xbf16>, %w: tensor<1000x70xbf16, #blocks>, %init: tensor<70x?xf32>) -> tensor<70x?xf32> {
  %y = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (k, n)>,
                                      affine_map<(m, n, k) -> (n, m)>]
    {nm_sparse.config = #blocks_schedule}
    ins(%x, %w : tensor<1000x?xbf16>, tensor<1000x70xbf16, #blocks>) outs(%init : tensor<70x?xf32>) -> tensor<70x?xf32>
  return %y : tensor<70x?xf32>
}

// Windows that the groups of lanes do not divide, in tiles that no panel fits.
#odd = #nm_sparse.encoding<5:9, block = [1, 12]>
#odd_schedule = #nm_tile.schedule<tile = [8, 32, 25], product = panel_dot<warps = 1, shares = 4>,
  transfers = {x = direct, values = direct, index = direct}, pipeline = sequential>
func.func @odd_windows(%x: tensor<?x300xf32>, %w: tensor<300x100xf32, #odd>, %init: tensor<?x100xf32>) -> tensor<?x100xf32> {
  %y = linalg.matmul {nm_sparse.config = #odd_schedule}
    ins(%x, %w : tensor<?x300xf32>, tensor<300x100xf32, #odd>) outs(%init : tensor<?x100xf32>) -> tensor<?x100xf32>
  return %y : tensor<?x100xf32>
}

#transposed = #nm_sparse.encoding<3:8, block = [1, 16], dim = 1>
#transposed_schedule = #nm_tile.schedule<tile = [2, 256, 24], product = panel_dot<warps = 4, shares = 4>,
  transfers = {x = direct, values = direct, index = direct}, pipeline = sequential>
func.func @pytorch(%x: tensor<2x512xf16>, %w: tensor<160x512xf16, #transposed>, %init: tensor<2x160xf32>) -> tensor<2x160xf32> {
  %y = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>,
                                      affine_map<(m, n, k) -> (m, n)>]
    {nm_sparse.config = #transposed_schedule}
    ins(%x, %w : tensor<2x512xf16>, tensor<160x512xf16, #transposed>) outs(%init : tensor<2x160xf32>) -> tensor<2x160xf32>
  return %y : tensor<2x160xf32>
}

#batch = #nm_sparse.encoding<2:4, block = [1, 8], dim = 1>
#batch_schedule = #nm_tile.schedule<tile = [2, 64, 32], product = panel_dot<warps = 2, shares = 8>,
  transfers = {x = direct, values = direct, index = direct}, pipeline = sequential>
func.func @batched(%x: tensor<3x?x200xf16>, %w: tensor<3x200x72xf16, #batch>, %init: tensor<3x?x72xf32>) -> tensor<3x?x72xf32> {
  %y = linalg.batch_matmul {nm_sparse.config = #batch_schedule}
    ins(%x, %w : tensor<3x?x200xf16>, tensor<3x200x72xf16, #batch>) outs(%init : tensor<3x?x72xf32>) -> tensor<3x?x72xf32>
  return %y : tensor<3x?x72xf32>
}

// The model takes it for one token.
// CHOSEN: schedule #nm_tile.schedule<{{.*}} product = panel_dot<
func.func @chosen(%x: tensor<1x4096xf16>, %w: tensor<4096x1024xf16, #w>, %init: tensor<1x1024xf32>) -> tensor<1x1024xf32> {
  %y = linalg.matmul ins(%x, %w : tensor<1x4096xf16>, tensor<4096x1024xf16, #w>) outs(%init : tensor<1x1024xf32>) -> tensor<1x1024xf32>
  return %y : tensor<1x1024xf32>
}
