//===- RingPosition.h - where in a ring a role stands -----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A !nm_tile.ring_position in the code of a thread: the slot of the next step
// and the parity of the mbarrier's phase to wait for.
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_DIALECT_NMTILE_TRANSFORMS_PIPELINING_RINGPOSITION_H
#define NM_SPARSE_LIB_DIALECT_NMTILE_TRANSFORMS_PIPELINING_RINGPOSITION_H

#include "mlir/IR/Builders.h"

namespace mlir::nm_sparse {

/// Slot and parity, two values that a loop carries.
struct RingPosition {
  Value slot;   ///< index
  Value parity; ///< i32, 0 or 1

  /// The position `steps` steps further in a ring of `slots` >= `steps` slots.
  RingPosition advance(OpBuilder &b, Location loc, int64_t steps,
                       int64_t slots) const;
  /// The slot before this one.
  Value getPreviousSlot(OpBuilder &b, Location loc, int64_t slots) const;
};

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_LIB_DIALECT_NMTILE_TRANSFORMS_PIPELINING_RINGPOSITION_H
