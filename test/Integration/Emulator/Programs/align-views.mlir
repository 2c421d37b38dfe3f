// Feature-major activations that are a part of a caller's tensor, or are written
// into one: their rows are copied to where the tensor memory accelerator can
// address them.
//
// RUN: nm-run %s --entry rows --device emulate --check --storage bitmap --tokens 4096 --size 39 | FileCheck %s
// RUN: nm-run %s --entry chain --device emulate --check --tokens 2048 --size 33 | FileCheck %s
// RUN: nm-run %s --entry chain --device emulate --check --tokens 2048 --size 40 | FileCheck %s
// RUN: nm-run %s --entry shifted --device emulate --check | FileCheck %s
// RUN: nm-run %s --entry each --device emulate --check --size 39 | FileCheck %s
// CHECK: relative error {{.*}}: PASS

#w = #nm_sparse.encoding<8:16>
#xf = affine_map<(m, n, k) -> (k, m)>
#wm = affine_map<(m, n, k) -> (k, n)>
#yf = affine_map<(m, n, k) -> (n, m)>
#s = #nm_tile.schedule<tile = [40, 128, 32], product = wgmma_expand<warps = 8, segments = true>,
  transfers = {x = bulk, values = bulk, index = bulk}, pipeline = ring<stages = 2, producers = 4>>

func.func @rows(%all: tensor<300x?xf16>, %w: tensor<256x96xf16, #w>, %init: tensor<96x?xf32>) -> tensor<96x?xf32> {
  %c1 = arith.constant 1 : index
  %m = tensor.dim %all, %c1 : tensor<300x?xf16>
  %x = tensor.extract_slice %all[8, 0] [256, %m] [1, 1] : tensor<300x?xf16> to tensor<256x?xf16>
  %y = linalg.matmul indexing_maps = [#xf, #wm, #yf] ins(%x, %w : tensor<256x?xf16>, tensor<256x96xf16, #w>)
    outs(%init : tensor<96x?xf32>) -> tensor<96x?xf32>
  return %y : tensor<96x?xf32>
}

func.func @chain(%x: tensor<512x?xf16>, %v: tensor<512x256xf16, #w>, %w: tensor<256x200xf16, #w>, %h: tensor<256x?xf16>, %init: tensor<200x?xf32>) -> tensor<200x?xf32> {
  %y = linalg.matmul indexing_maps = [#xf, #wm, #yf] {nm_sparse.config = #s}
    ins(%x, %v : tensor<512x?xf16>, tensor<512x256xf16, #w>) outs(%h : tensor<256x?xf16>) -> tensor<256x?xf16>
  %z = linalg.matmul indexing_maps = [#xf, #wm, #yf] {nm_sparse.config = #s}
    ins(%y, %w : tensor<256x?xf16>, tensor<256x200xf16, #w>) outs(%init : tensor<200x?xf32>) -> tensor<200x?xf32>
  return %z : tensor<200x?xf32>
}

func.func @shifted(%all: tensor<300x64xf16>, %w: tensor<256x96xf16, #w>, %init: tensor<96x40xf32>) -> tensor<96x40xf32> {
  %x = tensor.extract_slice %all[9, 17] [256, 40] [1, 1] : tensor<300x64xf16> to tensor<256x40xf16>
  %y = linalg.matmul indexing_maps = [#xf, #wm, #yf] {nm_sparse.config = #s}
    ins(%x, %w : tensor<256x40xf16>, tensor<256x96xf16, #w>) outs(%init : tensor<96x40xf32>) -> tensor<96x40xf32>
  return %y : tensor<96x40xf32>
}

func.func @each(%all: tensor<4x64x?xf16>, %w: tensor<64x96xf16, #w>, %init: tensor<96x?xf32>) -> tensor<96x?xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  %m = tensor.dim %all, %c2 : tensor<4x64x?xf16>
  %r = scf.for %i = %c0 to %c4 step %c1 iter_args(%acc = %init) -> (tensor<96x?xf32>) {
    %x = tensor.extract_slice %all[%i, 0, 0] [1, 64, %m] [1, 1, 1] : tensor<4x64x?xf16> to tensor<64x?xf16>
    %y = linalg.matmul indexing_maps = [#xf, #wm, #yf] {nm_sparse.config = #s}
      ins(%x, %w : tensor<64x?xf16>, tensor<64x96xf16, #w>) outs(%acc : tensor<96x?xf32>) -> tensor<96x?xf32>
    scf.yield %y : tensor<96x?xf32>
  }
  return %r : tensor<96x?xf32>
}
