//===- OrderPasses.td - outputs in another order           -*- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_DIALECT_NMSPARSE_TRANSFORMS_ORDERPASSES_TD
#define NM_SPARSE_DIALECT_NMSPARSE_TRANSFORMS_ORDERPASSES_TD

include "mlir/Pass/PassBase.td"

def NMSparseSinkPermutationsPass
    : Pass<"nm-sparse-sink-permutations", "::mlir::func::FuncOp"> {
  let summary = "restore the order of outputs behind elementwise ops";
  let description = [{
    An elementwise op that reads the result of an `nm_sparse.permute` works on the
    source of it instead, with its other operands in that order, and the
    permutation moves behind it: a bias and an activation stay where they can be
    fused with the product.

    ```mlir
    // Before
    %p = nm_sparse.permute %y, %perm dim = 1
    %r = linalg.generic ... ins(%p, %bias) ... { addf }
    // After
    %b = nm_sparse.permute inverse %bias, %perm dim = 0
    %q = linalg.generic ... ins(%y, %b) ... { addf }
    %r = nm_sparse.permute %q, %perm dim = 1
    ```
  }];
  let dependentDialects = ["::mlir::linalg::LinalgDialect",
                           "::mlir::nm_sparse::NMSparseDialect"];
}

def NMSparsePermuteWeightsPass
    : Pass<"nm-sparse-permute-weights", "::mlir::func::FuncOp"> {
  let summary = "put rows of weights into the order of the layer before";
  let description = [{
    Runs before weights are packed, behind `--nm-sparse-sink-permutations`. Where the
    result of an `nm_sparse.permute` is only read as activations by products of
    `free` weights that the program packs, the rows of these weights are put into
    the order of what is permuted, and the permutation goes: at compile time where
    both weights are constants, else when the weight is packed. Blocks of more than
    one row, and the windows of `n:m` weights, are rows in their order; there it
    stays, and a remark says so.

    ```mlir
    // Before
    %p = nm_sparse.permute %y, %perm dim = 1
    %v, %b = nm_sparse.pack %w
    %z = nm_sparse.matmul ... ins(%p, %v, %b ...)
    // After
    %o = nm_sparse.permute inverse %dense, %perm dim = 0
    %w = tensor.cast %o
    %v, %b = nm_sparse.pack %w
    %z = nm_sparse.matmul ... ins(%y, %v, %b ...)
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::nm_sparse::NMSparseDialect",
                           "::mlir::tensor::TensorDialect"];
}

#endif // NM_SPARSE_DIALECT_NMSPARSE_TRANSFORMS_ORDERPASSES_TD
