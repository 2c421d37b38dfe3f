// REQUIRES: nm-slow
// RUN: nm-opt %s --nm-sparse-to-nvvm=chip=sm_90a | FileCheck %s
// RUN: nm-run %s --entry integers --device emulate --check --size 70 | FileCheck %s --check-prefix=PASSED
// RUN: nm-run %s --entry integers --device emulate --check --size 1 | FileCheck %s --check-prefix=PASSED
// RUN: nm-run %s --entry floats --device emulate --check --size 150 | FileCheck %s --check-prefix=PASSED
// RUN: nm-run %s --entry wide_floats --device emulate --check --size 100 --last-first | FileCheck %s --check-prefix=PASSED
// RUN: nm-run %s --entry sums --device emulate --check --size 40 | FileCheck %s --check-prefix=PASSED
// RUN: nm-run %s --entry chosen --device emulate --check | FileCheck %s --check-prefix=CHOSEN
// PASSED: relative error {{.*}}: PASS
// CHOSEN: product = wgmma_sp<
// CHOSEN: relative error {{.*}}: PASS

// A product has the bits of two tiles of the weight, and each lane those of one
// output: its word is the metadata, with no half of another one.
// CHECK-LABEL: llvm.func @integers_kernel
// CHECK-NOT: nvvm.prmt
// CHECK: llvm.intr.bitreverse
// CHECK: nvvm.wgmma.fence.aligned
// CHECK: wgmma.mma_async.sp.sync.aligned.m64n48k64.s32.s8.s8 {$0,{{.*}}, $23}, $48, $49, $50, 0, p;
// CHECK: wgmma.mma_async.sp.sync.aligned.m64n48k64.s32.s8.s8 {{.*}}, 0, p;
// CHECK-NOT: , 1, p;
// CHECK: llvm.return
// CHECK-LABEL: llvm.func @floats_kernel
// CHECK: wgmma.mma_async.sp.sync.aligned.m64n40k64.f32.e4m3.e4m3 {{.*}}, 0, p, 1, 1;
// CHECK-LABEL: llvm.func @wide_floats_kernel
// CHECK: wgmma.mma_async.sp.sync.aligned.m64n32k64.f32.e5m2.e5m2 {{.*}}, 0, p, 1, 1;

#w = #nm_sparse.encoding<2:4>
#rows = #nm_sparse.encoding<2:4, dim = 1>
#s = #nm_tile.schedule<tile = [48, 128, 64], product = wgmma_sp<warps = 8>,
  transfers = {x = bulk, values = bulk, index = bulk}, pipeline = ring<stages = 3, producers = 4>>
#scales = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (n)>, affine_map<(m, n) -> (0)>, affine_map<(m, n) -> (m, n)>]

