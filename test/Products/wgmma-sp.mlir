// REQUIRES: nm-slow
// RUN: nm-opt %s --nm-sparse-to-nvvm=chip=sm_90a | FileCheck %s
// RUN: nm-run %s --entry token_major --device emulate --check --size 70 | FileCheck %s --check-prefix=PASSED
// RUN: nm-run %s --entry token_major --device emulate --check --size 1 | FileCheck %s --check-prefix=PASSED
// RUN: nm-run %s --entry feature_major --device emulate --check --size 37 | FileCheck %s --check-prefix=PASSED
// RUN: nm-run %s --entry feature_major --device emulate --check --size 64 --last-first | FileCheck %s --check-prefix=PASSED
// RUN: nm-run %s --entry panels --device emulate --check | FileCheck %s --check-prefix=PASSED
// RUN: nm-run %s --entry batched --device emulate --check --size 130 | FileCheck %s --check-prefix=PASSED
// RUN: nm-run %s --entry streamed --device emulate --check --size 200 | FileCheck %s --check-prefix=PASSED
// RUN: nm-run %s --entry pairs --device emulate --check --size 150 | FileCheck %s --check-prefix=PASSED
// RUN: nm-run %s --entry ahead --device emulate --check --size 150 | FileCheck %s --check-prefix=PASSED
// RUN: nm-run %s --entry pairs --device emulate --check --size 150 --last-first | FileCheck %s --check-prefix=PASSED
// RUN: nm-run %s --entry fours --device emulate --check --size 50 | FileCheck %s --check-prefix=PASSED
// PASSED: relative error {{.*}}: PASS

// Which of four rows a value belongs to is made of bits in registers, two products
// from one word. Values are read as they are, and no product is in flight when the
// next words are made: their registers may be those of the last ones.
// CHECK-LABEL: llvm.func @token_major_kernel
// CHECK: nvvm.prmt
// CHECK: llvm.intr.bitreverse
// CHECK: nvvm.wgmma.fence.aligned
// CHECK: wgmma.mma_async.sp.sync.aligned.m64n64k32.f32.f16.f16 {$0,{{.*}}, $31}, $64, $65, $66, 0, p, 1, 1, 0, 0;
// CHECK: wgmma.mma_async.sp.sync.aligned.m64n64k32.f32.f16.f16 {{.*}}, 1, p, 1, 1, 0, 0;
// CHECK: nvvm.wgmma.wait.group.sync.aligned 0
// CHECK-NEXT: llvm.inline_asm has_side_effects {{.*}}@p st.shared.b32 [$1], $0;
// CHECK: nvvm.cp.async.bulk.tensor
// CHECK: llvm.return

#w = #nm_sparse.encoding<2:4>
#s = #nm_tile.schedule<tile = [64, 128, 32], product = wgmma_sp<warps = 8>,
  transfers = {x = bulk, values = bulk, index = bulk}, pipeline = ring<stages = 3, producers = 4>>

// A last K step of half as many rows, 130 outputs, and a bias.
func.func @token_major(%x: tensor<?x352xf16>, %w: tensor<352x130xf16, #w>, %bias: tensor<130xf16>, %out: tensor<?x130xf16>) -> tensor<?x130xf16> {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %m = tensor.dim %x, %c0 : tensor<?x352xf16>
  %empty = tensor.empty(%m) : tensor<?x130xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<?x130xf32>) -> tensor<?x130xf32>
  %y = linalg.matmul {nm_sparse.config = #s} ins(%x, %w : tensor<?x352xf16>, tensor<352x130xf16, #w>)
    outs(%init : tensor<?x130xf32>) -> tensor<?x130xf32>
  %sum = linalg.generic
    {indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (n)>, affine_map<(m, n) -> (m, n)>],
     iterator_types = ["parallel", "parallel"]}
    ins(%y, %bias : tensor<?x130xf32>, tensor<130xf16>) outs(%out : tensor<?x130xf16>) {
  ^bb0(%a: f32, %b: f16, %o: f16):
    %c = arith.extf %b : f16 to f32
    %d = arith.addf %a, %c : f32
    %r = arith.truncf %d : f32 to f16
    linalg.yield %r : f16
  } -> tensor<?x130xf16>
  return %sum : tensor<?x130xf16>
}

// Rows of x that the accelerator cannot address as they are, two products of each
// warpgroup, and parts of the contraction in three CTAs.
#transposed = #nm_sparse.encoding<2:4, dim = 1>
#split = #nm_tile.schedule<tile = [40, 128, 64], product = wgmma_sp<warps = 4>,
  transfers = {x = bulk, values = bulk, index = bulk}, pipeline = ring<stages = 2, producers = 4>, grid = flat<split_k = 3>>
