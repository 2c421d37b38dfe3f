// REQUIRES: nm-slow
// RUN: nm-opt %s --nm-sparse-to-nvvm=chip=sm_90a | FileCheck %s
// RUN: nm-run %s --entry integers --device emulate --check --size 200 | FileCheck %s --check-prefix=PASSED
// RUN: nm-run %s --entry integers --device emulate --check --size 1 | FileCheck %s --check-prefix=PASSED
// RUN: nm-run %s --entry floats --device emulate --check --size 150 | FileCheck %s --check-prefix=PASSED
// RUN: nm-run %s --entry wide_floats --device emulate --check --size 100 | FileCheck %s --check-prefix=PASSED
// RUN: nm-run %s --entry chosen --device emulate --check | FileCheck %s --check-prefix=CHOSEN
// RUN: nm-run %s --entry windows_of_24 --device emulate --check --size 37 | FileCheck %s --check-prefix=CHOSEN
// PASSED: relative error {{.*}}: PASS
// CHOSEN: product = wgmma_rs<
// CHOSEN: relative error {{.*}}: PASS

// CHECK-LABEL: llvm.func @floats_kernel
// CHECK: wgmma.mma_async.sync.aligned.m64n128k32.f32.e4m3.e4m3 {{.*}}, p, 1, 1;
// CHECK-LABEL: llvm.func @wide_floats_kernel
// CHECK: wgmma.mma_async.sync.aligned.m64n64k32.f32.e5m2.e5m2 {{.*}}, p, 1, 1;

// Two matrices of 8 rows each have the bytes of four rows of two tokens: which of
// them is the first one depends on the lane.
// CHECK-LABEL: llvm.func @integers_tokens_{{[0-9]*}}_kernel
// CHECK: llvm.select %{{.*}} : i1, i32
// CHECK: nvvm.ldmatrix {{.*}}layout = #nvvm.mma_layout<col>, num = 4
// CHECK: nvvm.wgmma.wait.group.sync.aligned 1
// CHECK-COUNT-8: nvvm.prmt
// CHECK: nvvm.wgmma.fence.aligned
// CHECK: wgmma.mma_async.sync.aligned.m64n64k32.s32.s8.s8 {$0,{{.*}}}, {$64, $65, $66, $67}, $68, p;

#w = #nm_sparse.encoding<8:32, block = [1, 64]>
#wide = #nm_sparse.encoding<4:8, block = [2, 256]>
#rows = #nm_sparse.encoding<16:32, block = [1, 128], dim = 1>
#s = #nm_tile.schedule<tile = [256, 64, 128], product = wgmma_rs<warps = [8, 1]>,
  transfers = {x = gather, values = bulk, index = resident}, pipeline = ring<stages = 2, producers = 4>>
#scales = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (n)>, affine_map<(m, n) -> (0)>, affine_map<(m, n) -> (m, n)>]

