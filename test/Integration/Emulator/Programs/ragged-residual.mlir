// Results of tiles that end in the middle of a tile, with a residual: of outputs in
// pairs, warps transpose the words that exist; of an odd number each element is
// tested.

// RUN: nm-run %s --device emulate --chip sm_90a --entry pairs --check --seed 5 | FileCheck %s
// RUN: nm-run %s --device emulate --chip sm_90a --entry odd --check --seed 6 | FileCheck %s
// RUN: nm-run %s --device emulate --chip sm_90a --entry wide_residual --check --seed 7 | FileCheck %s
// RUN: nm-run %s --device emulate --chip sm_90a --entry small_tile --check --seed 8 | FileCheck %s
// CHECK: PASS

#w = #nm_sparse.encoding<2:4>
#large = #nm_tile.schedule<tile = [128, 128, 32], product = wgmma_sp<warps = 8, ahead = true>, transfers = {x = bulk, values = bulk, index = bulk}, pipeline = ring<stages = 3, producers = 4>, grid = persistent>
#small = #nm_tile.schedule<tile = [48, 128, 64], product = wgmma_sp<warps = 8>, transfers = {x = bulk, values = bulk, index = bulk}, pipeline = ring<stages = 3, producers = 4>, grid = flat>
#same = affine_map<(m, n) -> (m, n)>
#row = affine_map<(m, n) -> (n)>

func.func @pairs(%x: tensor<200x128xf16>, %w: tensor<128x144xf16, #w>, %r: tensor<200x144xf16>, %b: tensor<144xf32>) -> tensor<200x144xf16> {
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<200x144xf32>
  %i = linalg.fill ins(%z : f32) outs(%e : tensor<200x144xf32>) -> tensor<200x144xf32>
  %y = linalg.matmul {nm_sparse.config = #large} ins(%x, %w : tensor<200x128xf16>, tensor<128x144xf16, #w>)
    outs(%i : tensor<200x144xf32>) -> tensor<200x144xf32>
  %o = tensor.empty() : tensor<200x144xf16>
  %g = linalg.generic {indexing_maps = [#same, #row, #same, #same], iterator_types = ["parallel", "parallel"]}
    ins(%y, %b, %r : tensor<200x144xf32>, tensor<144xf32>, tensor<200x144xf16>) outs(%o : tensor<200x144xf16>) {
  ^bb0(%p: f32, %q: f32, %t: f16, %u: f16):
    %1 = arith.addf %p, %q : f32
    %2 = arith.extf %t : f16 to f32
    %3 = arith.addf %1, %2 : f32
    %4 = arith.maximumf %3, %z : f32
    %5 = arith.truncf %4 : f32 to f16
    linalg.yield %5 : f16
  } -> tensor<200x144xf16>
  return %g : tensor<200x144xf16>
}

func.func @odd(%x: tensor<200x128xf16>, %w: tensor<128x131xf16, #w>, %r: tensor<200x131xf16>, %b: tensor<131xf32>) -> tensor<200x131xf16> {
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<200x131xf32>
  %i = linalg.fill ins(%z : f32) outs(%e : tensor<200x131xf32>) -> tensor<200x131xf32>
  %y = linalg.matmul {nm_sparse.config = #large} ins(%x, %w : tensor<200x128xf16>, tensor<128x131xf16, #w>)
    outs(%i : tensor<200x131xf32>) -> tensor<200x131xf32>
  %o = tensor.empty() : tensor<200x131xf16>
  %g = linalg.generic {indexing_maps = [#same, #row, #same, #same], iterator_types = ["parallel", "parallel"]}
    ins(%y, %b, %r : tensor<200x131xf32>, tensor<131xf32>, tensor<200x131xf16>) outs(%o : tensor<200x131xf16>) {
  ^bb0(%p: f32, %q: f32, %t: f16, %u: f16):
    %1 = arith.addf %p, %q : f32
    %2 = arith.extf %t : f16 to f32
    %3 = arith.addf %1, %2 : f32
    %4 = arith.maximumf %3, %z : f32
    %5 = arith.truncf %4 : f32 to f16
    linalg.yield %5 : f16
  } -> tensor<200x131xf16>
  return %g : tensor<200x131xf16>
}

func.func @wide_residual(%x: tensor<200x128xf16>, %w: tensor<128x144xf16, #w>, %r: tensor<200x144xf32>, %b: tensor<144xf32>) -> tensor<200x144xf16> {
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<200x144xf32>
  %i = linalg.fill ins(%z : f32) outs(%e : tensor<200x144xf32>) -> tensor<200x144xf32>
  %y = linalg.matmul {nm_sparse.config = #large} ins(%x, %w : tensor<200x128xf16>, tensor<128x144xf16, #w>)
    outs(%i : tensor<200x144xf32>) -> tensor<200x144xf32>
  %o = tensor.empty() : tensor<200x144xf16>
  %g = linalg.generic {indexing_maps = [#same, #row, #same, #same], iterator_types = ["parallel", "parallel"]}
    ins(%y, %b, %r : tensor<200x144xf32>, tensor<144xf32>, tensor<200x144xf32>) outs(%o : tensor<200x144xf16>) {
  ^bb0(%p: f32, %q: f32, %t: f32, %u: f16):
    %1 = arith.addf %p, %q : f32
    %3 = arith.addf %1, %t : f32
    %4 = arith.maximumf %3, %z : f32
    %5 = arith.truncf %4 : f32 to f16
    linalg.yield %5 : f16
  } -> tensor<200x144xf16>
  return %g : tensor<200x144xf16>
}

func.func @small_tile(%x: tensor<200x128xf16>, %w: tensor<128x250xf16, #w>, %r: tensor<200x250xf16>, %b: tensor<250xf32>) -> tensor<200x250xf16> {
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<200x250xf32>
  %i = linalg.fill ins(%z : f32) outs(%e : tensor<200x250xf32>) -> tensor<200x250xf32>
  %y = linalg.matmul {nm_sparse.config = #small} ins(%x, %w : tensor<200x128xf16>, tensor<128x250xf16, #w>)
    outs(%i : tensor<200x250xf32>) -> tensor<200x250xf32>
  %o = tensor.empty() : tensor<200x250xf16>
  %g = linalg.generic {indexing_maps = [#same, #row, #same, #same], iterator_types = ["parallel", "parallel"]}
    ins(%y, %b, %r : tensor<200x250xf32>, tensor<250xf32>, tensor<200x250xf16>) outs(%o : tensor<200x250xf16>) {
  ^bb0(%p: f32, %q: f32, %t: f16, %u: f16):
    %1 = arith.addf %p, %q : f32
    %2 = arith.extf %t : f16 to f32
    %3 = arith.addf %1, %2 : f32
    %4 = arith.maximumf %3, %z : f32
    %5 = arith.truncf %4 : f32 to f16
    linalg.yield %5 : f16
  } -> tensor<200x250xf16>
  return %g : tensor<200x250xf16>
}
