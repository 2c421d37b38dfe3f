// RUN: nm-opt %s --convert-sparse-tensor-to-nm-sparse --split-input-file | FileCheck %s
// RUN: nm-opt %s --convert-linalg-to-nm-sparse --split-input-file | FileCheck %s --check-prefix=FRONT

// Upstream's spellings of n:m: the dense levels may come in any order, and how
// wide upstream's own buffers would be says nothing about the pattern.

#rows = #sparse_tensor.encoding<{map = (i, j) -> (i : dense, j floordiv 4 : dense, j mod 4 : structured[2, 4])}>
#blocked = #sparse_tensor.encoding<{map = (i, j) -> (j floordiv 4 : dense, i : dense, j mod 4 : structured[2, 4])}>
#columns = #sparse_tensor.encoding<{map = (i, j) -> (j : dense, i floordiv 4 : dense, i mod 4 : structured[2, 4])}>
#transposed = #sparse_tensor.encoding<{map = (i, j) -> (i floordiv 4 : dense, j : dense, i mod 4 : structured[2, 4])}>
#wide = #sparse_tensor.encoding<{map = (i, j) -> (i : dense, j floordiv 16 : dense, j mod 16 : structured[8, 16]),
                                 posWidth = 32, crdWidth = 8}>

// CHECK-DAG: #[[$R:.+]] = #nm_sparse.encoding<2:4, dim = 1>
// CHECK-DAG: #[[$C:.+]] = #nm_sparse.encoding<2:4>
// CHECK-DAG: #[[$W:.+]] = #nm_sparse.encoding<8:16, dim = 1>
// CHECK: func private @matrices(tensor<96x64xf16, #[[$R]]>, tensor<96x64xf16, #[[$R]]>,
// CHECK-SAME: tensor<96x64xf16, #[[$C]]>, tensor<96x64xf16, #[[$C]]>, tensor<96x64xf16, #[[$W]]>)
func.func private @matrices(tensor<96x64xf16, #rows>, tensor<96x64xf16, #blocked>, tensor<96x64xf16, #columns>,
                            tensor<96x64xf16, #transposed>, tensor<96x64xf16, #wide>)

// -----

#rows = #sparse_tensor.encoding<{map = (b, i, j) -> (b : dense, i : dense, j floordiv 4 : dense, j mod 4 : structured[2, 4])}>
#columns = #sparse_tensor.encoding<{map = (b, i, j) -> (i floordiv 4 : dense, j : dense, b : dense, i mod 4 : structured[2, 4])}>

// CHECK-DAG: #[[$B2:.+]] = #nm_sparse.encoding<2:4, dim = 2>
// CHECK-DAG: #[[$B1:.+]] = #nm_sparse.encoding<2:4, dim = 1>
// CHECK: func @batches(%{{[^:]*}}: tensor<2x96x64xf32, #[[$B2]]>, %{{[^:]*}}: tensor<2x64x96xf32, #[[$B1]]>,
// FRONT-LABEL: func @batches(
func.func @batches(%v: tensor<2x96x64xf32, #rows>, %w: tensor<2x64x96xf32, #columns>,
                   %x: tensor<2x8x64xf32>, %init: tensor<2x8x96xf32>) -> tensor<2x8x96xf32> {
  // FRONT: nm_sparse.matmul #{{.*}} indexing_maps
  %y = linalg.batch_matmul ins(%x, %w : tensor<2x8x64xf32>, tensor<2x64x96xf32, #columns>)
                           outs(%init : tensor<2x8x96xf32>) -> tensor<2x8x96xf32>
  return %y : tensor<2x8x96xf32>
}

// -----

// Constants hold the type once more.

#w = #sparse_tensor.encoding<{map = (i, j) -> (i floordiv 4 : dense, j : dense, i mod 4 : structured[2, 4])}>

// CHECK: #[[$K:.+]] = #nm_sparse.encoding<2:4>
// CHECK-LABEL: func @constants
// CHECK: arith.constant dense<{{.*}}> : tensor<4x2xf16, #[[$K]]>
// CHECK: arith.constant dense<0.000000e+00> : tensor<4x2xf16, #[[$K]]>
// CHECK: arith.constant sparse<{{.*}}> : tensor<4x2xf16, #[[$K]]>
// CHECK: arith.constant dense_resource<weight> : tensor<4x2xf16, #[[$K]]>
func.func @constants() {
  %0 = arith.constant dense<[[1.0, 0.0], [2.0, 0.0], [0.0, 3.0], [0.0, 4.0]]> : tensor<4x2xf16, #w>
  %1 = arith.constant dense<0.0> : tensor<4x2xf16, #w>
  %2 = arith.constant sparse<[[0, 0], [3, 1]], [1.0, 2.0]> : tensor<4x2xf16, #w>
  %3 = arith.constant dense_resource<weight> : tensor<4x2xf16, #w>
  return
}

{-#
  dialect_resources: {
    builtin: {
      weight: "0x020000003C00000040000000000000000000"
    }
  }
#-}

// -----

// sparse_tensor.convert claims that dense data has the pattern, as tensor.cast
// does, or takes the claim back.

#w = #sparse_tensor.encoding<{map = (i, j) -> (i floordiv 4 : dense, j : dense, i mod 4 : structured[2, 4])}>

// CHECK: #[[$V:.+]] = #nm_sparse.encoding<2:4>
// CHECK-LABEL: func @convert
func.func @convert(%d: tensor<64x96xf16>, %s: tensor<64x96xf16, #w>) -> (tensor<64x96xf16, #w>, tensor<64x96xf16>) {
  // CHECK: tensor.cast %{{.*}} : tensor<64x96xf16> to tensor<64x96xf16, #[[$V]]>
  %0 = sparse_tensor.convert %d : tensor<64x96xf16> to tensor<64x96xf16, #w>
  // CHECK: tensor.cast %{{.*}} : tensor<64x96xf16, #[[$V]]> to tensor<64x96xf16>
  %1 = sparse_tensor.convert %s : tensor<64x96xf16, #w> to tensor<64x96xf16>
  return %0, %1 : tensor<64x96xf16, #w>, tensor<64x96xf16>
}
