// A weight that is stored as 2:4, though its pattern is another one, whose last window
// lacks rows.
// RUN: nm-run %s --device emulate --check --size 300 | FileCheck %s
// CHECK: {{^}}  schedule #{{.*}} product = wgmma_sp
// CHECK: relative error {{.*}}: PASS

// Rows of x that are copied to where they are aligned, which the cost model would
// not do for so little.
#r = #nm_sparse.schedule<tile = [64, 128, 32], product = wgmma_sp<warps = 8>,
  transfers = {x = bulk, values = bulk, index = bulk}, pipeline = ring<stages = 4, producers = 4>>
#half = #nm_sparse.encoding<1:2>
func.func @ragged(%x: tensor<?x250xbf16>, %w: tensor<250x130xbf16, #half>, %init: tensor<?x130xf32>) -> tensor<?x130xf32> {
  %y = linalg.matmul {nm_sparse.embed = #nm_sparse.encoding<2:4>, nm_sparse.schedule = #r}
    ins(%x, %w : tensor<?x250xbf16>, tensor<250x130xbf16, #half>) outs(%init : tensor<?x130xf32>) -> tensor<?x130xf32>
  return %y : tensor<?x130xf32>
}
