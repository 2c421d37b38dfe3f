// Operands and results whose elements of a row are not neighbours in memory: in
// each layout, for copies and gathers, by the threads of the product and by
// producers, with a stride that is known and with one that is not.

// RUN: rm -rf %t && split-file %s %t
// RUN: cd %t && nm-run --batch list.txt | FileCheck %s
// CHECK-NOT: FAIL
// CHECK-NOT: ERROR
// CHECK: 19 runs: 19 passed, 0 failed, 0 could not run

//--- list.txt
slice.mlir --device emulate --check
slice.mlir --device emulate --check --schedule "tile = [64, 64, 16], product = mma<warps = [2, 2]>, transfers = {x = gather, values = copy, index = resident}, pipeline = async_groups<stages = 3>, grid = flat"
slice.mlir --device emulate --check --schedule "tile = [64, 64, 16], product = wgmma<warps = [1, 4]>, transfers = {x = gather, values = copy, index = resident}, pipeline = async_groups<stages = 2>, grid = flat"
slice.mlir --device emulate --check --schedule "tile = [64, 64, 16], product = wgmma<warps = [1, 4]>, transfers = {x = gather, values = bulk, index = resident}, pipeline = ring<stages = 2, producers = 4>, grid = persistent"
innermost.mlir --device emulate --check
innermost.mlir --device emulate --check --schedule "tile = [64, 64, 8], product = mma<warps = [2, 2]>, transfers = {x = gather, values = copy, index = staged}, pipeline = ring<stages = 2, producers = 4>, grid = flat"
innermost.mlir --device emulate --check --schedule "tile = [64, 64, 16], product = wgmma<warps = [1, 4]>, transfers = {x = gather, values = bulk, index = resident}, pipeline = ring<stages = 2, producers = 4>, grid = persistent"
feature.mlir --device emulate --check
feature.mlir --device emulate --check --schedule "tile = [32, 64, 8], product = simt<warps = [1, 2]>, transfers = {x = gather, values = copy, index = resident}, pipeline = async_groups<stages = 2>, grid = flat<split_k = 2>"
feature.mlir --device emulate --check --schedule "tile = [32, 64, 8], product = simt<warps = [1, 2]>, transfers = {x = gather, values = copy, index = resident}, pipeline = ring<stages = 2, producers = 4>, grid = persistent"
feature.mlir --device emulate --check --schedule "tile = [32, 64, 8], product = simt<warps = [1, 2]>, transfers = {x = copy, values = copy, index = staged}, pipeline = ring<stages = 2, producers = 4>, grid = flat"
dynamic.mlir --device emulate --check --size 1
dynamic.mlir --device emulate --check --size 2
dynamic.mlir --device emulate --check --size 2 --schedule "tile = [32, 64, 8], product = simt<warps = [1, 2]>, transfers = {x = gather, values = copy, index = resident}, pipeline = async_groups<stages = 2>, grid = flat"
dynamic.mlir --device emulate --check --size 1 --schedule "tile = [32, 64, 8], product = simt<warps = [1, 2]>, transfers = {x = gather, values = copy, index = resident}, pipeline = async_groups<stages = 2>, grid = flat"
dynamic-feature.mlir --device emulate --check --size 1
dynamic-feature.mlir --device emulate --check --size 2
dynamic-feature.mlir --device emulate --check --size 2 --schedule "tile = [32, 64, 8], product = simt<warps = [1, 2]>, transfers = {x = gather, values = copy, index = resident}, pipeline = ring<stages = 2, producers = 4>, grid = flat"
dynamic-feature.mlir --device emulate --check --size 1 --schedule "tile = [32, 64, 8], product = simt<warps = [1, 2]>, transfers = {x = gather, values = copy, index = resident}, pipeline = ring<stages = 2, producers = 4>, grid = flat"