// Scales of each output and of the tensor, a last K step of fewer rows, and rows
// of x that the accelerator cannot address as they are.
func.func @integers(%x: tensor<?x424xi8>, %w: tensor<424x130xi8, #w>, %scale: tensor<130xf32>, %all: tensor<1xf32>,
                    %out: tensor<?x130xf16>) -> tensor<?x130xf16> {
  %zero = arith.constant 0 : i32
  %c0 = arith.constant 0 : index
  %m = tensor.dim %x, %c0 : tensor<?x424xi8>
  %empty = tensor.empty(%m) : tensor<?x130xi32>
  %init = linalg.fill ins(%zero : i32) outs(%empty : tensor<?x130xi32>) -> tensor<?x130xi32>
  %y = linalg.matmul {nm_sparse.config = #s} ins(%x, %w : tensor<?x424xi8>, tensor<424x130xi8, #w>)
    outs(%init : tensor<?x130xi32>) -> tensor<?x130xi32>
  %scaled = linalg.generic {indexing_maps = #scales, iterator_types = ["parallel", "parallel"]}
    ins(%y, %scale, %all : tensor<?x130xi32>, tensor<130xf32>, tensor<1xf32>) outs(%out : tensor<?x130xf16>) {
  ^bb0(%a: i32, %b: f32, %t: f32, %o: f16):
    %c = arith.sitofp %a : i32 to f32
    %d = arith.mulf %c, %b : f32
    %e = arith.mulf %d, %t : f32
    %r = arith.truncf %e : f32 to f16
    linalg.yield %r : f16
  } -> tensor<?x130xf16>
  return %scaled : tensor<?x130xf16>
}

// A result that is written feature-major, metadata ahead, and CTAs that share
// tiles.
#stream = #nm_tile.schedule<tile = [40, 64, 64], product = wgmma_sp<warps = 4, ahead = true>,
  transfers = {x = bulk, values = bulk, index = bulk}, pipeline = ring<stages = 4, producers = 4>, grid = persistent<stream_k = true>>
func.func @floats(%x: tensor<?x512xf8E4M3FN>, %w: tensor<512x200xf8E4M3FN, #w>, %scale: tensor<200xf32>,
                  %out: tensor<200x?xbf16>) -> tensor<200x?xbf16> {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %m = tensor.dim %x, %c0 : tensor<?x512xf8E4M3FN>
  %empty = tensor.empty(%m) : tensor<200x?xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<200x?xf32>) -> tensor<200x?xf32>
  %y = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>,
                                      affine_map<(m, n, k) -> (n, m)>]
    {nm_sparse.config = #stream} ins(%x, %w : tensor<?x512xf8E4M3FN>, tensor<512x200xf8E4M3FN, #w>)
    outs(%init : tensor<200x?xf32>) -> tensor<200x?xf32>
  %scaled = linalg.generic
    {indexing_maps = [affine_map<(n, m) -> (n, m)>, affine_map<(n, m) -> (n)>, affine_map<(n, m) -> (n, m)>],
     iterator_types = ["parallel", "parallel"]}
    ins(%y, %scale : tensor<200x?xf32>, tensor<200xf32>) outs(%out : tensor<200x?xbf16>) {
  ^bb0(%a: f32, %b: f32, %o: bf16):
    %c = arith.mulf %a, %b : f32
    %r = arith.truncf %c : f32 to bf16
    linalg.yield %r : bf16
  } -> tensor<200x?xbf16>
  return %scaled : tensor<200x?xbf16>
}

// Two lines of activations a step, in pairs of CTAs, and the other float of 8 bits.
#pairs = #nm_tile.schedule<tile = [32, 64, 128], product = wgmma_sp<warps = 4>,
  transfers = {x = bulk, values = bulk, index = bulk}, pipeline = ring<stages = 3, producers = 4>, grid = flat<cluster = 2>>
func.func @wide_floats(%x: tensor<?x768xf8E5M2>, %w: tensor<256x768xf8E5M2, #rows>, %init: tensor<?x256xf8E5M2>) -> tensor<?x256xf8E5M2> {
  %y = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>,
                                      affine_map<(m, n, k) -> (m, n)>]
    {nm_sparse.config = #pairs}
    ins(%x, %w : tensor<?x768xf8E5M2>, tensor<256x768xf8E5M2, #rows>) outs(%init : tensor<?x256xf8E5M2>) -> tensor<?x256xf8E5M2>
  return %y : tensor<?x256xf8E5M2>
}

// What the caller gave is added to, as integers, and parts of the contraction are.
#split = #nm_tile.schedule<tile = [16, 128, 64], product = wgmma_sp<warps = 4>,
  transfers = {x = bulk, values = bulk, index = bulk}, pipeline = ring<stages = 2, producers = 4>, grid = flat<split_k = 2>>
func.func @sums(%x: tensor<?x640xi8>, %w: tensor<640x128xi8, #w>, %init: tensor<?x128xi32>) -> tensor<?x128xi32> {
  %y = linalg.matmul {nm_sparse.config = #split}
    ins(%x, %w : tensor<?x640xi8>, tensor<640x128xi8, #w>) outs(%init : tensor<?x128xi32>) -> tensor<?x128xi32>
  return %y : tensor<?x128xi32>
}

// The model prefers them from some tokens on.
func.func @chosen(%x: tensor<128x2048xi8>, %w: tensor<2048x512xi8, #w>, %init: tensor<128x512xi32>) -> tensor<128x512xi32> {
  %y = linalg.matmul ins(%x, %w : tensor<128x2048xi8>, tensor<2048x512xi8, #w>) outs(%init : tensor<128x512xi32>) -> tensor<128x512xi32>
  return %y : tensor<128x512xi32>
}
