//===- Passes.td - nm_sparse conversions    ---------------*- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_CONVERSION_PASSES_TD
#define NM_SPARSE_CONVERSION_PASSES_TD

include "mlir/Pass/PassBase.td"

def ConvertLinalgToNMSparsePass : Pass<"convert-linalg-to-nm-sparse"> {
  let summary = "turn contractions with an encoded weight into nm_sparse ops";
  let description = [{
    Rewrites each linalg contraction (matmul in any transposition, batch_matmul,
    matvec, vecmat, or a generic one) that has an operand with an
    `#nm_sparse.encoding` into `nm_sparse.pack` and `nm_sparse.matmul`. A linalg
    operation with an encoded operand that is not covered is an error that names
    the operation and the reason; nothing falls back to dense code.
  }];
  let dependentDialects = ["::mlir::nm_sparse::NMSparseDialect",
                           "::mlir::tensor::TensorDialect"];
}

#endif // NM_SPARSE_CONVERSION_PASSES_TD
