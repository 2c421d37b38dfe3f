// REQUIRES: nm-slow
// RUN: nm-opt %s --nm-sparse-to-nvvm=chip=sm_80 | FileCheck %s
// RUN: nm-compile %s -o %t.ptx --chip sm_80 --tokens 4 && FileCheck %s --check-prefix=PTX --input-file %t.ptx
// PTX: prefetch.global.L2
// RUN: nm-run %s --entry half --device emulate --check | FileCheck %s --check-prefix=PASSED
// RUN: nm-run %s --entry half --device emulate --check --density 100 | FileCheck %s --check-prefix=PASSED
// RUN: nm-run %s --entry half --device emulate --check --density 3 | FileCheck %s --check-prefix=PASSED
// RUN: nm-run %s --entry half --device emulate --check --density 0 | FileCheck %s --check-prefix=PASSED
// RUN: nm-run %s --entry half --device cpu --check | FileCheck %s --check-prefix=PASSED
// RUN: nm-run %s --entry transposed --device emulate --check --size 3 | FileCheck %s --check-prefix=PASSED
// RUN: nm-run %s --entry transposed --device emulate --check --size 11 --density 20 | FileCheck %s --check-prefix=PASSED
// RUN: nm-run %s --entry feature_major --device emulate --check --size 6 --density 80 | FileCheck %s --check-prefix=PASSED
// RUN: nm-run %s --entry batched --device emulate --check --size 2 | FileCheck %s --check-prefix=PASSED
// RUN: nm-run %s --entry batched --device cpu --check --size 2 | FileCheck %s --check-prefix=PASSED
// RUN: nm-run %s --entry shared --device emulate --check --size 2 | FileCheck %s --check-prefix=PASSED
// RUN: nm-run %s --entry neighbours --device emulate --check --density 40 | FileCheck %s --check-prefix=PASSED
// RUN: nm-run %s --entry constant --device emulate --check | FileCheck %s --check-prefix=PASSED
// RUN: nm-run %s --entry packed_when_called --device emulate --check | FileCheck %s --check-prefix=PASSED
// PASSED: relative error {{.*}}: PASS

// Elements that are kept wherever they are: lanes read the pieces of a segment at
// once, and find four rows in 32 bits at a time. Where the rows of an output may end,
// in a loop of its own, a value without a row is multiplied by zero.
// CHECK-LABEL: llvm.func @half_kernel
// CHECK: "prefetch.global.L2 [$0];"
// CHECK-COUNT-8: "ld.global.nc.L1::no_allocate.L2::128B.v4.b32
// CHECK-NOT: "ld.global.nc.L1::no_allocate
// CHECK: llvm.intr.fshl
// CHECK-COUNT-4: "bfind.shiftamt.u32 $0, $1;"
// CHECK: "ld.global.nc.L1::no_allocate.L2::128B.v4.b32
// CHECK: llvm.intr.fshl
// CHECK: llvm.select
// CHECK: "prefetch.global.L2 [$0];"
// CHECK: llvm.return

#w = #nm_sparse.encoding<free>
#s = #nm_tile.schedule<tile = [1, 32, 512], product = dot<warps = 2>,
  transfers = {x = direct, values = direct, index = direct}, pipeline = sequential>

