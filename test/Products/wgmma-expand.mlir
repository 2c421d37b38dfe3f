// REQUIRES: nm-slow
// RUN: nm-opt %s --nm-sparse-to-nvvm=chip=sm_90a | FileCheck %s
// RUN: nm-run %s --entry token_major --device emulate --check --size 70 | FileCheck %s --check-prefix=PASSED
// RUN: nm-run %s --entry feature_major --device emulate --check --size 37 | FileCheck %s --check-prefix=PASSED
// RUN: nm-run %s --entry feature_major --device emulate --check --size 64 --last-first | FileCheck %s --check-prefix=PASSED
// RUN: nm-run %s --entry odd_windows --device emulate --check --size 9 | FileCheck %s --check-prefix=PASSED
// RUN: nm-run %s --entry long_windows --device emulate --check | FileCheck %s --check-prefix=PASSED
// RUN: nm-run %s --entry all_kept --device emulate --check --size 24 | FileCheck %s --check-prefix=PASSED
// RUN: nm-run %s --entry batched --device emulate --check --size 130 | FileCheck %s --check-prefix=PASSED
// RUN: nm-run %s --entry panels --device emulate --check --storage bitmap --size 16 | FileCheck %s --check-prefix=PASSED
// RUN: nm-run %s --entry shares --device emulate --check --size 50 | FileCheck %s --check-prefix=PASSED
// RUN: nm-run %s --entry shares_persistent --device emulate --check --size 40 | FileCheck %s --check-prefix=PASSED
// RUN: nm-run %s --entry half_parts --device emulate --check --size 20 | FileCheck %s --check-prefix=PASSED
// RUN: nm-compile %s -o %t.ptx --manifest %t.json && FileCheck %s --check-prefix=MANIFEST --input-file=%t.json
// PASSED: relative error {{.*}}: PASS

// The copy with aligned rows has longer ones than the tensor of its map.
// MANIFEST: "offset": "0"
// MANIFEST-NEXT: "sizes": [
// MANIFEST-NEXT: "330"
// MANIFEST-NEXT: "arg0.size[1]"
// MANIFEST: "strides": [
// MANIFEST-NEXT: "buffer0.stride[0]"
// MANIFEST: "name": "feature_major"

// A count of the bits before a pair of rows finds its values, a permutation takes
// those that there are, and the first operand of each product is in registers. Of
// two parts of the rows, one is expanded while the other is multiplied. Nothing is
// copied by threads, and what they read is read before the accelerator writes it.
// CHECK-LABEL: llvm.func @token_major_kernel
// CHECK-NOT: nvvm.cp.async.shared
// CHECK: nvvm.wgmma.wait.group.sync.aligned 1
// CHECK: llvm.intr.ctpop
// CHECK: llvm.load %{{.*}} {alignment = 2 : i64} : !llvm.ptr<3> -> i16
// CHECK: nvvm.prmt
// CHECK: nvvm.wgmma.fence.aligned
// CHECK: wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {$0,{{.*}}, $31}, {$64, $65, $66, $67}, $68, p, 1, 1, 0;
// CHECK: nvvm.wgmma.wait.group.sync.aligned 1
// CHECK: nvvm.bar.warp.sync
// CHECK: nvvm.fence.proxy
// CHECK-COUNT-2: nvvm.cp.async.bulk.tensor
// CHECK: llvm.return

#w = #nm_sparse.encoding<8:16>
#s = #nm_tile.schedule<tile = [64, 128, 32], product = wgmma_expand<warps = 8>,
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

// Rows of x that the accelerator cannot address as they are, and parts of the
// contraction in three CTAs.
#blocks = #nm_sparse.encoding<2:4, block = [2, 3], dim = 1>
#blocks_schedule = #nm_tile.schedule<tile = [40, 64, 32], product = wgmma_expand<warps = 4>,
  transfers = {x = bulk, values = bulk, index = bulk}, pipeline = ring<stages = 2, producers = 4>, grid = flat<split_k = 3>>
