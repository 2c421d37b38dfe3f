// CTAs share tiles of any shape: those that do not divide into accesses of 16
// bytes by all threads are exchanged element by element.

// RUN: rm -rf %t && split-file %s %t
// RUN: cd %t && nm-run --batch list.txt | FileCheck %s
// CHECK-NOT: FAIL
// CHECK-NOT: ERROR
// CHECK: 3 runs: 3 passed, 0 failed, 0 could not run
// RUN: nm-compile %t/wgmma.mlir --emit pipeline -o - | FileCheck %s --check-prefix=WGMMA
// WGMMA: gpu.alloc {{.*}} : memref<?x2x64x192xf32>
// WGMMA-NOT: nm_tile.store_part

//--- list.txt
simt.mlir --device emulate --check --size 37
mma.mlir --device emulate --check --size 205 --schedule "tile = [16, 24, 8], product = mma<warps = [1, 1]>, transfers = {x = gather, values = copy, index = resident}, pipeline = ring<stages = 2, producers = 4>, grid = persistent<stream_k = true>"
mma.mlir --device emulate --check --size 100 --schedule "tile = [48, 8, 8], product = mma<warps = [3, 1]>, transfers = {x = gather, values = copy, index = resident}, pipeline = ring<stages = 2, producers = 4>, grid = persistent<stream_k = true>"

//--- simt.mlir
#w = #nm_sparse.encoding<16:32, block = [1, 4]>
#x = affine_map<(m, n, k) -> (k, m)>
#wm = affine_map<(m, n, k) -> (k, n)>
#y = affine_map<(m, n, k) -> (m, n)>
#s = #nm_tile.schedule<tile = [8, 8, 16], product = simt<warps = [1, 1]>, transfers = {x = gather, values = copy, index = resident}, pipeline = ring<stages = 2, producers = 4>, grid = persistent<stream_k = true>>
func.func @f(%x: tensor<96x?xf32>, %w: tensor<96x264xf32, #w>,
             %init: tensor<?x264xf32>) -> tensor<?x264xf32> {
  %y = linalg.matmul indexing_maps = [#x, #wm, #y] {nm_sparse.config = #s}
      ins(%x, %w : tensor<96x?xf32>, tensor<96x264xf32, #w>)
      outs(%init : tensor<?x264xf32>) -> tensor<?x264xf32>
  return %y : tensor<?x264xf32>
}
//--- mma.mlir
#w = #nm_sparse.encoding<8:32, block = [1, 8]>
#x = affine_map<(m, n, k) -> (k, m)>
#wm = affine_map<(m, n, k) -> (k, n)>
#y = affine_map<(m, n, k) -> (n, m)>
func.func @f(%x: tensor<96x?xf16>, %w: tensor<96x264xf16, #w>,
             %init: tensor<264x?xf32>) -> tensor<264x?xf32> {
  %y = linalg.matmul indexing_maps = [#x, #wm, #y]
      ins(%x, %w : tensor<96x?xf16>, tensor<96x264xf16, #w>)
      outs(%init : tensor<264x?xf32>) -> tensor<264x?xf32>
  return %y : tensor<264x?xf32>
}
//--- wgmma.mlir
#w = #nm_sparse.encoding<8:32, block = [1, 64]>
#s = #nm_tile.schedule<tile = [64, 192, 16], product = wgmma<warps = [1, 4]>, transfers = {x = gather, values = copy, index = resident}, pipeline = ring<stages = 2, producers = 4>, grid = persistent<stream_k = true>>
func.func @f(%x: tensor<?x512xf16>, %w: tensor<512x264xf16, #w>,
             %init: tensor<?x264xf32>) -> tensor<?x264xf32> {
  %y = linalg.matmul {nm_sparse.config = #s}
      ins(%x, %w : tensor<?x512xf16>, tensor<512x264xf16, #w>)
      outs(%init : tensor<?x264xf32>) -> tensor<?x264xf32>
  return %y : tensor<?x264xf32>
}
