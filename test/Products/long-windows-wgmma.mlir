// Parts of windows of more rows than shared memory holds, for warpgroups: as a
// schedule says, and as the model chooses. Ragged contractions and outputs.
//
// RUN: nm-run %s --entry warpgroups --device emulate --check --size 70 | FileCheck %s
// RUN: nm-opt %s --nm-sparse-stage-front --nm-sparse-select-schedule=chip=sm_90a | FileCheck %s --check-prefix=CHOSEN
//
// CHECK: product = wgmma<{{.*}}index = rows
// CHECK: relative error {{.*}}: PASS
//
// CHOSEN-COUNT-2: product = wgmma<{{.*}}index = rows

#eighth = #nm_sparse.encoding<4:32, block = [64, 64]>
#xf = affine_map<(m, n, k) -> (k, m)>
#w = affine_map<(m, n, k) -> (k, n)>
#yf = affine_map<(m, n, k) -> (n, m)>

#ring = #nm_tile.schedule<tile = [64, 64, 64], product = wgmma<warps = [1, 4]>,
  transfers = {x = gather, values = bulk, index = rows}, pipeline = ring<stages = 3, producers = 4>>
func.func @warpgroups(%x: tensor<3000x?xf16>, %w: tensor<3000x100xf16, #eighth>, %init: tensor<100x?xf32>) -> tensor<100x?xf32> {
  %y = linalg.matmul indexing_maps = [#xf, #w, #yf] {nm_sparse.config = #ring}
    ins(%x, %w : tensor<3000x?xf16>, tensor<3000x100xf16, #eighth>) outs(%init : tensor<100x?xf32>) -> tensor<100x?xf32>
  return %y : tensor<100x?xf32>
}

func.func @chosen(%x: tensor<4100x2048xbf16>, %w: tensor<4100x4096xbf16, #eighth>, %init: tensor<4096x2048xf32>) -> tensor<4096x2048xf32> {
  %y = linalg.matmul indexing_maps = [#xf, #w, #yf]
    ins(%x, %w : tensor<4100x2048xbf16>, tensor<4100x4096xbf16, #eighth>) outs(%init : tensor<4096x2048xf32>) -> tensor<4096x2048xf32>
  return %y : tensor<4096x2048xf32>
}
