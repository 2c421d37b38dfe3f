//===- WeightChecks.h - checks that storages share --------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_DIALECT_NMSPARSE_IR_WEIGHTCHECKS_H
#define NM_SPARSE_LIB_DIALECT_NMSPARSE_IR_WEIGHTCHECKS_H

#include "nm_sparse/Dialect/NMSparse/IR/NMSparse.h"

namespace mlir::nm_sparse {

/// Checks that `operand`, whose dimensions `map` says, has no extent of 0.
LogicalResult verifyNotEmpty(MatmulOp op, Value operand, AffineMap map);

/// Checks that these components have as many batch entries as x and the result,
/// where each entry has a weight of its own.
LogicalResult verifyBatch(MatmulOp op, ArrayRef<StringRef> components);

/// Checks that all places of `op` are among `legal`.
LogicalResult verifyPlaceNames(MatmulOp op, ArrayRef<StringRef> legal);

/// Checks that the weight has outputs for all of the result, of which it stores
/// `columns`.
LogicalResult verifyOutputs(MatmulOp op, int64_t columns);

/// The number of outputs of the result; it may be dynamic.
int64_t getNumOutputs(MatmulOp op);

/// Checks the positions of the outer level: their type, their rows against the
/// contraction, and their panels against `columns` outputs that are stored.
LogicalResult verifyPositions(MatmulOp op, int64_t columns);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_LIB_DIALECT_NMSPARSE_IR_WEIGHTCHECKS_H
