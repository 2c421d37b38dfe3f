//===- RoleSetup.h - what stands before a K loop, by role -------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// When the warps of a launch are split into producers and consumers, what
// stands before the K loop is sorted: some of it only one role runs.
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_DIALECT_NMTILE_TRANSFORMS_PIPELINING_ROLESETUP_H
#define NM_SPARSE_LIB_DIALECT_NMTILE_TRANSFORMS_PIPELINING_ROLESETUP_H

#include "nm_sparse/Dialect/NMTile/IR/NMTile.h"

namespace mlir::nm_sparse {

/// Operations before a K loop that one role runs alone, each list in their
/// order; what is in none of them both roles run.
struct RoleSetup {
  /// Copies into tiles that the copies of the loop read.
  SmallVector<Operation *> producerCopies;
  /// All other copies.
  SmallVector<Operation *> consumerCopies;
  /// Operations that touch memory, or depend on one that does.
  SmallVector<Operation *> consumerRest;
};

/// Sorts what stands before `loop` in its block; an error on an op that touches
/// memory and decides what the loop copies.
FailureOr<RoleSetup> sortRoleSetup(KLoopOp loop);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_LIB_DIALECT_NMTILE_TRANSFORMS_PIPELINING_ROLESETUP_H