// Scales of each output and of the tensor, two products of 64 tokens for each
// warpgroup, a last K step of fewer rows, and a last panel of fewer outputs.
func.func @integers(%x: tensor<?x1080xi8>, %w: tensor<1080x170xi8, #w>, %scale: tensor<170xf32>, %all: tensor<1xf32>,
                    %out: tensor<?x170xf16>) -> tensor<?x170xf16> {
  %zero = arith.constant 0 : i32
  %c0 = arith.constant 0 : index
  %m = tensor.dim %x, %c0 : tensor<?x1080xi8>
  %empty = tensor.empty(%m) : tensor<?x170xi32>
  %init = linalg.fill ins(%zero : i32) outs(%empty : tensor<?x170xi32>) -> tensor<?x170xi32>
  %y = linalg.matmul {nm_sparse.config = #s} ins(%x, %w : tensor<?x1080xi8>, tensor<1080x170xi8, #w>)
    outs(%init : tensor<?x170xi32>) -> tensor<?x170xi32>
  %scaled = linalg.generic {indexing_maps = #scales, iterator_types = ["parallel", "parallel"]}
    ins(%y, %scale, %all : tensor<?x170xi32>, tensor<170xf32>, tensor<1xf32>) outs(%out : tensor<?x170xf16>) {
  ^bb0(%a: i32, %b: f32, %t: f32, %o: f16):
    %c = arith.sitofp %a : i32 to f32
    %d = arith.mulf %c, %b : f32
    %e = arith.mulf %d, %t : f32
    %r = arith.truncf %e : f32 to f16
    linalg.yield %r : f16
  } -> tensor<?x170xf16>
  return %scaled : tensor<?x170xf16>
}

// Rows from a table, and a result that is written feature-major.
#table = #nm_tile.schedule<tile = [128, 128, 128], product = wgmma_rs<warps = [4, 1]>,
  transfers = {x = gather, values = bulk, index = rows}, pipeline = ring<stages = 3, producers = 4>>
func.func @floats(%x: tensor<1080x?xf8E4M3FN>, %w: tensor<300x1080xf8E4M3FN, #rows>, %init: tensor<300x?xf32>)
    -> tensor<300x?xf32> {
  %y = linalg.matmul indexing_maps = [affine_map<(n, m, k) -> (n, k)>, affine_map<(n, m, k) -> (k, m)>, affine_map<(n, m, k) -> (n, m)>]
    {nm_sparse.config = #table} ins(%w, %x : tensor<300x1080xf8E4M3FN, #rows>, tensor<1080x?xf8E4M3FN>)
    outs(%init : tensor<300x?xf32>) -> tensor<300x?xf32>
  return %y : tensor<300x?xf32>
}

// Blocks of two rows, warpgroups side by side along outputs, and CTAs that go from
// tile to tile.
#side = #nm_tile.schedule<tile = [128, 128, 128], product = wgmma_rs<warps = [4, 2]>,
  transfers = {x = gather, values = bulk, index = resident}, pipeline = ring<stages = 2, producers = 4>, grid = persistent>
func.func @wide_floats(%x: tensor<?x640xf8E5M2>, %w: tensor<640x512xf8E5M2, #wide>, %init: tensor<?x512xf32>) -> tensor<?x512xf32> {
  %y = linalg.matmul {nm_sparse.config = #side} ins(%x, %w : tensor<?x640xf8E5M2>, tensor<640x512xf8E5M2, #wide>)
    outs(%init : tensor<?x512xf32>) -> tensor<?x512xf32>
  return %y : tensor<?x512xf32>
}

func.func @chosen(%x: tensor<300x2048xf8E4M3FN>, %w: tensor<256x2048xf8E4M3FN, #rows>, %out: tensor<300x256xbf16>) -> tensor<300x256xbf16> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<300x256xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<300x256xf32>) -> tensor<300x256xf32>
  %y = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>]
    ins(%x, %w : tensor<300x2048xf8E4M3FN>, tensor<256x2048xf8E4M3FN, #rows>) outs(%init : tensor<300x256xf32>) -> tensor<300x256xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (m, n)>], iterator_types = ["parallel", "parallel"]}
    ins(%y : tensor<300x256xf32>) outs(%out : tensor<300x256xbf16>) {
  ^bb0(%a: f32, %o: bf16):
    %c = arith.truncf %a : f32 to bf16
    linalg.yield %c : bf16
  } -> tensor<300x256xbf16>
  return %r : tensor<300x256xbf16>
}

// Steps of 128 kept rows are no whole windows: a table says where the rows are.
#odd = #nm_sparse.encoding<24:32, block = [1, 64], dim = 1>
func.func @windows_of_24(%x: tensor<?x1000xf8E5M2>, %w: tensor<200x1000xf8E5M2, #odd>, %init: tensor<?x200xf32>) -> tensor<?x200xf32> {
  %y = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>]
    ins(%x, %w : tensor<?x1000xf8E5M2>, tensor<200x1000xf8E5M2, #odd>) outs(%init : tensor<?x200xf32>) -> tensor<?x200xf32>
  return %y : tensor<?x200xf32>
}
