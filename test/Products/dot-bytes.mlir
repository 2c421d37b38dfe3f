// Weights of 8 bits: their sums, and what comes of these.
//
// REQUIRES: nm-slow
// RUN: nm-opt %s --nm-sparse-to-nvvm=chip=sm_90a | FileCheck %s
// RUN: nm-run %s --entry integers --device emulate --check --size 3 | FileCheck %s --check-prefix=EXACT
// RUN: nm-run %s --entry integers --device emulate --check --size 70 --chip sm_80 | FileCheck %s --check-prefix=EXACT
// RUN: nm-run %s --entry scaled --device emulate --check --size 20 | FileCheck %s --check-prefix=PASSED
// RUN: nm-run %s --entry floats --device emulate --check --size 9 | FileCheck %s --check-prefix=PASSED
// RUN: nm-run %s --entry floats --device emulate --check --size 1 --chip sm_80 | FileCheck %s --check-prefix=PASSED
// RUN: nm-run %s --entry unstructured --device emulate --check --size 2 | FileCheck %s --check-prefix=EXACT
// RUN: nm-run %s --entry unstructured --device cpu --check --size 2 | FileCheck %s --check-prefix=EXACT
// RUN: nm-run %s --entry parts --device emulate --check --size 5 | FileCheck %s --check-prefix=PASSED
// RUN: nm-run %s --entry packed --device emulate --pack device --check --size 6 | FileCheck %s --check-prefix=PASSED
// RUN: nm-run %s --entry packed --device emulate --pack host --check --size 6 | FileCheck %s --check-prefix=PASSED
// RUN: nm-run %s --entry shifted_tokens --device emulate --check | FileCheck %s --check-prefix=PASSED
// RUN: nm-run %s --entry requantized --device emulate --check --size 7 | FileCheck %s --check-prefix=PASSED
// RUN: nm-run %s --entry requantized --device cpu --check --size 7 | FileCheck %s --check-prefix=PASSED
// RUN: nm-run %s --entry long_windows --device emulate --check --size 3 --storage auto | FileCheck %s --check-prefix=EXACT
// EXACT: relative error 0.00e+00, {{.*}}: PASS
// PASSED: relative error {{.*}}: PASS

// Sixteen values at once, of which one at a time is multiplied in i32.
// CHECK-LABEL: llvm.func @integers_kernel
// CHECK: ld.global.nc.L1::no_allocate.L2::128B.v4.b32
// CHECK: llvm.sext %{{.*}} : i8 to i32
// CHECK: llvm.mul %{{.*}} : i32
// CHECK: llvm.return
#w = #nm_sparse.encoding<8:16>
#s = #nm_tile.schedule<tile = [2, 32, 64], product = dot<warps = 4>,
  transfers = {x = direct, values = direct, index = direct}, pipeline = sequential>
