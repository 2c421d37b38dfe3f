// RUN: nm-test-opt %s --convert-linalg-to-nm-sparse --nm-sparse-materialize-encodings \
// RUN:   --nm-sparse-select-storage=storage=nm_test_storages.distances | FileCheck %s
// RUN: nm-test-opt %s --nm-sparse-to-nvvm="chip=sm_90a storage=nm_test_storages.distances" | FileCheck %s --check-prefix=KERNEL
// RUN: not nm-opt %s --nm-sparse-to-nvvm="chip=sm_90a storage=nm_test_storages.distances" 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// RUN: nm-test-run %s simt 37 nm_test_storages.distances | FileCheck %s --check-prefix=PASSED
// RUN: nm-test-run %s mma 64 nm_test_storages.distances | FileCheck %s --check-prefix=PASSED
// RUN: nm-test-run %s batch 21 nm_test_storages.distances | FileCheck %s --check-prefix=PASSED
// RUN: nm-test-run %s staged 100 nm_test_storages.distances | FileCheck %s --check-prefix=PASSED

// A storage of another dialect, which the compiler knows by its interface alone:
// positions are distances. Ragged windows, panels and tiles.

// CHECK-LABEL: func.func @simt
// CHECK-SAME: tensor<44x96xf32> {nm_sparse.component = #nm_sparse.component<"values", weight = 0, of = #nm_sparse.packed<#nm_test_storages.distances<#[[W:sparse[0-9]*]]>, [83, 75], f32>>}
// CHECK-SAME: tensor<44x3xi8> {nm_sparse.component = #nm_sparse.component<"distances", weight = 0
// CHECK: nm_sparse.matmul #[[W]] storage = #nm_test_storages.distances<#[[W]]>
// KERNEL: llvm.func @simt_kernel
// PASSED: relative error {{.*}}: PASS
// UNKNOWN: cannot be stored as 'nm_test_storages.distances', which is no form of

#w = #nm_sparse.encoding<4:8, block = [1, 32]>
#simt = #nm_tile.schedule<tile = [32, 32, 8], product = simt<warps = [2, 2]>,
  transfers = {x = copy, values = copy, index = resident},
  pipeline = async_groups<stages = 3>>

func.func @simt(%x: tensor<?x83xf32>, %w: tensor<83x75xf32, #w>, %init: tensor<?x75xf32>) -> tensor<?x75xf32> {
  %y = linalg.matmul {nm_sparse.config = #simt}
    ins(%x, %w : tensor<?x83xf32>, tensor<83x75xf32, #w>)
    outs(%init : tensor<?x75xf32>) -> tensor<?x75xf32>
  return %y : tensor<?x75xf32>
}

#pairs = #nm_sparse.encoding<2:8, block = [2, 16]>
#mma = #nm_tile.schedule<tile = [64, 32, 16], product = mma<warps = [2, 2]>,
  transfers = {x = copy, values = copy, index = resident},
  pipeline = async_groups<stages = 2>>

func.func @mma(%x: tensor<?x200xf16>, %w: tensor<200x120xf16, #pairs>, %init: tensor<?x120xf32>) -> tensor<?x120xf32> {
  %y = linalg.matmul {nm_sparse.config = #mma}
    ins(%x, %w : tensor<?x200xf16>, tensor<200x120xf16, #pairs>)
    outs(%init : tensor<?x120xf32>) -> tensor<?x120xf32>
  return %y : tensor<?x120xf32>
}

#b = #nm_sparse.encoding<1:3, block = [1, 5], dim = 1>

func.func @batch(%x: tensor<3x?x50xf32>, %w: tensor<3x50x41xf32, #b>, %init: tensor<3x?x41xf32>) -> tensor<3x?x41xf32> {
  %y = linalg.batch_matmul {nm_sparse.config = #nm_tile.schedule<tile = [32, 32, 4], product = simt<warps = [1, 2]>,
      transfers = {x = copy, values = copy, index = resident}, pipeline = async_groups<stages = 2>>}
    ins(%x, %w : tensor<3x?x50xf32>, tensor<3x50x41xf32, #b>)
    outs(%init : tensor<3x?x41xf32>) -> tensor<3x?x41xf32>
  return %y : tensor<3x?x41xf32>
}

#staged = #nm_tile.schedule<tile = [32, 32, 8], product = simt<warps = [2, 2]>,
  transfers = {x = copy, values = copy, index = staged},
  pipeline = ring<stages = 2, producers = 1>>

func.func @staged(%x: tensor<?x83xf32>, %w: tensor<83x75xf32, #w>, %init: tensor<?x75xf32>) -> tensor<?x75xf32> {
  %y = linalg.matmul {nm_sparse.config = #staged}
    ins(%x, %w : tensor<?x83xf32>, tensor<83x75xf32, #w>)
    outs(%init : tensor<?x75xf32>) -> tensor<?x75xf32>
  return %y : tensor<?x75xf32>
}
