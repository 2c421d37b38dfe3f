// Single elements in any order of outputs are those in the order of their outputs,
// which kernels multiply; packed, they are ragged panels of one output, which run
// on the CPU.
//
// RUN: nm-run %s --entry f16 --device emulate --check | FileCheck %s
// RUN: nm-run %s --entry f16 --device cpu --check | FileCheck %s
// RUN: nm-run %s --entry i8 --device emulate --check | FileCheck %s
// RUN: nm-run %s --entry constant --device emulate --check | FileCheck %s
// CHECK: PASS

#w = #nm_sparse.encoding<free, order = shuffled>
#t = #nm_sparse.encoding<free, dim = 1, order = shuffled>

func.func @f16(%x: tensor<8x64xf16>, %w: tensor<64x32xf16, #w>, %i: tensor<8x32xf32>) -> tensor<8x32xf32> {
  %y = linalg.matmul ins(%x, %w : tensor<8x64xf16>, tensor<64x32xf16, #w>) outs(%i : tensor<8x32xf32>) -> tensor<8x32xf32>
  return %y : tensor<8x32xf32>
}

func.func @i8(%x: tensor<3x64xi8>, %w: tensor<32x64xi8, #t>, %i: tensor<3x32xi32>) -> tensor<3x32xi32> {
  %y = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>]
    ins(%x, %w : tensor<3x64xi8>, tensor<32x64xi8, #t>) outs(%i : tensor<3x32xi32>) -> tensor<3x32xi32>
  return %y : tensor<3x32xi32>
}

func.func @constant(%x: tensor<2x4xf32>, %i: tensor<2x8xf32>) -> tensor<2x8xf32> {
  %w = arith.constant dense<[[1.0, 0.0, 0.0, 2.0, 0.0, 0.0, 0.0, 3.0], [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0],
                             [0.0, 4.0, 0.0, 5.0, 0.0, 0.0, 6.0, 0.0], [7.0, 0.0, 0.0, 0.0, 0.0, 0.0, 8.0, 9.0]]> : tensor<4x8xf32, #w>
  %y = linalg.matmul ins(%x, %w : tensor<2x4xf32>, tensor<4x8xf32, #w>) outs(%i : tensor<2x8xf32>) -> tensor<2x8xf32>
  return %y : tensor<2x8xf32>
}
