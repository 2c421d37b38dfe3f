// A weight that is stored as 2:4, though its pattern is another one, whose last window
// lacks rows.
// RUN: nm-run %s --entry ragged --device emulate --check --size 300 | FileCheck %s
// RUN: nm-run %s --entry bytes --device emulate --check --size 70 | FileCheck %s
// CHECK: {{^}}  schedule #{{.*}} product = wgmma_sp
// CHECK: relative error {{.*}}: PASS

// Rows of x that are copied to where they are aligned, which the cost model would
// not do for so little.
#r = #nm_tile.schedule<tile = [64, 128, 32], product = wgmma_sp<warps = 8>,
  transfers = {x = bulk, values = bulk, index = bulk}, pipeline = ring<stages = 4, producers = 4>>
#half = #nm_sparse.encoding<1:2>
func.func @ragged(%x: tensor<?x250xbf16>, %w: tensor<250x130xbf16, #half>, %init: tensor<?x130xf32>) -> tensor<?x130xf32> {
  %y = linalg.matmul {nm_sparse.embed = #nm_sparse.encoding<2:4>, nm_sparse.config = #r}
    ins(%x, %w : tensor<?x250xbf16>, tensor<250x130xbf16, #half>) outs(%init : tensor<?x130xf32>) -> tensor<?x130xf32>
  return %y : tensor<?x130xf32>
}

#b = #nm_tile.schedule<tile = [64, 64, 64], product = wgmma_sp<warps = 4>,
  transfers = {x = bulk, values = bulk, index = bulk}, pipeline = ring<stages = 4, producers = 4>>
#eight = #nm_sparse.encoding<2:8, block = [1, 4]>
func.func @bytes(%x: tensor<?x250xi8>, %w: tensor<250x70xi8, #eight>, %init: tensor<?x70xi32>) -> tensor<?x70xi32> {
  %y = linalg.matmul {nm_sparse.embed = #nm_sparse.encoding<2:4>, nm_sparse.config = #b}
    ins(%x, %w : tensor<?x250xi8>, tensor<250x70xi8, #eight>) outs(%init : tensor<?x70xi32>) -> tensor<?x70xi32>
  return %y : tensor<?x70xi32>
}
