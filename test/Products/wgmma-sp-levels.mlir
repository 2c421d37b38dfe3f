// REQUIRES: nm-slow
// RUN: nm-opt %s --nm-sparse-to-nvvm=chip=sm_90a | FileCheck %s
// RUN: nm-run %s --entry panels --device emulate --check --size 70 | FileCheck %s --check-prefix=PASSED
// RUN: nm-run %s --entry panels --device emulate --check --size 1 | FileCheck %s --check-prefix=PASSED
// RUN: nm-run %s --entry inside --device emulate --check --size 64 --last-first | FileCheck %s --check-prefix=PASSED
// RUN: nm-run %s --entry batched --device emulate --check --size 66 | FileCheck %s --check-prefix=PASSED
// RUN: nm-run %s --entry streamed --device emulate --check --size 200 | FileCheck %s --check-prefix=PASSED
// RUN: nm-run %s --entry blocks --device emulate --check --size 130 | FileCheck %s --check-prefix=PASSED
// RUN: nm-run %s --entry pairs --device emulate --check --seed 3 | FileCheck %s --check-prefix=PASSED
// RUN: nm-run %s --entry pairs --device emulate --check --last-first | FileCheck %s --check-prefix=PASSED
// RUN: nm-run %s --entry fours --device emulate --check | FileCheck %s --check-prefix=PASSED
// RUN: nm-run %s --entry wide --device emulate --check --size 300 | FileCheck %s --check-prefix=PASSED
// RUN: nm-run %s --entry wide --device emulate --check --size 303 --seed 2 | FileCheck %s --check-prefix=PASSED
// PASSED: relative error {{.*}}: PASS

// Functions of known numbers of tokens come first.
// CHECK-LABEL: llvm.func @pairs_kernel
// CHECK: nvvm.cp.async.bulk.tensor.shared.cluster.global {{.*}} multicast_mask = %
// CHECK: llvm.return

// The rows that a panel keeps are gathered, then multiplied as 2:4: warpgroup 1 reads
// the 64 rows of the second panel behind those of the first.
// CHECK-LABEL: llvm.func @panels{{.*}}_kernel
// CHECK: nvvm.setmaxregister increase 232
// CHECK: nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.shared>, space = #nvvm.shared_space<cta>}
// CHECK: nvvm.wgmma.fence.aligned
// CHECK: wgmma.mma_async.sp.sync.aligned.m64n64k32.f32.f16.f16 {{.*}}, 0, p, 1, 1, 0, 1;
// CHECK: wgmma.mma_async.sp.sync.aligned.m64n64k32.f32.f16.f16 {{.*}}, 1, p, 1, 1, 0, 1;
// CHECK: nvvm.cp.async.shared.global
// CHECK: llvm.return

// Threads copy the three lines of a row from one address.
// CHECK-LABEL: llvm.func @wide{{.*}}_kernel
// CHECK: nvvm.setmaxregister increase 232
// CHECK: wgmma.mma_async.sp.sync.aligned.m64n192k32.f32.f16.f16
// CHECK: nvvm.setmaxregister decrease 40
// CHECK: llvm.return

// 64:2:5, the pattern that keeps the most: 60 % zeros. A last K step of fewer windows,
// 130 outputs, a bias, and activations that are transposed first.
#w5 = #nm_sparse.encoding<[4:5, block = [1, 64]], [2:4]>
#s = #nm_tile.schedule<tile = [64, 128, 32], product = wgmma_sp<warps = 8>,
  transfers = {x = gather, values = bulk, index = resident}, pipeline = ring<stages = 3, producers = 4>, grid = persistent>
