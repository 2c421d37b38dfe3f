// A layer that pruning emptied is a legal weight, however it is stored.
//
// RUN: nm-run %s --entry f16 --device emulate --check | FileCheck %s
// RUN: nm-run %s --entry f16 --device emulate --check --specialize-constants | FileCheck %s
// RUN: nm-run %s --entry f16 --device cpu --check | FileCheck %s
// RUN: nm-run %s --entry elements --device emulate --check | FileCheck %s
// RUN: nm-run %s --entry elements --device emulate --check --specialize-constants | FileCheck %s
// RUN: nm-run %s --entry ragged --device emulate --check | FileCheck %s
// RUN: nm-run %s --entry ragged --device cpu --check | FileCheck %s
// RUN: nm-run %s --entry short --device emulate --check | FileCheck %s
// RUN: nm-run %s --entry short --device emulate --check --specialize-constants | FileCheck %s
// RUN: nm-run %s --entry shuffled --device emulate --check --specialize-constants | FileCheck %s
// CHECK: relative error {{0.00e[+]00|[1-9].[0-9]*e-[01][0-9]}}{{.*}}: PASS

func.func @f16(%x: tensor<8x64xf16>, %i: tensor<8x64xf32>) -> tensor<8x64xf32> {
  %w = arith.constant dense<0.0> : tensor<64x64xf16, #nm_sparse.encoding<2:4>>
  %y = linalg.matmul ins(%x, %w : tensor<8x64xf16>, tensor<64x64xf16, #nm_sparse.encoding<2:4>>) outs(%i : tensor<8x64xf32>) -> tensor<8x64xf32>
  return %y : tensor<8x64xf32>
}

func.func @elements(%x: tensor<3x64xf32>, %i: tensor<3x40xf32>) -> tensor<3x40xf32> {
  %w = arith.constant dense<0.0> : tensor<64x40xf32, #nm_sparse.encoding<free>>
  %y = linalg.matmul ins(%x, %w : tensor<3x64xf32>, tensor<64x40xf32, #nm_sparse.encoding<free>>) outs(%i : tensor<3x40xf32>) -> tensor<3x40xf32>
  return %y : tensor<3x40xf32>
}

func.func @ragged(%x: tensor<32x64xf16>, %i: tensor<32x64xf32>) -> tensor<32x64xf32> {
  %w = arith.constant dense<0.0> : tensor<64x64xf16, #nm_sparse.encoding<free, block = [1, 32]>>
  %y = linalg.matmul ins(%x, %w : tensor<32x64xf16>, tensor<64x64xf16, #nm_sparse.encoding<free, block = [1, 32]>>) outs(%i : tensor<32x64xf32>) -> tensor<32x64xf32>
  return %y : tensor<32x64xf32>
}

func.func @short(%x: tensor<4x1xf32>, %i: tensor<4x5xf32>) -> tensor<4x5xf32> {
  %w = arith.constant dense<0.0> : tensor<1x5xf32, #nm_sparse.encoding<free, block = [1, 16]>>
  %y = linalg.matmul ins(%x, %w : tensor<4x1xf32>, tensor<1x5xf32, #nm_sparse.encoding<free, block = [1, 16]>>) outs(%i : tensor<4x5xf32>) -> tensor<4x5xf32>
  return %y : tensor<4x5xf32>
}

func.func @shuffled(%x: tensor<8x64xf16>, %i: tensor<8x64xf32>) -> tensor<8x64xf32> {
  %w = arith.constant dense<0.0> : tensor<64x64xf16, #nm_sparse.encoding<2:4, block = [1, 32], order = shuffled>>
  %y = linalg.matmul ins(%x, %w : tensor<8x64xf16>, tensor<64x64xf16, #nm_sparse.encoding<2:4, block = [1, 32], order = shuffled>>) outs(%i : tensor<8x64xf32>) -> tensor<8x64xf32>
  return %y : tensor<8x64xf32>
}
