//===- LayoutPasses.td - where activations lie side by side *- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_DIALECT_NMSPARSE_TRANSFORMS_LAYOUTPASSES_TD
#define NM_SPARSE_DIALECT_NMSPARSE_TRANSFORMS_LAYOUTPASSES_TD

include "mlir/Pass/PassBase.td"

def NMSparseSinkTransposesPass
    : Pass<"nm-sparse-sink-transposes", "::mlir::func::FuncOp"> {
  let summary = "compute elementwise ops in the layout of their convolution";
  let description = [{
    A convolution of images with their batch first is computed with the batch last,
    between transpositions. Each elementwise op that reads the transposed result of a
    product, or of what is computed elementwise from one, reads it before the
    transposition, which moves behind it. Another operand is transposed back, or not
    at all where it was transposed in the same way. `nm_sparse.patches` of a
    transposed image read what it was before, if its batch is last there. Readers of
    a tensor share a transposition. Functions without `nm_sparse.patches` stay.

    `generic(transpose(%y), %bias)` becomes `transpose(generic(%y, %bias))`.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::linalg::LinalgDialect",
                           "::mlir::tensor::TensorDialect"];
}

def NMSparseFlattenTransposesPass
    : Pass<"nm-sparse-flatten-transposes", "::mlir::func::FuncOp"> {
  let summary = "transpose images as matrices";
  let description = [{
    In functions with `nm_sparse.patches`. A `linalg.transpose` of four dimensions of
    which some stay together becomes one of fewer dimensions, between reshapes, where
    a kernel can do that: it exchanges the last of two or three dimensions with
    another one.

    ```mlir
    // Before
    %t = linalg.transpose ins(%y : tensor<8x4x4x2xf16>) ... permutation = [3, 1, 2, 0]
    // After
    %c = tensor.collapse_shape %y [[0], [1, 2], [3]] ... into tensor<8x16x2xf16>
    %e = linalg.transpose ins(%c : tensor<8x16x2xf16>) ... permutation = [2, 1, 0]
    %t = tensor.expand_shape %e [[0], [1, 2], [3]] ... into tensor<2x4x4x8xf16>
    ```
  }];
  let dependentDialects = ["::mlir::linalg::LinalgDialect",
                           "::mlir::tensor::TensorDialect"];
}

def NMSparseSinkReshapesPass
    : Pass<"nm-sparse-sink-reshapes", "::mlir::func::FuncOp"> {
  let summary = "compute elementwise ops in the dimensions of their product";
  let description = [{
    The layers that frameworks export for activations of batch x sequence x
    features multiply a collapsed tensor, expand the result, and add bias and
    activation to that. A reshape ends the fusion with the product. So each
    elementwise op that reads a `tensor.expand_shape` of a product, or of what is
    computed elementwise from one, is collapsed to the dimensions before the
    reshape, which moves behind it. Other operands are collapsed, too. At the next
    product's `tensor.collapse_shape` both vanish. A bias that is broadcast for
    such an op, or another operand that is transposed, is read as it is, with
    another indexing map.

    ```mlir
    // Before
    %p = nm_sparse.matmul ... -> tensor<?x96xf32>
    %e = tensor.expand_shape %p [[0, 1], [2]] ... into tensor<?x?x96xf32>
    %y = linalg.generic ... ins(%e, %bias : tensor<?x?x96xf32>, tensor<96xf32>)
    // After
    %p = nm_sparse.matmul ... -> tensor<?x96xf32>
    %a = linalg.generic ... ins(%p, %bias : tensor<?x96xf32>, tensor<96xf32>)
    %y = tensor.expand_shape %a [[0, 1], [2]] ... into tensor<?x?x96xf32>
    ```
  }];
  let dependentDialects = ["::mlir::affine::AffineDialect",
                           "::mlir::arith::ArithDialect",
                           "::mlir::linalg::LinalgDialect",
                           "::mlir::tensor::TensorDialect"];
}

#endif // NM_SPARSE_DIALECT_NMSPARSE_TRANSFORMS_LAYOUTPASSES_TD