//--- slice.mlir
// One of three interleaved tensors.
#w = #nm_sparse.encoding<8:32, block = [1, 64]>
func.func @f(%xs: tensor<50x128x3xf16>, %w: tensor<128x64xf16, #w>,
             %init: tensor<50x64xf32>) -> tensor<50x64xf32> {
  %x = tensor.extract_slice %xs[0, 0, 1] [50, 128, 1] [1, 1, 1]
    : tensor<50x128x3xf16> to tensor<50x128xf16>
  %y = linalg.matmul ins(%x, %w : tensor<50x128xf16>, tensor<128x64xf16, #w>)
                     outs(%init : tensor<50x64xf32>) -> tensor<50x64xf32>
  return %y : tensor<50x64xf32>
}
//--- innermost.mlir
// The batch lies innermost, in the result and the residual too.
#w = #nm_sparse.encoding<8:32, block = [1, 64], dim = 1>
#x = affine_map<(b, m, n, k) -> (m, k, b)>
#wm = affine_map<(b, m, n, k) -> (b, k, n)>
#ym = affine_map<(b, m, n, k) -> (m, n, b)>
#id = affine_map<(m, n, b) -> (m, n, b)>
func.func @f(%x: tensor<50x128x3xf16>, %w: tensor<3x128x64xf16, #w>,
             %residual: tensor<50x64x3xf16>) -> tensor<50x64x3xf16> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<50x64x3xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<50x64x3xf32>)
    -> tensor<50x64x3xf32>
  %y = linalg.generic {indexing_maps = [#x, #wm, #ym],
      iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<50x128x3xf16>, tensor<3x128x64xf16, #w>)
      outs(%init : tensor<50x64x3xf32>) {
  ^bb0(%a: f16, %b: f16, %c: f32):
    %a32 = arith.extf %a : f16 to f32
    %b32 = arith.extf %b : f16 to f32
    %p = arith.mulf %a32, %b32 : f32
    %s = arith.addf %c, %p : f32
    linalg.yield %s : f32
  } -> tensor<50x64x3xf32>
  %out = tensor.empty() : tensor<50x64x3xf16>
  %z = linalg.generic {indexing_maps = [#id, #id, #id],
      iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%y, %residual : tensor<50x64x3xf32>, tensor<50x64x3xf16>)
      outs(%out : tensor<50x64x3xf16>) {
  ^bb0(%a: f32, %b: f16, %c: f16):
    %b32 = arith.extf %b : f16 to f32
    %s = arith.addf %a, %b32 : f32
    %h = arith.truncf %s : f32 to f16
    linalg.yield %h : f16
  } -> tensor<50x64x3xf16>
  return %z : tensor<50x64x3xf16>
}
//--- feature.mlir
// Every other token.
#w = #nm_sparse.encoding<8:32, block = [1, 64]>
#xm = affine_map<(m, n, k) -> (k, m)>
#wm = affine_map<(m, n, k) -> (k, n)>
#ym = affine_map<(m, n, k) -> (m, n)>
func.func @f(%xs: tensor<128x80xf32>, %w: tensor<128x64xf32, #w>,
             %init: tensor<40x64xf32>) -> tensor<40x64xf32> {
  %x = tensor.extract_slice %xs[0, 0] [128, 40] [1, 2]
    : tensor<128x80xf32> to tensor<128x40xf32>
  %y = linalg.matmul indexing_maps = [#xm, #wm, #ym]
                     ins(%x, %w : tensor<128x40xf32>, tensor<128x64xf32, #w>)
                     outs(%init : tensor<40x64xf32>) -> tensor<40x64xf32>
  return %y : tensor<40x64xf32>
}
//--- dynamic.mlir
#w = #nm_sparse.encoding<8:32, block = [1, 64]>
func.func @f(%xs: tensor<40x256xf32>, %stride: index,
             %w: tensor<128x64xf32, #w>,
             %init: tensor<40x64xf32>) -> tensor<40x64xf32> {
  %x = tensor.extract_slice %xs[0, 0] [40, 128] [1, %stride]
    : tensor<40x256xf32> to tensor<40x128xf32>
  %y = linalg.matmul ins(%x, %w : tensor<40x128xf32>, tensor<128x64xf32, #w>)
                     outs(%init : tensor<40x64xf32>) -> tensor<40x64xf32>
  return %y : tensor<40x64xf32>
}
//--- dynamic-feature.mlir
#w = #nm_sparse.encoding<8:32, block = [1, 64]>
#xm = affine_map<(m, n, k) -> (k, m)>
#wm = affine_map<(m, n, k) -> (k, n)>
#ym = affine_map<(m, n, k) -> (m, n)>
func.func @f(%xs: tensor<128x80xf32>, %stride: index,
             %w: tensor<128x64xf32, #w>,
             %init: tensor<40x64xf32>) -> tensor<40x64xf32> {
  %x = tensor.extract_slice %xs[0, 0] [128, 40] [1, %stride]
    : tensor<128x80xf32> to tensor<128x40xf32>
  %y = linalg.matmul indexing_maps = [#xm, #wm, #ym]
                     ins(%x, %w : tensor<128x40xf32>, tensor<128x64xf32, #w>)
                     outs(%init : tensor<40x64xf32>) -> tensor<40x64xf32>
  return %y : tensor<40x64xf32>
}
