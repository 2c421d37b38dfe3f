// A file from before bytecode had a version, when schedules were attributes of
// nm_sparse: its product has the schedule as its config.

// RUN: FileCheck %s --check-prefix=OLD --input-file=%S/Inputs/schedule-version-0.mlirbc
// RUN: nm-opt %S/Inputs/schedule-version-0.mlirbc | FileCheck %s
// RUN: nm-opt %s | FileCheck %s
// OLD: schedule<tile = [32, 64, 16]

#x = affine_map<(m, n, k) -> (m, k)>
#w = affine_map<(m, n, k) -> (k, n)>
#y = affine_map<(m, n, k) -> (m, n)>
#s = #nm_tile.schedule<tile = [32, 64, 16], product = mma<warps = [2, 2]>, transfers = {x = gather, values = copy, index = resident}, pipeline = async_groups<stages = 3>>

// CHECK: #[[S:.*]] = #nm_tile.schedule<tile = [32, 64, 16], product = mma<warps = [2, 2]>
// CHECK-LABEL: func.func @product
// CHECK: nm_sparse.matmul {{.*}} config = #[[S]]
func.func @product(%x: tensor<64x128xf16>, %v: tensor<64x64xf16>, %i: tensor<64x1xi8>, %o: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %r = nm_sparse.matmul #nm_sparse.encoding<2:4, block = [1, 64]> indexing_maps = [#x, #w, #y] config = #s
    ins(%x, %v, %i : tensor<64x128xf16>, tensor<64x64xf16>, tensor<64x1xi8>)
    outs(%o : tensor<64x64xf32>) -> tensor<64x64xf32>
  return %r : tensor<64x64xf32>
}
