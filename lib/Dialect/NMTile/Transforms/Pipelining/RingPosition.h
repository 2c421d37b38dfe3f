//===- RingPosition.h - where in a ring a K loop stands ---------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each loop over the stages of a ring carries the slot of its next step and the
// parity of the mbarrier's phase to wait for. Producer warps may take the steps
// in turns.
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_DIALECT_NMTILE_TRANSFORMS_PIPELINING_RINGPOSITION_H
#define NM_SPARSE_LIB_DIALECT_NMTILE_TRANSFORMS_PIPELINING_RINGPOSITION_H

#include "mlir/IR/Builders.h"
#include "nm_sparse/Dialect/NMTile/IR/NMTile.h"

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

/// How many steps the producer warps of `product` copy at a time: 1, all warps
/// the same, or as many as there are warps, each a step of its own.
int64_t getProducerTurns(TileMatmulOp product, int64_t slots);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_LIB_DIALECT_NMTILE_TRANSFORMS_PIPELINING_RINGPOSITION_H
