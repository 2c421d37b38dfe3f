// A gather reads whole rows of activations, so windows of any panel are free of
// bank conflicts: where each output keeps rows of its own, and where four do.
//
// RUN: nm-run %s --entry element --device emulate --check --size 128 --bank-conflicts --json %t.json --schedule 'tile = [128, 64, 16], product = simt<warps = [2, 2]>, transfers = {x = copy, values = copy, index = resident}, pipeline = async_groups<stages = 2>' | FileCheck %s
// RUN: FileCheck %s --input-file %t.json --check-prefix=JSON
// RUN: nm-run %s --entry vector --device emulate --check --size 128 --bank-conflicts --schedule 'tile = [128, 64, 16], product = simt<warps = [2, 2]>, transfers = {x = copy, values = copy, index = resident}, pipeline = async_groups<stages = 2>' | FileCheck %s
// RUN: not nm-run %s --entry vector --device cpu --bank-conflicts 2>&1 | FileCheck %s --check-prefix=CPU
//
// CHECK: banks of shared memory, @{{.*}}_kernel
// CHECK-NEXT: cp.async {{ *}}{{[0-9]+}} accesses of warps, {{[0-9]+}} wavefronts, 0 of them for conflicts
// CHECK-NEXT: ld.shared {{ *}}{{[0-9]+}} accesses of warps, {{[0-9]+}} wavefronts, 0 of them for conflicts
// CHECK: PASS
//
// JSON: "bank_conflicts": {
// JSON-NEXT: "element_kernel": {
// JSON-NEXT: "cp.async": {
// JSON-NEXT: "accesses": {{[1-9]}}
// JSON-NEXT: "conflicts": 0,
// JSON-NEXT: "wavefronts": {{[1-9]}}
//
// CPU: --bank-conflicts are counted by the emulator, and this run is not on it: use --device emulate
#element = #nm_sparse.encoding<8:16>
#vector = #nm_sparse.encoding<8:16, block = [1, 4]>
#x = affine_map<(m, n, k) -> (k, m)>
#w = affine_map<(m, n, k) -> (k, n)>
#y = affine_map<(m, n, k) -> (n, m)>
func.func @element(%x: tensor<64x?xf32>, %w: tensor<64x64xf32, #element>, %init: tensor<64x?xf32>) -> tensor<64x?xf32> {
  %y = linalg.matmul indexing_maps = [#x, #w, #y] ins(%x, %w : tensor<64x?xf32>, tensor<64x64xf32, #element>) outs(%init : tensor<64x?xf32>) -> tensor<64x?xf32>
  return %y : tensor<64x?xf32>
}
func.func @vector(%x: tensor<64x?xf32>, %w: tensor<64x64xf32, #vector>, %init: tensor<64x?xf32>) -> tensor<64x?xf32> {
  %y = linalg.matmul indexing_maps = [#x, #w, #y] ins(%x, %w : tensor<64x?xf32>, tensor<64x64xf32, #vector>) outs(%init : tensor<64x?xf32>) -> tensor<64x?xf32>
  return %y : tensor<64x?xf32>
}
