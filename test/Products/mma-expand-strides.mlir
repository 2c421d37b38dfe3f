// Activations that begin at odd places of their rows, that are views of larger ones
// or intermediate results with padded rows: accesses are as wide as all of them allow.

// REQUIRES: nm-slow
// RUN: nm-run %s --entry offset --device emulate --check | FileCheck %s --check-prefix=PASSED
// RUN: nm-run %s --entry offset_of_tokens --device emulate --check | FileCheck %s --check-prefix=PASSED
// RUN: nm-run %s --entry part_of_rows --device emulate --check | FileCheck %s --check-prefix=PASSED
// RUN: nm-run %s --entry every_second --device emulate --check | FileCheck %s --check-prefix=PASSED
// RUN: nm-run %s --entry batch_between --device emulate --check | FileCheck %s --check-prefix=PASSED
// RUN: nm-run %s --entry layers_of_few_tokens --device emulate --check | FileCheck %s --check-prefix=PASSED
// RUN: nm-run %s --entry layers_of_odd_rows --device emulate --check | FileCheck %s --check-prefix=PASSED
// PASSED: relative error {{.*}}: PASS

#w = #nm_sparse.encoding<8:16>
#batches = #nm_sparse.encoding<8:16, dim = 1>
#s = #nm_tile.schedule<tile = [16, 32, 64], product = mma_expand<warps = 2, shares = 2>,
  transfers = {x = direct, values = direct, index = direct}, pipeline = sequential>
#s32 = #nm_tile.schedule<tile = [32, 32, 64], product = mma_expand<warps = 2, shares = 2>,
  transfers = {x = direct, values = direct, index = direct}, pipeline = sequential>

