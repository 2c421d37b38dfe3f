// Weights of 8 bits that are expanded in registers.
//
// REQUIRES: nm-slow
// RUN: nm-opt %s --nm-sparse-to-nvvm=chip=sm_90a | FileCheck %s
// RUN: nm-run %s --entry few_tokens --device emulate --check --size 5 | FileCheck %s --check-prefix=PASSED
// RUN: nm-run %s --entry few_tokens --device emulate --check --size 19 --chip sm_89 | FileCheck %s --check-prefix=PASSED
// RUN: nm-run %s --entry odd_windows --device emulate --check --size 9 --chip sm_80 | FileCheck %s --check-prefix=EXACT
// RUN: nm-run %s --entry feature_major --device emulate --check --size 13 | FileCheck %s --check-prefix=EXACT
// RUN: nm-run %s --entry many_tokens --device emulate --check --size 70 | FileCheck %s --check-prefix=EXACT
// RUN: nm-run %s --entry many_tokens --device emulate --check --size 64 --last-first | FileCheck %s --check-prefix=EXACT
// RUN: nm-run %s --entry shares --device emulate --check --size 8 | FileCheck %s --check-prefix=EXACT
// RUN: nm-run %s --entry long_windows --device emulate --check --size 21 | FileCheck %s --check-prefix=PASSED
// RUN: nm-run %s --entry all_kept --device emulate --check --size 30 --storage bitmap | FileCheck %s --check-prefix=EXACT
// RUN: nm-run %s --entry scaled --device emulate --check --size 24 | FileCheck %s --check-prefix=PASSED
// RUN: nm-run %s --entry scaled --device emulate --check --size 200 | FileCheck %s --check-prefix=PASSED
// RUN: not nm-run %s --entry few_tokens --device emulate --size 5 --chip sm_80 2>&1 | FileCheck %s --check-prefix=OLD-CHIP
// OLD-CHIP: has a schedule with product = mma_expand, which sm_80 has no products of e4m3 for; sm_89 and newer have them
// EXACT: relative error 0.00e+00, {{.*}}: PASS
// PASSED: relative error {{.*}}: PASS

// Sixteen values and a word of bits make 32 rows. A shuffle brings the selector of
// four of them, with the bits by which the queue advances.
// CHECK-LABEL: llvm.func @few_tokens_kernel
// CHECK-COUNT-4: "ld.global.nc.L1::no_allocate.L2::128B.v4.b32
// CHECK: nvvm.shfl.sync
// CHECK: nvvm.prmt
// CHECK: "shf.r.clamp.b32
// CHECK: mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32 {$0, $1, $2, $3}, {$4, $5, $6, $7}, {$8, $9}, {$10, $11, $12, $13};
// CHECK: llvm.return
#w = #nm_sparse.encoding<8:16>
#few = #nm_tile.schedule<tile = [8, 32, 128], product = mma_expand<warps = 2, shares = 2>,
  transfers = {x = direct, values = direct, index = direct}, pipeline = sequential>
