// Two GPUs of one chip differ in their rates, not in what they run.
// RUN: nm-opt %s --nm-sparse-select-schedule="chip=sm_90a gpu=h100" | FileCheck %s
// RUN: nm-opt %s --nm-sparse-to-nvvm="chip=sm_90a gpu=h100 tokens=64" | FileCheck %s --check-prefix=NVVM
// RUN: not nm-opt %s --nm-sparse-select-schedule="chip=sm_90a gpu=a100" 2>&1 | FileCheck %s --check-prefix=OTHER
// RUN: nm-compile %s --candidates 1 --gpu h100 > %t.h100
// RUN: nm-compile %s --candidates 1 --gpu h200 > %t.h200
// RUN: nm-compile %s --candidates 1 --chip sm_90a > %t.chip
// RUN: not diff %t.h100 %t.h200
// RUN: diff %t.h200 %t.chip
// RUN: nm-compile %s -o - --gpu a100 --tokens 64 | FileCheck %s --check-prefix=A100

// CHECK: config =
// NVVM: #nvvm.target<{{.*}}chip = "sm_90a"
// OTHER: error: unknown GPU 'a100' of sm_90a; known are h200 h100
// A100: .target sm_80

#w = #nm_sparse.encoding<8:32, block = [1, 128]>
func.func @f(%x: tensor<?x4096xf16>, %v: tensor<1024x4096xf16>, %i: tensor<1024x32xi8>,
             %y: tensor<?x4096xf32>) -> tensor<?x4096xf32> {
  %r = nm_sparse.matmul #w
    indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
    ins(%x, %v, %i : tensor<?x4096xf16>, tensor<1024x4096xf16>, tensor<1024x32xi8>)
    outs(%y : tensor<?x4096xf32>) -> tensor<?x4096xf32>
  return %r : tensor<?x4096xf32>
}
