//===- LinalgToNMSparse.h - pack the weights of contractions ----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The step of --convert-linalg-to-nm-sparse for one contraction, for transform
// scripts and for hosts that walk a program themselves.
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_CONVERSION_LINALGTONMSPARSE_H
#define NM_SPARSE_CONVERSION_LINALGTONMSPARSE_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "nm_sparse/Dialect/NMSparse/IR/NMSparse.h"

namespace mlir::nm_sparse {

/// The weights that are packed already, so that all products of a weight share
/// one nm_sparse.pack.
using PackedWeights = llvm::DenseMap<Value, PackOp>;

/// The operations that replace a contraction.
struct PackedContraction {
  PackOp pack;
  MatmulOp matmul;
};

/// Checks that `op` is a contraction with an encoded weight for which there is
/// an nm_sparse.matmul; otherwise emits an error with the reason on `op`.
/// Changes nothing.
LogicalResult checkEncodedContraction(linalg::LinalgOp op);

/// Replaces `op` by nm_sparse.matmul of its weight, which is packed right
/// behind its definition, or as `packs` says. Transpositions and casts of the
/// weight that nothing reads any more are erased. Fails, with an error on `op`,
/// before it changes anything.
FailureOr<PackedContraction> packContraction(RewriterBase &rewriter,
                                             linalg::LinalgOp op,
                                             PackedWeights &packs);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_CONVERSION_LINALGTONMSPARSE_H