func.func @panels(%x: tensor<?x353xf16>, %w: tensor<353x130xf16, #w5>, %bias: tensor<130xf16>, %out: tensor<?x130xf16>) -> tensor<?x130xf16> {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %m = tensor.dim %x, %c0 : tensor<?x353xf16>
  %empty = tensor.empty(%m) : tensor<?x130xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<?x130xf32>) -> tensor<?x130xf32>
  %y = linalg.matmul {nm_sparse.config = #s} ins(%x, %w : tensor<?x353xf16>, tensor<353x130xf16, #w5>)
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

// Tiles inside a panel of 256 outputs, parts of the contraction in two CTAs, and two
// products of each warpgroup.
#w20 = #nm_sparse.encoding<[4:20, block = [1, 256]], [2:4], dim = 1>
#split = #nm_tile.schedule<tile = [64, 128, 64], product = wgmma_sp<warps = 4>,
  transfers = {x = gather, values = bulk, index = resident}, pipeline = ring<stages = 2, producers = 4>, grid = flat<split_k = 2>>
func.func @inside(%x: tensor<1290x?xbf16>, %w: tensor<300x1290xbf16, #w20>, %init: tensor<300x?xf32>) -> tensor<300x?xf32> {
  %y = linalg.matmul
    indexing_maps = [affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (n, m)>]
    {nm_sparse.config = #split}
    ins(%x, %w : tensor<1290x?xbf16>, tensor<300x1290xbf16, #w20>) outs(%init : tensor<300x?xf32>) -> tensor<300x?xf32>
  return %y : tensor<300x?xf32>
}

// A weight for each batch entry, and metadata ahead.
#w8 = #nm_sparse.encoding<[4:8, block = [1, 128]], [2:4]>
#batch = #nm_sparse.encoding<[4:8, block = [1, 128]], [2:4], dim = 1>
#ahead = #nm_tile.schedule<tile = [128, 256, 32], product = wgmma_sp<warps = 8, ahead = true>,
  transfers = {x = gather, values = bulk, index = resident}, pipeline = ring<stages = 4, producers = 4>, grid = persistent>
func.func @batched(%x: tensor<2x256x?xf16>, %w: tensor<2x256x250xf16, #batch>, %init: tensor<2x?x250xf32>) -> tensor<2x?x250xf32> {
  %y = linalg.batch_matmul
    indexing_maps = [affine_map<(b, m, n, k) -> (b, k, m)>, affine_map<(b, m, n, k) -> (b, k, n)>, affine_map<(b, m, n, k) -> (b, m, n)>]
    {nm_sparse.config = #ahead}
    ins(%x, %w : tensor<2x256x?xf16>, tensor<2x256x250xf16, #batch>) outs(%init : tensor<2x?x250xf32>) -> tensor<2x?x250xf32>
  return %y : tensor<2x?x250xf32>
}

// 64:2:8. CTAs that share the tiles of the last waves along the contraction.
#w64 = #nm_sparse.encoding<[4:8, block = [1, 64]], [2:4]>
#stream = #nm_tile.schedule<tile = [64, 64, 32], product = wgmma_sp<warps = 4>,
  transfers = {x = gather, values = bulk, index = resident}, pipeline = ring<stages = 2, producers = 4>, grid = persistent<stream_k = true>>
func.func @streamed(%x: tensor<512x?xf16>, %w: tensor<512x2304xf16, #w64>, %init: tensor<2304x?xf16>) -> tensor<2304x?xf16> {
  %y = linalg.matmul
    indexing_maps = [affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (n, m)>]
    {nm_sparse.config = #stream}
    ins(%x, %w : tensor<512x?xf16>, tensor<512x2304xf16, #w64>) outs(%init : tensor<2304x?xf16>) -> tensor<2304x?xf16>
  return %y : tensor<2304x?xf16>
}

// Blocks of four rows, so that whole blocks are kept or dropped.
#w4 = #nm_sparse.encoding<[1:3, block = [4, 192]], [2:4]>
#blocks = #nm_tile.schedule<tile = [192, 192, 32], product = wgmma_sp<warps = 12>,
  transfers = {x = gather, values = bulk, index = resident}, pipeline = ring<stages = 2, producers = 4>>
func.func @blocks(%x: tensor<480x?xf16>, %w: tensor<480x400xf16, #w4>, %init: tensor<?x400xf32>) -> tensor<?x400xf32> {
  %y = linalg.matmul
    indexing_maps = [affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
    {nm_sparse.config = #blocks}
    ins(%x, %w : tensor<480x?xf16>, tensor<480x400xf16, #w4>) outs(%init : tensor<?x400xf32>) -> tensor<?x400xf32>
  return %y : tensor<?x400xf32>
}

// Pairs of CTAs with neighbouring tokens, of which each copies half of the values for
// both; bits, which threads read, it copies for itself.
#pair = #nm_tile.schedule<tile = [64, 128, 32], product = wgmma_sp<warps = 8>,
  transfers = {x = gather, values = bulk, index = resident}, pipeline = ring<stages = 3, producers = 4>, grid = persistent<cluster = 2>>
func.func @pairs(%x: tensor<640x250xf16>, %w: tensor<640x200xf16, #w8>, %init: tensor<200x250xf16>) -> tensor<200x250xf16> {
  %y = linalg.matmul
    indexing_maps = [affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (n, m)>]
    {nm_sparse.config = #pair}
    ins(%x, %w : tensor<640x250xf16>, tensor<640x200xf16, #w8>) outs(%init : tensor<200x250xf16>) -> tensor<200x250xf16>
  return %y : tensor<200x250xf16>
}

// CTAs with one tile each, four to a cluster, and a quarter of the values each.
#four = #nm_tile.schedule<tile = [64, 64, 64], product = wgmma_sp<warps = 4>,
  transfers = {x = gather, values = bulk, index = resident}, pipeline = ring<stages = 2, producers = 4>, grid = flat<cluster = 4>>
func.func @fours(%x: tensor<600x200xf16>, %w: tensor<600x130xf16, #w5>, %init: tensor<130x200xf32>) -> tensor<130x200xf32> {
  %y = linalg.matmul
    indexing_maps = [affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (n, m)>]
    {nm_sparse.config = #four}
    ins(%x, %w : tensor<600x200xf16>, tensor<600x130xf16, #w5>) outs(%init : tensor<130x200xf32>) -> tensor<130x200xf32>
  return %y : tensor<130x200xf32>
}

// 192 tokens x 256 outputs, which fill the registers. Rows that end inside a line, and,
// of 303 tokens, begin at any element.
#wpanel = #nm_sparse.encoding<[4:8, block = [1, 256]], [2:4]>
#wide = #nm_tile.schedule<tile = [192, 256, 32], product = wgmma_sp<warps = 8, ahead = true>,
  transfers = {x = gather, values = bulk, index = resident}, pipeline = ring<stages = 4, producers = 4>, grid = persistent>
func.func @wide(%x: tensor<500x?xf16>, %w: tensor<500x300xf16, #wpanel>, %init: tensor<300x?xf16>) -> tensor<300x?xf16> {
  %y = linalg.matmul
    indexing_maps = [affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (n, m)>]
    {nm_sparse.config = #wide}
    ins(%x, %w : tensor<500x?xf16>, tensor<500x300xf16, #wpanel>) outs(%init : tensor<300x?xf16>) -> tensor<300x?xf16>
  return %y : tensor<300x?xf16>
}