func.func @offset(%x: tensor<16x128xf16>, %w: tensor<96x40xf16, #w>, %init: tensor<16x40xf32>) -> tensor<16x40xf32> {
  %a = tensor.extract_slice %x[0, 3][16, 96][1, 1] : tensor<16x128xf16> to tensor<16x96xf16>
  %y = linalg.matmul
    {nm_sparse.config = #s}
    ins(%a, %w : tensor<16x96xf16>, tensor<96x40xf16, #w>) outs(%init : tensor<16x40xf32>) -> tensor<16x40xf32>
  return %y : tensor<16x40xf32>
}

func.func @offset_of_tokens(%x: tensor<96x64xf16>, %w: tensor<96x40xf16, #w>, %init: tensor<32x40xf32>) -> tensor<32x40xf32> {
  %a = tensor.extract_slice %x[0, 3][96, 32][1, 1] : tensor<96x64xf16> to tensor<96x32xf16>
  %y = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (k, n)>,
      affine_map<(m, n, k) -> (m, n)>]
    {nm_sparse.config = #s}
    ins(%a, %w : tensor<96x32xf16>, tensor<96x40xf16, #w>) outs(%init : tensor<32x40xf32>) -> tensor<32x40xf32>
  return %y : tensor<32x40xf32>
}

func.func @part_of_rows(%x: tensor<16x128xf16>, %w: tensor<90x40xf16, #w>, %init: tensor<16x40xf32>) -> tensor<16x40xf32> {
  %a = tensor.extract_slice %x[0, 8][16, 90][1, 1] : tensor<16x128xf16> to tensor<16x90xf16>
  %y = linalg.matmul
    {nm_sparse.config = #s}
    ins(%a, %w : tensor<16x90xf16>, tensor<90x40xf16, #w>) outs(%init : tensor<16x40xf32>) -> tensor<16x40xf32>
  return %y : tensor<16x40xf32>
}

func.func @every_second(%x: tensor<16x192xf16>, %w: tensor<96x40xf16, #w>, %init: tensor<16x40xf32>) -> tensor<16x40xf32> {
  %a = tensor.extract_slice %x[0, 0][16, 96][1, 2] : tensor<16x192xf16> to tensor<16x96xf16>
  %y = linalg.matmul
    {nm_sparse.config = #s}
    ins(%a, %w : tensor<16x96xf16>, tensor<96x40xf16, #w>) outs(%init : tensor<16x40xf32>) -> tensor<16x40xf32>
  return %y : tensor<16x40xf32>
}

func.func @batch_between(%x: tensor<16x4x90xf16>, %w: tensor<4x90x40xf16, #batches>, %init: tensor<4x16x40xf32>) -> tensor<4x16x40xf32> {
  %y = linalg.generic {indexing_maps = [affine_map<(b, m, n, k) -> (m, b, k)>, affine_map<(b, m, n, k) -> (b, k, n)>, affine_map<(b, m, n, k) -> (b, m, n)>], iterator_types = ["parallel", "parallel", "parallel", "reduction"], nm_sparse.config = #s}
   ins(%x, %w : tensor<16x4x90xf16>, tensor<4x90x40xf16, #batches>) outs(%init : tensor<4x16x40xf32>) {
   ^bb0(%a: f16, %b: f16, %c: f32):
     %p = arith.extf %a : f16 to f32
     %q = arith.extf %b : f16 to f32
     %m = arith.mulf %p, %q : f32
     %s = arith.addf %c, %m : f32
     linalg.yield %s : f32
   } -> tensor<4x16x40xf32>
  return %y : tensor<4x16x40xf32>
}

// Rows of three tokens are padded, and lanes have four neighbours each.
func.func @layers_of_few_tokens(%x: tensor<96x3xf16>, %w: tensor<96x80xf16, #w>, %v: tensor<80x40xf16, #w>) -> tensor<40x3xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<80x3xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<80x3xf32>) -> tensor<80x3xf32>
  %y = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (k, n)>,
      affine_map<(m, n, k) -> (n, m)>]
    {nm_sparse.config = #s32}
    ins(%x, %w : tensor<96x3xf16>, tensor<96x80xf16, #w>) outs(%init : tensor<80x3xf32>) -> tensor<80x3xf32>
  %h = tensor.empty() : tensor<80x3xf16>
  %t = linalg.generic {indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (m, n)>], iterator_types = ["parallel", "parallel"]}
    ins(%y : tensor<80x3xf32>) outs(%h : tensor<80x3xf16>) {
  ^bb0(%a: f32, %out: f16):
    %r = arith.truncf %a : f32 to f16
    linalg.yield %r : f16
  } -> tensor<80x3xf16>
  %e2 = tensor.empty() : tensor<40x3xf32>
  %init2 = linalg.fill ins(%zero : f32) outs(%e2 : tensor<40x3xf32>) -> tensor<40x3xf32>
  %z = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (k, n)>,
      affine_map<(m, n, k) -> (n, m)>]
    {nm_sparse.config = #s32}
    ins(%t, %v : tensor<80x3xf16>, tensor<80x40xf16, #w>) outs(%init2 : tensor<40x3xf32>) -> tensor<40x3xf32>
  return %z : tensor<40x3xf32>
}

// The second layer has rows of 45 in places for 48.
func.func @layers_of_odd_rows(%x: tensor<5x96xf16>, %w: tensor<96x45xf16, #w>, %v: tensor<45x40xf16, #w>) -> tensor<5x40xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<5x45xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<5x45xf32>) -> tensor<5x45xf32>
  %y = linalg.matmul
    {nm_sparse.config = #s}
    ins(%x, %w : tensor<5x96xf16>, tensor<96x45xf16, #w>) outs(%init : tensor<5x45xf32>) -> tensor<5x45xf32>
  %h = tensor.empty() : tensor<5x45xf16>
  %t = linalg.generic {indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (m, n)>], iterator_types = ["parallel", "parallel"]}
    ins(%y : tensor<5x45xf32>) outs(%h : tensor<5x45xf16>) {
  ^bb0(%a: f32, %out: f16):
    %r = arith.truncf %a : f32 to f16
    linalg.yield %r : f16
  } -> tensor<5x45xf16>
  %e2 = tensor.empty() : tensor<5x40xf32>
  %init2 = linalg.fill ins(%zero : f32) outs(%e2 : tensor<5x40xf32>) -> tensor<5x40xf32>
  %z = linalg.matmul
    {nm_sparse.config = #s}
    ins(%t, %v : tensor<5x45xf16>, tensor<45x40xf16, #w>) outs(%init2 : tensor<5x40xf32>) -> tensor<5x40xf32>
  return %z : tensor<5x40xf32>
}
