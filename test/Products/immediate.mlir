// RUN: nm-opt %s --nm-sparse-to-nvvm=chip=sm_80 | FileCheck %s
// RUN: nm-compile %s -o %t.ptx --chip sm_80 && FileCheck %s --check-prefix=PTX --input-file %t.ptx

// What is not +0 is an operand, -0 too, and nothing of the weight is read. Each of the
// two shares has two of the four rows that outputs use; row 2 is not read.
// CHECK-LABEL: llvm.func @layer_kernel(
// CHECK-NOT: tensor<
// CHECK: llvm.switch
// CHECK-COUNT-2: "ld.global.nc.b32
// CHECK: "llvm.fma"
// CHECK-COUNT-2: "ld.global.nc.b32
// CHECK: "llvm.fma"
// CHECK-NOT: "ld.global.nc
// CHECK: nvvm.barrier0

// PTX-LABEL: layer_kernel(
// PTX-DAG: fma.rn.f32 {{.*}}, 0f3FC00000,
// PTX-DAG: fma.rn.f32 {{.*}}, 0f40000000,
// PTX-DAG: fma.rn.f32 {{.*}}, 0f40400000,
// PTX-DAG: fma.rn.f32 {{.*}}, 0f80000000,
// PTX-DAG: fma.rn.f32 {{.*}}, 0fC0800000,
// PTX-DAG: bar.sync

#w = #nm_sparse.encoding<free>
#s = #nm_tile.schedule<tile = [32, 32, 256], product = immediate<warps = 2, shares = 2>,
  transfers = {x = direct, values = direct, index = direct}, pipeline = sequential>
func.func @layer(%x: tensor<5x?xf32>, %init: tensor<3x?xf32>) -> tensor<3x?xf32> {
  %w = arith.constant dense<[[1.5, 0.0, 0.0], [0.0, 2.0, -0.0], [0.0, 0.0, 0.0],
                             [3.0, 0.0, 0.0], [0.0, -4.0, 0.0]]> : tensor<5x3xf32, #w>
  %y = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (k, n)>,
                                      affine_map<(m, n, k) -> (n, m)>]
    {nm_sparse.config = #s}
    ins(%x, %w : tensor<5x?xf32>, tensor<5x3xf32, #w>) outs(%init : tensor<3x?xf32>) -> tensor<3x?xf32>
  return %y : tensor<3x?xf32>
}

// Images of a batch have planes of grids of their own, and one code.
// RUN: nm-run %s --entry images --device emulate --check --size 45 --specialize-constants | FileCheck %s --check-prefix=IMAGES
// IMAGES: product = immediate
// IMAGES: result #0: {{.*}}: PASS
func.func @images(%x: tensor<3x5x?xf32>, %init: tensor<3x3x?xf32>) -> tensor<3x3x?xf32> {
  %w = arith.constant dense<[[1.5, 0.0, 0.0], [0.0, 2.0, -0.0], [0.0, 0.0, 0.0],
                             [3.0, 0.0, 0.0], [0.0, -4.0, 0.0]]> : tensor<5x3xf32, #w>
  %y = linalg.generic
    {indexing_maps = [affine_map<(b, m, n, k) -> (b, k, m)>, affine_map<(b, m, n, k) -> (k, n)>,
                      affine_map<(b, m, n, k) -> (b, n, m)>],
     iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
    ins(%x, %w : tensor<3x5x?xf32>, tensor<5x3xf32, #w>) outs(%init : tensor<3x3x?xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %c, %p : f32
    linalg.yield %s : f32
  } -> tensor<3x3x?xf32>
  return %y : tensor<3x3x?xf32>
}