func.func @feature_major(%x: tensor<330x?xbf16>, %w: tensor<70x330xbf16, #blocks>, %init: tensor<70x?xf32>) -> tensor<70x?xf32> {
  %y = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (n, k)>,
                                      affine_map<(m, n, k) -> (n, m)>]
    {nm_sparse.config = #blocks_schedule}
    ins(%x, %w : tensor<330x?xbf16>, tensor<70x330xbf16, #blocks>) outs(%init : tensor<70x?xf32>) -> tensor<70x?xf32>
  return %y : tensor<70x?xf32>
}

// Windows of 5 rows, which words cut, in tiles of 160 rows, for which lines of
// activations are filled up; rows of 405 elements, and two products of each
// warpgroup.
#odd = #nm_sparse.encoding<2:5>
#odd_schedule = #nm_tile.schedule<tile = [8, 128, 64], product = wgmma_expand<warps = 4>,
  transfers = {x = bulk, values = bulk, index = bulk}, pipeline = ring<stages = 4, producers = 4>>
func.func @odd_windows(%x: tensor<?x405xf16>, %w: tensor<405x100xf16, #odd>, %init: tensor<100x?xf16>) -> tensor<100x?xf16> {
  %y = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>,
                                      affine_map<(m, n, k) -> (n, m)>]
    {nm_sparse.config = #odd_schedule}
    ins(%x, %w : tensor<?x405xf16>, tensor<405x100xf16, #odd>) outs(%init : tensor<100x?xf16>) -> tensor<100x?xf16>
  return %y : tensor<100x?xf16>
}

// Windows of more rows than a word has bits, in tiles whose words take more than
// one box.
#long = #nm_sparse.encoding<5:36, block = [1, 2]>
#long_schedule = #nm_tile.schedule<tile = [16, 64, 40], product = wgmma_expand<warps = 4>,
  transfers = {x = bulk, values = bulk, index = bulk}, pipeline = ring<stages = 2, producers = 4>>
func.func @long_windows(%x: tensor<16x600xf16>, %w: tensor<600x64xf16, #long>, %init: tensor<16x64xf32>) -> tensor<16x64xf32> {
  %y = linalg.matmul {nm_sparse.config = #long_schedule}
    ins(%x, %w : tensor<16x600xf16>, tensor<600x64xf16, #long>) outs(%init : tensor<16x64xf32>) -> tensor<16x64xf32>
  return %y : tensor<16x64xf32>
}

// Pairs of rows whose values begin in one piece and end in the next.
#all = #nm_sparse.encoding<31:32>
#all_schedule = #nm_tile.schedule<tile = [24, 64, 248], product = wgmma_expand<warps = 4>,
  transfers = {x = bulk, values = bulk, index = bulk}, pipeline = ring<stages = 2, producers = 4>>
func.func @all_kept(%x: tensor<?x512xbf16>, %w: tensor<512x64xbf16, #all>, %init: tensor<?x64xbf16>) -> tensor<?x64xbf16> {
  %y = linalg.matmul {nm_sparse.config = #all_schedule}
    ins(%x, %w : tensor<?x512xbf16>, tensor<512x64xbf16, #all>) outs(%init : tensor<?x64xbf16>) -> tensor<?x64xbf16>
  return %y : tensor<?x64xbf16>
}

// A weight for each product of the batch, and CTAs that go from tile to tile.
#persistent = #nm_tile.schedule<tile = [32, 64, 32], product = wgmma_expand<warps = 4>,
  transfers = {x = bulk, values = bulk, index = bulk}, pipeline = ring<stages = 3, producers = 4>, grid = persistent>
#batch = #nm_sparse.encoding<16:32, dim = 1>
func.func @batched(%x: tensor<2x?x128xf16>, %w: tensor<2x128x200xf16, #batch>, %init: tensor<2x?x200xf32>) -> tensor<2x?x200xf32> {
  %y = linalg.batch_matmul {nm_sparse.config = #persistent}
    ins(%x, %w : tensor<2x?x128xf16>, tensor<2x128x200xf16, #batch>) outs(%init : tensor<2x?x200xf32>) -> tensor<2x?x200xf32>
  return %y : tensor<2x?x200xf32>
}

// Panels of 32 outputs, whose bits are all alike.
#panels = #nm_sparse.encoding<1:4, block = [1, 32]>
#panels_schedule = #nm_tile.schedule<tile = [16, 64, 16], product = wgmma_expand<warps = 4>,
  transfers = {x = bulk, values = bulk, index = bulk}, pipeline = ring<stages = 2, producers = 4>>
func.func @panels(%x: tensor<?x256xf16>, %w: tensor<256x96xf16, #panels>, %init: tensor<?x96xf32>) -> tensor<?x96xf32> {
  %y = linalg.matmul {nm_sparse.config = #panels_schedule}
    ins(%x, %w : tensor<?x256xf16>, tensor<256x96xf16, #panels>) outs(%init : tensor<?x96xf32>) -> tensor<?x96xf32>
  return %y : tensor<?x96xf32>
}

// Two groups of warps, each with 64 rows of a K step, and parts of the contraction
// in three CTAs.
#shares = #nm_tile.schedule<tile = [24, 128, 64], product = wgmma_expand<warps = 16, shares = 2>,
  transfers = {x = bulk, values = bulk, index = bulk}, pipeline = ring<stages = 2, producers = 4>, grid = flat<split_k = 3>>
func.func @shares(%x: tensor<?x700xf16>, %w: tensor<700x150xf16, #w>, %init: tensor<?x150xf32>) -> tensor<?x150xf32> {
  %y = linalg.matmul {nm_sparse.config = #shares}
    ins(%x, %w : tensor<?x700xf16>, tensor<700x150xf16, #w>) outs(%init : tensor<?x150xf32>) -> tensor<?x150xf32>
  return %y : tensor<?x150xf32>
}

// Shares of one tile after another, in the same memory.
#many = #nm_tile.schedule<tile = [8, 64, 96], product = wgmma_expand<warps = 12, shares = 3>,
  transfers = {x = bulk, values = bulk, index = bulk}, pipeline = ring<stages = 2, producers = 4>, grid = persistent>
func.func @shares_persistent(%x: tensor<384x?xf16>, %w: tensor<384x2000xf16, #w>, %init: tensor<2000x?xf16>) -> tensor<2000x?xf16> {
  %y = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (k, n)>,
                                      affine_map<(m, n, k) -> (n, m)>]
    {nm_sparse.config = #many}
    ins(%x, %w : tensor<384x?xf16>, tensor<384x2000xf16, #w>) outs(%init : tensor<2000x?xf16>) -> tensor<2000x?xf16>
  return %y : tensor<2000x?xf16>
}

// 32 rows and 64 outputs would be one part, which nothing could be expanded beside:
// they are two.
#half = #nm_tile.schedule<tile = [16, 64, 16], product = wgmma_expand<warps = 4>,
  transfers = {x = bulk, values = bulk, index = bulk}, pipeline = ring<stages = 2, producers = 4>>
// CHECK-LABEL: llvm.func @half_parts_kernel
// CHECK: nvvm.wgmma.wait.group.sync.aligned 1
// CHECK: nvvm.wgmma.fence.aligned
// CHECK-NEXT: wgmma.mma_async
// CHECK-NOT: wgmma.mma_async
// CHECK: nvvm.wgmma.wait.group.sync.aligned 1
// CHECK: nvvm.wgmma.fence.aligned
// CHECK: wgmma.mma_async
// CHECK: nvvm.wgmma.wait.group.sync.aligned 0
func.func @half_parts(%x: tensor<?x256xf16>, %w: tensor<256x96xf16, #w>, %init: tensor<?x96xf32>) -> tensor<?x96xf32> {
  %y = linalg.matmul {nm_sparse.config = #half}
    ins(%x, %w : tensor<?x256xf16>, tensor<256x96xf16, #w>) outs(%init : tensor<?x96xf32>) -> tensor<?x96xf32>
  return %y : tensor<?x96xf32>
}

// The values of both parts are loaded before the product of the first.
#ahead = #nm_tile.schedule<tile = [64, 128, 32], product = wgmma_expand<warps = 8, ahead = true>,
  transfers = {x = bulk, values = bulk, index = bulk}, pipeline = ring<stages = 3, producers = 4>>
// CHECK-LABEL: llvm.func @ahead_kernel
// CHECK-NOT: nvvm.wgmma
// CHECK-COUNT-32: llvm.load %{{.*}} {alignment = 2 : i64} : !llvm.ptr<3> -> i16
// CHECK: nvvm.wgmma.wait.group.sync.aligned 1
// CHECK: nvvm.wgmma.fence.aligned
// CHECK: wgmma.mma_async
// CHECK-NOT: -> i16
// CHECK: nvvm.wgmma.wait.group.sync.aligned 1
// CHECK: nvvm.wgmma.fence.aligned
// CHECK: wgmma.mma_async
func.func @ahead(%x: tensor<?x256xf16>, %w: tensor<256x96xf16, #w>, %init: tensor<?x96xf32>) -> tensor<?x96xf32> {
  %y = linalg.matmul {nm_sparse.config = #ahead}
    ins(%x, %w : tensor<?x256xf16>, tensor<256x96xf16, #w>) outs(%init : tensor<?x96xf32>) -> tensor<?x96xf32>
  return %y : tensor<?x96xf32>
}