func.func @feature_major(%x: tensor<330x?xbf16>, %w: tensor<70x330xbf16, #transposed>, %init: tensor<70x?xf32>) -> tensor<70x?xf32> {
  %y = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (n, k)>,
                                      affine_map<(m, n, k) -> (n, m)>]
    {nm_sparse.config = #split}
    ins(%x, %w : tensor<330x?xbf16>, tensor<70x330xbf16, #transposed>) outs(%init : tensor<70x?xf32>) -> tensor<70x?xf32>
  return %y : tensor<70x?xf32>
}

// Panels of 16 outputs, whose bits are the same.
#panel = #nm_sparse.encoding<2:4, block = [1, 16]>
func.func @panels(%x: tensor<72x256xf16>, %w: tensor<256x128xf16, #panel>, %init: tensor<72x128xf16>) -> tensor<72x128xf16> {
  %y = linalg.matmul {nm_sparse.config = #s}
    ins(%x, %w : tensor<72x256xf16>, tensor<256x128xf16, #panel>) outs(%init : tensor<72x128xf16>) -> tensor<72x128xf16>
  return %y : tensor<72x128xf16>
}

// A weight for each product of the batch, and CTAs that go from tile to tile.
#persistent = #nm_tile.schedule<tile = [32, 64, 32], product = wgmma_sp<warps = 4>,
  transfers = {x = bulk, values = bulk, index = bulk}, pipeline = ring<stages = 3, producers = 4>, grid = persistent>
func.func @batched(%x: tensor<2x?x256xf16>, %w: tensor<2x256x96xf16, #nm_sparse.encoding<2:4, dim = 1>>, %init: tensor<2x?x96xf16>) -> tensor<2x?x96xf16> {
  %y = linalg.batch_matmul {nm_sparse.config = #persistent}
    ins(%x, %w : tensor<2x?x256xf16>, tensor<2x256x96xf16, #nm_sparse.encoding<2:4, dim = 1>>) outs(%init : tensor<2x?x96xf16>) -> tensor<2x?x96xf16>
  return %y : tensor<2x?x96xf16>
}

// CTAs that share tiles along the contraction.
#stream = #nm_tile.schedule<tile = [16, 64, 32], product = wgmma_sp<warps = 4>,
  transfers = {x = bulk, values = bulk, index = bulk}, pipeline = ring<stages = 2, producers = 4>, grid = persistent<stream_k = true>>
func.func @streamed(%x: tensor<?x320xf16>, %w: tensor<320x1000xf16, #w>, %init: tensor<?x1000xf32>) -> tensor<?x1000xf32> {
  %y = linalg.matmul {nm_sparse.config = #stream}
    ins(%x, %w : tensor<?x320xf16>, tensor<320x1000xf16, #w>) outs(%init : tensor<?x1000xf32>) -> tensor<?x1000xf32>
  return %y : tensor<?x1000xf32>
}

// Pairs of CTAs copy half of the activations each, for both.
#paired = #nm_tile.schedule<tile = [64, 64, 64], product = wgmma_sp<warps = 4>,
  transfers = {x = bulk, values = bulk, index = bulk}, pipeline = ring<stages = 2, producers = 4>, grid = persistent<cluster = 2>>
func.func @pairs(%x: tensor<?x330xf16>, %w: tensor<330x250xf16, #w>, %init: tensor<?x250xf16>) -> tensor<?x250xf16> {
  %y = linalg.matmul {nm_sparse.config = #paired}
    ins(%x, %w : tensor<?x330xf16>, tensor<330x250xf16, #w>) outs(%init : tensor<?x250xf16>) -> tensor<?x250xf16>
  return %y : tensor<?x250xf16>
}

#four = #nm_tile.schedule<tile = [24, 64, 32], product = wgmma_sp<warps = 4>,
  transfers = {x = bulk, values = bulk, index = bulk}, pipeline = ring<stages = 4, producers = 4>, grid = flat<cluster = 4>>
func.func @fours(%x: tensor<448x?xbf16>, %w: tensor<448x250xbf16, #w>, %init: tensor<250x?xf32>) -> tensor<250x?xf32> {
  %y = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (k, n)>,
                                      affine_map<(m, n, k) -> (n, m)>]
    {nm_sparse.config = #four}
    ins(%x, %w : tensor<448x?xbf16>, tensor<448x250xbf16, #w>) outs(%init : tensor<250x?xf32>) -> tensor<250x?xf32>
  return %y : tensor<250x?xf32>
}

// Metadata of the next step before the products of this one end.
#early = #nm_tile.schedule<tile = [64, 128, 32], product = wgmma_sp<warps = 8, ahead = true>,
  transfers = {x = bulk, values = bulk, index = bulk}, pipeline = ring<stages = 4, producers = 4>, grid = persistent>
// CHECK-LABEL: llvm.func @ahead_kernel
// CHECK: wgmma.mma_async.sp
// CHECK: nvvm.mbarrier.try_wait
// CHECK: nvvm.prmt
// CHECK: llvm.intr.bitreverse
// CHECK: nvvm.wgmma.wait.group.sync.aligned 0
// CHECK-NEXT: llvm.inline_asm has_side_effects {{.*}}@p st.shared.b32 [$1], $0;
func.func @ahead(%x: tensor<?x330xf16>, %w: tensor<330x250xf16, #w>, %init: tensor<?x250xf16>) -> tensor<?x250xf16> {
  %y = linalg.matmul {nm_sparse.config = #early}
    ins(%x, %w : tensor<?x330xf16>, tensor<330x250xf16, #w>) outs(%init : tensor<?x250xf16>) -> tensor<?x250xf16>
  return %y : tensor<?x250xf16>
}
