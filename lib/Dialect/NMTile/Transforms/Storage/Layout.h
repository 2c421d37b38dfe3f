//===- Layout.h - the layout of tensors between products --------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Changes how a tensor is laid out where only maps of its producer and its
// users and the shapes of destinations say so. A layout change exchanges one
// dimension with the last one, and so is its own inverse.
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_DIALECT_NMTILE_TRANSFORMS_STORAGE_LAYOUT_H
#define NM_SPARSE_LIB_DIALECT_NMTILE_TRANSFORMS_STORAGE_LAYOUT_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "nm_sparse/Dialect/NMSparse/IR/NMSparse.h"
#include "nm_sparse/Support/Exchange.h"

namespace mlir::nm_sparse {

/// True when `value` is computed by a product, or by an elementwise op that may
/// be fused with one.
bool isIntermediate(Value value);

/// Returns true if `exchangeDims(value, dim)` is legal. When only a user of
/// `value` is in the way, `blocker` is that user.
bool canExchangeDims(Value value, int64_t dim, Operation *&blocker);

/// Exchanges dimension `dim` of `value` with the last one, in its type, in the
/// maps of the op that computes it and in those of its users. Returns the
/// value, whose op may have been generalized.
Value exchangeDims(RewriterBase &rewriter, Value value, int64_t dim);

/// Makes `use`, an operand that a product or an elementwise op reads, read
/// `value` instead, which holds the same with `dim` exchanged with the last.
void setExchangedOperand(RewriterBase &rewriter, OpOperand &use, Value value,
                         int64_t dim);

/// The value that `value` transposes, if it exchanges `dim` with the last
/// dimension; else null.
Value getTransposedFrom(Value value, int64_t dim);

/// Transposes `value`, exchanging `dim` with the last, behind its definition.
Value createTranspose(RewriterBase &rewriter, Value value, int64_t dim);

/// Returns true if `op` exchanges the rows of B matrices with the entries of
/// the batch, B x P x F with P x B x F: --nm-sparse-fold-interleaving needs no
/// kernel for that.
bool exchangesRows(linalg::TransposeOp op);

/// The groups of a reshape between the P x B x F of such a transposition and
/// its rows, (P, B) x F.
ArrayRef<ReassociationIndices> getRowGroups();

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_LIB_DIALECT_NMTILE_TRANSFORMS_STORAGE_LAYOUT_H