func.func @integers(%x: tensor<?x410xi8>, %w: tensor<410x70xi8, #nm_sparse.encoding<2:5>>, %init: tensor<?x70xi32>) -> tensor<?x70xi32> {
  %y = linalg.matmul {nm_sparse.config = #s} ins(%x, %w : tensor<?x410xi8>, tensor<410x70xi8, #nm_sparse.encoding<2:5>>)
    outs(%init : tensor<?x70xi32>) -> tensor<?x70xi32>
  return %y : tensor<?x70xi32>
}

// A factor for each output, fused.
func.func @scaled(%x: tensor<256x?xi8>, %w: tensor<256x96xi8, #w>, %scale: tensor<96xf32>, %out: tensor<?x96xbf16>) -> tensor<?x96xbf16> {
  %zero = arith.constant 0 : i32
  %c1 = arith.constant 1 : index
  %m = tensor.dim %x, %c1 : tensor<256x?xi8>
  %empty = tensor.empty(%m) : tensor<?x96xi32>
  %init = linalg.fill ins(%zero : i32) outs(%empty : tensor<?x96xi32>) -> tensor<?x96xi32>
  %y = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
    ins(%x, %w : tensor<256x?xi8>, tensor<256x96xi8, #w>) outs(%init : tensor<?x96xi32>) -> tensor<?x96xi32>
  %r = linalg.generic
    {indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (n)>, affine_map<(m, n) -> (m, n)>],
     iterator_types = ["parallel", "parallel"]}
    ins(%y, %scale : tensor<?x96xi32>, tensor<96xf32>) outs(%out : tensor<?x96xbf16>) {
  ^bb0(%a: i32, %s: f32, %o: bf16):
    %b = arith.sitofp %a : i32 to f32
    %c = arith.mulf %b, %s : f32
    %d = arith.truncf %c : f32 to bf16
    linalg.yield %d : bf16
  } -> tensor<?x96xbf16>
  return %r : tensor<?x96xbf16>
}

// A result that is rounded to the type of the operands.
// CHECK-LABEL: llvm.func @floats_kernel
// CHECK: llvm.fpext %{{.*}} : f16 to f32
// CHECK: llvm.call_intrinsic "llvm.fma"
// CHECK-NOT: f8E4M3FN
// CHECK: llvm.return
func.func @floats(%x: tensor<?x256xf8E4M3FN>, %w: tensor<256x96xf8E4M3FN, #nm_sparse.encoding<4:16, block = [1, 32]>>, %init: tensor<?x96xf8E4M3FN>) -> tensor<?x96xf8E4M3FN> {
  %y = linalg.matmul {nm_sparse.config = #s} ins(%x, %w : tensor<?x256xf8E4M3FN>, tensor<256x96xf8E4M3FN, #nm_sparse.encoding<4:16, block = [1, 32]>>)
    outs(%init : tensor<?x96xf8E4M3FN>) -> tensor<?x96xf8E4M3FN>
  return %y : tensor<?x96xf8E4M3FN>
}

func.func @unstructured(%x: tensor<?x300xi8>, %w: tensor<300x70xi8, #nm_sparse.encoding<free>>, %init: tensor<?x70xi32>) -> tensor<?x70xi32> {
  %y = linalg.matmul ins(%x, %w : tensor<?x300xi8>, tensor<300x70xi8, #nm_sparse.encoding<free>>)
    outs(%init : tensor<?x70xi32>) -> tensor<?x70xi32>
  return %y : tensor<?x70xi32>
}

// CTAs that share a contraction.
#split = #nm_tile.schedule<tile = [4, 32, 64], product = dot<warps = 2>,
  transfers = {x = direct, values = direct, index = direct}, pipeline = sequential, grid = flat<split_k = 3>>
func.func @parts(%x: tensor<?x512xf8E5M2>, %w: tensor<512x96xf8E5M2, #w>, %init: tensor<96x?xf32>) -> tensor<96x?xf32> {
  %y = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (n, m)>]
    {nm_sparse.config = #split}
    ins(%x, %w : tensor<?x512xf8E5M2>, tensor<512x96xf8E5M2, #w>) outs(%init : tensor<96x?xf32>) -> tensor<96x?xf32>
  return %y : tensor<96x?xf32>
}

// Pruned and packed when the program runs.
#rows = #nm_sparse.encoding<8:16, dim = 1>
func.func @packed(%x: tensor<?x200xf8E4M3FN>, %dense: tensor<100x200xf8E4M3FN>, %init: tensor<?x100xf32>) -> tensor<?x100xf32> {
  %w = nm_sparse.prune #rows %dense : tensor<100x200xf8E4M3FN> to tensor<100x200xf8E4M3FN, #rows>
  %y = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>]
    ins(%x, %w : tensor<?x200xf8E4M3FN>, tensor<100x200xf8E4M3FN, #rows>) outs(%init : tensor<?x100xf32>) -> tensor<?x100xf32>
  return %y : tensor<?x100xf32>
}

// Tokens of a row that lie together, but not at multiples of their size.
#four = #nm_tile.schedule<tile = [4, 32, 256], product = dot<warps = 4>,
  transfers = {x = direct, values = direct, index = direct}, pipeline = sequential>
func.func @shifted_tokens(%all: tensor<5000xf8E4M3FN>, %w: tensor<512x40xf8E4M3FN, #nm_sparse.encoding<free>>, %init: tensor<4x40xf32>) -> tensor<4x40xf32> {
  %s = tensor.extract_slice %all[3] [2048] [1] : tensor<5000xf8E4M3FN> to tensor<2048xf8E4M3FN>
  %x = tensor.expand_shape %s [[0, 1]] output_shape [512, 4] : tensor<2048xf8E4M3FN> into tensor<512x4xf8E4M3FN>
  %y = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
    {nm_sparse.config = #four}
    ins(%x, %w : tensor<512x4xf8E4M3FN>, tensor<512x40xf8E4M3FN, #nm_sparse.encoding<free>>) outs(%init : tensor<4x40xf32>) -> tensor<4x40xf32>
  return %y : tensor<4x40xf32>
}

// Arithmetic on 8-bit floats is that on f32.
func.func @requantized(%x: tensor<?x256xi8>, %w: tensor<256x96xi8, #w>, %out: tensor<?x96xf8E5M2>) -> tensor<?x96xf8E5M2> {
  %zero = arith.constant 0 : i32
  %c0 = arith.constant 0 : index
  %m = tensor.dim %x, %c0 : tensor<?x256xi8>
  %empty = tensor.empty(%m) : tensor<?x96xi32>
  %init = linalg.fill ins(%zero : i32) outs(%empty : tensor<?x96xi32>) -> tensor<?x96xi32>
  %y = linalg.matmul ins(%x, %w : tensor<?x256xi8>, tensor<256x96xi8, #w>) outs(%init : tensor<?x96xi32>) -> tensor<?x96xi32>
  %r = linalg.generic
    {indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (m, n)>], iterator_types = ["parallel", "parallel"]}
    ins(%y : tensor<?x96xi32>) outs(%out : tensor<?x96xf8E5M2>) {
  ^bb0(%a: i32, %o: f8E5M2):
    %c1024 = arith.constant 1024 : i32
    %least = arith.constant -2.0 : f8E5M2
    %b = arith.divsi %a, %c1024 : i32
    %c = arith.sitofp %b : i32 to f8E5M2
    %d = arith.maximumf %c, %least : f8E5M2
    linalg.yield %d : f8E5M2
  } -> tensor<?x96xf8E5M2>
  return %r : tensor<?x96xf8E5M2>
}

// Windows for which weights of other types would not be bitmaps.
func.func @long_windows(%x: tensor<?x2048xi8>, %w: tensor<2048x40xi8, #nm_sparse.encoding<1:2048>>, %init: tensor<?x40xi32>) -> tensor<?x40xi32> {
  %y = linalg.matmul ins(%x, %w : tensor<?x2048xi8>, tensor<2048x40xi8, #nm_sparse.encoding<1:2048>>) outs(%init : tensor<?x40xi32>) -> tensor<?x40xi32>
  return %y : tensor<?x40xi32>
}