// Two K steps, of which each takes every other segments, and 33 outputs.
func.func @half(%x: tensor<1x601xf16>, %w: tensor<601x33xf16, #w>, %bias: tensor<33xf16>) -> tensor<1x33xf16> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<1x33xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<1x33xf32>) -> tensor<1x33xf32>
  %y = linalg.matmul {nm_sparse.config = #s} ins(%x, %w : tensor<1x601xf16>, tensor<601x33xf16, #w>)
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

// The layout of PyTorch; more tokens than 8 take several passes.
#torch = #nm_sparse.encoding<free, dim = 1>
func.func @transposed(%x: tensor<?x700xbf16>, %w: tensor<70x700xbf16, #torch>, %init: tensor<?x70xf32>) -> tensor<?x70xf32> {
  %y = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>,
                                      affine_map<(m, n, k) -> (m, n)>]
    ins(%x, %w : tensor<?x700xbf16>, tensor<70x700xbf16, #torch>) outs(%init : tensor<?x70xf32>) -> tensor<?x70xf32>
  return %y : tensor<?x70xf32>
}

// Parts of the contraction in three CTAs, with fewer segments than warps.
#parts = #nm_tile.schedule<tile = [4, 32, 512], product = dot<warps = 2>,
  transfers = {x = direct, values = direct, index = direct}, pipeline = sequential, grid = flat<split_k = 3>>
func.func @feature_major(%x: tensor<1100x?xf32>, %w: tensor<1100x32xf32, #w>, %init: tensor<32x?xf32>) -> tensor<32x?xf32> {
  %y = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (k, n)>,
                                      affine_map<(m, n, k) -> (n, m)>]
    {nm_sparse.config = #parts}
    ins(%x, %w : tensor<1100x?xf32>, tensor<1100x32xf32, #w>) outs(%init : tensor<32x?xf32>) -> tensor<32x?xf32>
  return %y : tensor<32x?xf32>
}

// Values of all entries lie one after the other, so that bits alone have a batch. A
// K step may be longer than the contraction, and than one of other weights.
#long = #nm_tile.schedule<tile = [2, 32, 8192], product = dot<warps = 3>,
  transfers = {x = direct, values = direct, index = direct}, pipeline = sequential>
#heads = #nm_sparse.encoding<free, dim = 1>
func.func @batched(%x: tensor<3x?x300xf16>, %w: tensor<3x300x40xf16, #heads>, %init: tensor<3x?x40xf32>) -> tensor<3x?x40xf32> {
  %y = linalg.batch_matmul {nm_sparse.config = #long}
    ins(%x, %w : tensor<3x?x300xf16>, tensor<3x300x40xf16, #heads>)
    outs(%init : tensor<3x?x40xf32>) -> tensor<3x?x40xf32>
  return %y : tensor<3x?x40xf32>
}

// One weight for all entries of a batch.
func.func @shared(%x: tensor<3x?x300xf16>, %w: tensor<300x40xf16, #w>, %init: tensor<3x?x40xf32>) -> tensor<3x?x40xf32> {
  %y = linalg.batch_matmul
    indexing_maps = [affine_map<(b, m, n, k) -> (b, m, k)>, affine_map<(b, m, n, k) -> (k, n)>,
                     affine_map<(b, m, n, k) -> (b, m, n)>]
    ins(%x, %w : tensor<3x?x300xf16>, tensor<300x40xf16, #w>)
    outs(%init : tensor<3x?x40xf32>) -> tensor<3x?x40xf32>
  return %y : tensor<3x?x40xf32>
}

// Activations of a row that are neighbours are read at once.
// CHECK-LABEL: llvm.func @neighbours_kernel
// CHECK: "ld.global.nc.L1::no_allocate.L2::128B.v4.b32
// CHECK: "ld.global.nc.v2.b32 {$0, $1}, [$2];"
// CHECK-NOT: "ld.global.nc.b16
// CHECK: llvm.return
#four = #nm_tile.schedule<tile = [4, 32, 512], product = dot<warps = 2>,
  transfers = {x = direct, values = direct, index = direct}, pipeline = sequential>
func.func @neighbours(%x: tensor<300x4xbf16>, %w: tensor<300x40xbf16, #w>, %init: tensor<4x40xf32>) -> tensor<4x40xf32> {
  %y = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (k, n)>,
                                      affine_map<(m, n, k) -> (m, n)>]
    {nm_sparse.config = #four}
    ins(%x, %w : tensor<300x4xbf16>, tensor<300x40xbf16, #w>) outs(%init : tensor<4x40xf32>) -> tensor<4x40xf32>
  return %y : tensor<4x40xf32>
}

func.func @constant(%x: tensor<1x4xf16>) -> tensor<1x2xf32> {
  %w = arith.constant dense<[[0.0, 1.0], [2.0, 0.0], [0.0, 5.0], [3.0, 4.0]]> : tensor<4x2xf16, #w>
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<1x2xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<1x2xf32>) -> tensor<1x2xf32>
  %y = linalg.matmul ins(%x, %w : tensor<1x4xf16>, tensor<4x2xf16, #w>) outs(%init : tensor<1x2xf32>) -> tensor<1x2xf32>
  return %y : tensor<1x2xf32>
}

// A dense argument: the runtime says how many values it keeps, then packs them.
func.func @packed_when_called(%x: tensor<1x300xf16>, %dense: tensor<300x40xf16>) -> tensor<1x40xf32> {
  %w = tensor.cast %dense : tensor<300x40xf16> to tensor<300x40xf16, #w>
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<1x40xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<1x40xf32>) -> tensor<1x40xf32>
  %y = linalg.matmul ins(%x, %w : tensor<1x300xf16>, tensor<300x40xf16, #w>) outs(%init : tensor<1x40xf32>) -> tensor<1x40xf32>
  return %y : tensor<1x40xf32>
}
