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

def NMSparsePropagateLayoutPass
    : Pass<"nm-sparse-propagate-layout", "::mlir::func::FuncOp"> {
  let summary = "keep activations feature-major between products";
  let description = [{
    Products read feature-major activations (consecutive tokens beside each
    other) faster than token-major ones. A product's layouts are its indexing
    maps, so what one product, or the elementwise ops behind it, computes for the
    next is made feature-major by changing maps and the shapes of destinations.
    Activations from elsewhere, such as a function's arguments, are transposed
    once for all products that read them. Results that leave the function keep
    their layout: the last product writes it directly.

    With `layout = auto` the cost model is asked: a chain changes where the
    products that read it are predicted to gain, and by more than a
    transposition takes where one is needed. What is compared is the objective:
    time, energy or their product. Rows of tokens that are no multiple
    of 16 bytes stay as they are. Tensor cores read activations of 8-bit elements
    token-major alone, so that feature-major ones change in the other direction, by
    the same rules. `feature-major` changes all of 16 bits and more that can be
    changed, `keep` nothing.

    An intermediate that something else reads as well (it is returned, say)
    keeps its layout, with a remark. Schedules that are there are kept.

    ```mlir
    // Before
    %h = nm_sparse.matmul ... indexing_maps = [(m, k), (k, n), (m, n)]
           ins(%x, ... : tensor<2048x4096xf16>, ...) outs(... : tensor<2048x8192xf16>)
    %y = nm_sparse.matmul ... indexing_maps = [(m, k), (k, n), (m, n)]
           ins(%h, ... : tensor<2048x8192xf16>, ...) outs(... : tensor<2048x4096xf16>)
    // After
    %t = linalg.transpose ins(%x : tensor<2048x4096xf16>)
           outs(... : tensor<4096x2048xf16>) permutation = [1, 0]
    %h = nm_sparse.matmul ... indexing_maps = [(k, m), (k, n), (n, m)]
           ins(%t, ... : tensor<4096x2048xf16>, ...) outs(... : tensor<8192x2048xf16>)
    %y = nm_sparse.matmul ... indexing_maps = [(k, m), (k, n), (m, n)]
           ins(%h, ... : tensor<8192x2048xf16>, ...) outs(... : tensor<2048x4096xf16>)
    ```
  }];
  let options = [
    Option<"chip", "chip", "std::string", /*default=*/"::mlir::nm_sparse::kDefaultChip",
           "GPU to choose for">,
    Option<"gpu", "gpu", "std::string", /*default=*/"\"\"",
           "GPU whose rates to choose by, such as h100; that of the chip">,
    Option<"tokens", "tokens", "int64_t", /*default=*/"2048",
           "number of tokens to assume where it is dynamic">,
    Option<"layout", "layout", "std::string", /*default=*/"\"auto\"",
           "auto (as the cost model says), feature-major or keep">,
    Option<"objective", "objective", "std::string", /*default=*/"\"time\"",
           "as in --nm-sparse-select-schedule">
  ];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::linalg::LinalgDialect",
                           "::mlir::nm_sparse::NMSparseDialect",
                           "::mlir::tensor::TensorDialect"];
}

#endif // NM_SPARSE_DIALECT_NMSPARSE_TRANSFORMS_LAYOUTPASSES_TD
