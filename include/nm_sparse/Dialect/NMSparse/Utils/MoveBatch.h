//===- MoveBatch.h - the batch as another dimension of images ---*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_DIALECT_NMSPARSE_UTILS_MOVEBATCH_H
#define NM_SPARSE_DIALECT_NMSPARSE_UTILS_MOVEBATCH_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace mlir::nm_sparse {

/// `value` with its first dimension behind the others, and with its last one in
/// front of them: by the transposition of a matrix, or, of a batch of one
/// image, by reshapes.
Value moveBatchLast(OpBuilder &b, Location loc, Value value);
Value moveBatchFirst(OpBuilder &b, Location loc, Value value);

/// A tensor of `sizes` with the fill value of `value`, or null if that is not
/// the result of a fill.
Value createFillAs(OpBuilder &b, Location loc, Value value,
                   ArrayRef<OpFoldResult> sizes);

/// The product of `sizes`.
OpFoldResult multiplySizes(OpBuilder &b, Location loc,
                           ArrayRef<OpFoldResult> sizes);

/// A tensor.expand_shape to `sizes`.
Value expandTo(OpBuilder &b, Location loc, Value value,
               ArrayRef<ReassociationIndices> groups,
               ArrayRef<OpFoldResult> sizes);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_DIALECT_NMSPARSE_UTILS_MOVEBATCH_H
