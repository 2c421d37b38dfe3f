// RUN: nm-opt %s '--nm-sparse-select-schedule=gpu=h100' | FileCheck %s --check-prefix=TIME
// RUN: nm-opt %s '--nm-sparse-select-schedule=gpu=h100 objective=energy' | FileCheck %s --check-prefix=ENERGY
// RUN: nm-opt %s '--nm-sparse-select-schedule=gpu=h100 objective=edp' | FileCheck %s --check-prefix=ENERGY
// RUN: not nm-opt %s '--nm-sparse-select-schedule=chip=sm_80 objective=energy' 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// RUN: not nm-opt %s '--nm-sparse-select-schedule=objective=joules' 2>&1 | FileCheck %s --check-prefix=NAME

// Several CTAs share each tile of outputs to take the least time; what they
// exchange, and SMs with a CTA, take energy.

// TIME: #nm_tile.schedule<{{.*}} product = panel_dot<{{.*}} grid = flat<split_k = {{[248]}}>>
// ENERGY: #nm_tile.schedule<{{.*}} product = panel_dot<{{.*}} grid = flat>
// UNKNOWN: error: objective = energy, but the energy of a100 has not been measured; that of these has: h100, h200
// NAME: error: unknown objective 'joules'; legal are time, energy and edp

#xm = affine_map<(m, n, k) -> (m, k)>
#wm = affine_map<(m, n, k) -> (k, n)>
#ym = affine_map<(m, n, k) -> (m, n)>
#w128 = #nm_sparse.encoding<16:32, block = [1, 128]>

func.func @one_token(%x: tensor<1x4096xf16>, %v: tensor<2048x8192xf16>, %i: tensor<2048x64xi8>,
                     %y: tensor<1x8192xf32>) -> tensor<1x8192xf32> {
  %r = nm_sparse.matmul #w128 indexing_maps = [#xm, #wm, #ym]
    ins(%x, %v, %i : tensor<1x4096xf16>, tensor<2048x8192xf16>, tensor<2048x64xi8>)
    outs(%y : tensor<1x8192xf32>) -> tensor<1x8192xf32>
  return %r : tensor<1x8192xf32>
}