func.func @few_tokens(%x: tensor<?x330xf8E4M3FN>, %w: tensor<330x33xf8E4M3FN, #w>, %init: tensor<?x33xf32>) -> tensor<?x33xf32> {
  %y = linalg.matmul {nm_sparse.config = #few} ins(%x, %w : tensor<?x330xf8E4M3FN>, tensor<330x33xf8E4M3FN, #w>)
    outs(%init : tensor<?x33xf32>) -> tensor<?x33xf32>
  return %y : tensor<?x33xf32>
}

// Spans of three windows, whose values begin within registers.
// CHECK-LABEL: llvm.func @odd_windows_kernel
// CHECK: mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32
// CHECK: llvm.return
#odd = #nm_sparse.encoding<1:3, block = [1, 4]>
#odd_schedule = #nm_tile.schedule<tile = [16, 64, 256], product = mma_expand<warps = 4, shares = 2>,
  transfers = {x = direct, values = direct, index = direct}, pipeline = sequential, grid = flat<split_k = 3>>
func.func @odd_windows(%x: tensor<?x1000xi8>, %w: tensor<1000x70xi8, #odd>, %init: tensor<?x70xi32>) -> tensor<?x70xi32> {
  %y = linalg.matmul {nm_sparse.config = #odd_schedule} ins(%x, %w : tensor<?x1000xi8>, tensor<1000x70xi8, #odd>)
    outs(%init : tensor<?x70xi32>) -> tensor<?x70xi32>
  return %y : tensor<?x70xi32>
}

// Lanes read the rows of feature-major activations one by one.
func.func @feature_major(%x: tensor<330x?xi8>, %w: tensor<330x40xi8, #w>, %init: tensor<?x40xi32>) -> tensor<?x40xi32> {
  %y = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
    {nm_sparse.config = #few}
    ins(%x, %w : tensor<330x?xi8>, tensor<330x40xi8, #w>) outs(%init : tensor<?x40xi32>) -> tensor<?x40xi32>
  return %y : tensor<?x40xi32>
}

// Two words of values and a funnel shift: four rows of an output.
// CHECK-LABEL: llvm.func @many_tokens_kernel
// CHECK: nvvm.wgmma.wait.group.sync.aligned 1
// CHECK: llvm.intr.ctpop
// CHECK: nvvm.shfl.sync
// CHECK: llvm.intr.fshr
// CHECK: nvvm.prmt
// CHECK: nvvm.wgmma.fence.aligned
// CHECK: wgmma.mma_async.sync.aligned.m64n64k32.s32.s8.s8 {$0,{{.*}}, $31}, {$64, $65, $66, $67}, $68, p;
// CHECK: llvm.return
#bulk = #nm_tile.schedule<tile = [64, 128, 64], product = wgmma_expand<warps = 8>,
  transfers = {x = bulk, values = bulk, index = bulk}, pipeline = ring<stages = 3, producers = 4>>
func.func @many_tokens(%x: tensor<?x352xi8>, %w: tensor<352x130xi8, #w>, %init: tensor<?x130xi32>) -> tensor<?x130xi32> {
  %y = linalg.matmul {nm_sparse.config = #bulk} ins(%x, %w : tensor<?x352xi8>, tensor<352x130xi8, #w>)
    outs(%init : tensor<?x130xi32>) -> tensor<?x130xi32>
  return %y : tensor<?x130xi32>
}

// Lines of 8 tokens are half a word of a descriptor for each row.
#shared = #nm_tile.schedule<tile = [8, 64, 128], product = wgmma_expand<warps = 8, shares = 2, ahead = true>,
  transfers = {x = bulk, values = bulk, index = bulk}, pipeline = ring<stages = 2, producers = 4>>
func.func @shares(%x: tensor<?x1024xi8>, %w: tensor<1024x96xi8, #w>, %init: tensor<?x96xi32>) -> tensor<?x96xi32> {
  %y = linalg.matmul {nm_sparse.config = #shared} ins(%x, %w : tensor<?x1024xi8>, tensor<1024x96xi8, #w>)
    outs(%init : tensor<?x96xi32>) -> tensor<?x96xi32>
  return %y : tensor<?x96xi32>
}

// Values of four rows may lie in two pieces, and in which, only the bits say.
#long = #nm_sparse.encoding<5:9>
#long_schedule = #nm_tile.schedule<tile = [32, 64, 160], product = wgmma_expand<warps = 4>,
  transfers = {x = bulk, values = bulk, index = bulk}, pipeline = ring<stages = 2, producers = 4>, grid = persistent<stream_k = true>>
func.func @long_windows(%x: tensor<?x700xf8E5M2>, %w: tensor<700x100xf8E5M2, #long>, %init: tensor<?x100xf32>) -> tensor<?x100xf32> {
  %y = linalg.matmul {nm_sparse.config = #long_schedule} ins(%x, %w : tensor<?x700xf8E5M2>, tensor<700x100xf8E5M2, #long>)
    outs(%init : tensor<?x100xf32>) -> tensor<?x100xf32>
  return %y : tensor<?x100xf32>
}

#all = #nm_sparse.encoding<4:4>
func.func @all_kept(%x: tensor<?x300xi8>, %w: tensor<300x200xi8, #all>, %init: tensor<?x200xi32>) -> tensor<?x200xi32> {
  %y = linalg.matmul {nm_sparse.config = #bulk} ins(%x, %w : tensor<?x300xi8>, tensor<300x200xi8, #all>)
    outs(%init : tensor<?x200xi32>) -> tensor<?x200xi32>
  return %y : tensor<?x200xi32>
}

// The compiler's own choice: scales of tokens and outputs, results in bf16.
#scaled = #nm_sparse.encoding<16:32, dim = 1>
func.func @scaled(%x: tensor<?x512xf8E4M3FN>, %w: tensor<192x512xf8E4M3FN, #scaled>, %tokens: tensor<?xf32>, %outputs: tensor<192xf32>) -> tensor<?x192xbf16> {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %m = tensor.dim %x, %c0 : tensor<?x512xf8E4M3FN>
  %empty = tensor.empty(%m) : tensor<?x192xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<?x192xf32>) -> tensor<?x192xf32>
  %y = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>]
    ins(%x, %w : tensor<?x512xf8E4M3FN>, tensor<192x512xf8E4M3FN, #scaled>) outs(%init : tensor<?x192xf32>) -> tensor<?x192xf32>
  %place = tensor.empty(%m) : tensor<?x192xbf16>
  %r = linalg.generic
    {indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (m)>, affine_map<(m, n) -> (n)>, affine_map<(m, n) -> (m, n)>],
     iterator_types = ["parallel", "parallel"]}
    ins(%y, %tokens, %outputs : tensor<?x192xf32>, tensor<?xf32>, tensor<192xf32>) outs(%place : tensor<?x192xbf16>) {
  ^bb0(%a: f32, %s: f32, %t: f32, %o: bf16):
    %b = arith.mulf %a, %s : f32
    %c = arith.mulf %b, %t : f32
    %d = arith.truncf %c : f32 to bf16
    linalg.yield %d : bf16
  } -> tensor<?x192xbf16>
  return %r : tensor<?x192xbf16>
}
