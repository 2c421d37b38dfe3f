// RUN: nm-opt %s --nm-sparse-select-schedule=chip=sm_100a | FileCheck %s --check-prefix=COPIERS
// RUN: nm-opt %s --nm-sparse-select-schedule=chip=sm_120a | FileCheck %s --check-prefix=ALONE
// RUN: nm-opt %s --nm-sparse-select-schedule=chip=sm_80 | FileCheck %s --check-prefix=ALONE

// Large products by mma.sync have warps that only copy, where registers can be
// moved between warps and shared memory holds three steps of 64 rows. Those leave
// the values to the tensor memory accelerator.

// COPIERS: schedule<{{.*}} product = mma<{{.*}} transfers = {x = gather, values = bulk, index = {{[a-z]+}}}, pipeline = ring<stages = {{[0-9]+}}, producers = {{[0-9]+}}>
// ALONE: schedule<{{.*}} product = mma<{{.*}} pipeline = async_groups
// ALONE-NOT: producers
func.func @large(%x: tensor<4096x4096xf16>, %v: tensor<1024x4096xf16>, %i: tensor<1024x32xi8>,
                 %init: tensor<4096x4096xf32>) -> tensor<4096x4096xf32> {
  %0 = nm_sparse.matmul #nm_sparse.encoding<8:32, block = [1, 128]>
    indexing_maps = [affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (k, n)>,
                     affine_map<(m, n, k) -> (n, m)>]
    ins(%x, %v, %i : tensor<4096x4096xf16>, tensor<1024x4096xf16>, tensor<1024x32xi8>)
    outs(%init : tensor<4096x4096xf32>) -> tensor<4096x4096xf32>
  return %0 : tensor<4096x4096xf32>
}
