// RUN: nm-opt %s --convert-linalg-to-nm-sparse --nm-sparse-materialize-encodings | FileCheck %s

// A constant: blocks that hold anything but +0 are kept, and panels filled up to 64
// rows, with no row behind the 3 of the weight.
// CHECK-LABEL: func.func @constant
// CHECK-DAG: arith.constant dense<{{.*}}> : tensor<128x2xf32>
// CHECK-DAG: arith.constant dense<{{.*}}> : tensor<128x1xi32>
// CHECK-DAG: arith.constant dense<{{\[\[}}0, 64, 0, 0], [64, 64, 1, 1]]> : tensor<2x4xi32>
#c = #nm_sparse.encoding<free, block = [1, 2]>
func.func @constant(%x: tensor<8x3xf32>, %init: tensor<8x4xf32>) -> tensor<8x4xf32> {
  %w = arith.constant dense<[[1., 2., 0., 0.], [0., 0., 0., 5.], [3., 0., 0., 0.]]> : tensor<3x4xf32, #c>
  %y = linalg.matmul ins(%x, %w : tensor<8x3xf32>, tensor<3x4xf32, #c>) outs(%init : tensor<8x4xf32>) -> tensor<8x4xf32>
  return %y : tensor<8x4xf32>
}
