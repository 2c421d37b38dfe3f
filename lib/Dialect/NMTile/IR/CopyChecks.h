//===- CopyChecks.h - what is legal of all copies of tiles ------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_DIALECT_NMTILE_IR_COPYCHECKS_H
#define NM_SPARSE_LIB_DIALECT_NMTILE_IR_COPYCHECKS_H

#include "mlir/IR/Operation.h"

namespace mlir::nm_sparse {

/// A destination is a static tile of rank 2, or of rank `most`; as a tensor it
/// has a result.
LogicalResult verifyDestination(Operation *op, Value dst, OpResult result,
                                int64_t most = 2);

/// The threads that share a copy are a range of the CTA's, or one of several
/// such ranges.
LogicalResult verifyThreads(Operation *op,
                            std::optional<ArrayRef<int64_t>> threads);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_LIB_DIALECT_NMTILE_IR_COPYCHECKS_H
