// No tokens: nothing is launched, be it one CTA for each tile, with a
// transposition before it and a sum behind it, or CTAs that stay and share tiles.
// RUN: nm-run %s --entry f --device emulate --check --size 0 | FileCheck %s
// RUN: nm-run %s --entry f --device emulate --check --size 0 \
// RUN:   --schedule "tile = [64, 128, 32], product = mma<warps = [2, 2]>, transfers = {x = gather, values = copy, index = resident}, pipeline = async_groups<stages = 3>, grid = flat<split_k = 2>" | FileCheck %s
// RUN: nm-run %s --entry transposed --device emulate --check --size 0 \
// RUN:   --schedule "tile = [128, 128, 32], product = wgmma<warps = [2, 4]>, transfers = {x = gather, values = bulk, index = resident}, pipeline = ring<stages = 3, producers = 4>, grid = persistent" | FileCheck %s
// RUN: nm-run %s --entry f --device emulate --check --size 0 \
// RUN:   --schedule "tile = [128, 128, 32], product = wgmma<warps = [2, 4]>, transfers = {x = gather, values = bulk, index = resident}, pipeline = ring<stages = 3, producers = 4>, grid = persistent<stream_k = true>" | FileCheck %s
// CHECK: every result is empty: nothing to compute
// CHECK: emulated 0 CTAs
// CHECK: result #0: {{.*}} PASS

// There are no more persistent CTAs than tiles.
// RUN: nm-run %s --entry f --device emulate --check --size 144 \
// RUN:   --schedule "tile = [128, 128, 32], product = wgmma<warps = [2, 4]>, transfers = {x = gather, values = bulk, index = resident}, pipeline = ring<stages = 3, producers = 4>, grid = persistent<stream_k = true>" | FileCheck %s --check-prefix=FOUR
// FOUR: emulated 4 CTAs
// FOUR: result #0: {{.*}} PASS

#w = #nm_sparse.encoding<8:32, block = [1, 128]>
func.func @f(%x: tensor<256x?xf16>, %w: tensor<256x256xf16, #w>, %init: tensor<256x?xf32>) -> tensor<256x?xf32> {
  %y = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (n, m)>]
      ins(%x, %w : tensor<256x?xf16>, tensor<256x256xf16, #w>) outs(%init : tensor<256x?xf32>) -> tensor<256x?xf32>
  return %y : tensor<256x?xf32>
}

func.func @transposed(%x: tensor<?x256xf16>, %w: tensor<256x256xf16, #w>, %init: tensor<?x256xf32>) -> tensor<?x256xf32> {
  %y = linalg.matmul ins(%x, %w : tensor<?x256xf16>, tensor<256x256xf16, #w>) outs(%init : tensor<?x256xf32>) -> tensor<?x256xf32>
  return %y : tensor<?x256xf32>
}
