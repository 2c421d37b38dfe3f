//===- RingOps.cpp - rings between producers and consumers ----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Dialect/NMTile/IR/NMTile.h"

using namespace mlir;
using namespace mlir::nm_sparse;

LogicalResult RingType::verify(function_ref<InFlightDiagnostic()> emitError,
                               int64_t slots) {
  // So that a slot can be filled while another one is read.
  if (slots < 2)
    return emitError() << "a ring needs at least 2 slots, got " << slots;
  return success();
}

LogicalResult RingOp::verify() {
  constexpr uint64_t most = (1 << 20) - 1;
  for (uint64_t arrivals : {getFull(), getEmpty()})
    if (arrivals < 1 || arrivals > most)
      return emitOpError("an mbarrier expects 1 to ")
             << most << " arrivals, got " << arrivals;
  if (!getCluster())
    return success();
  auto ctas = static_cast<int64_t>(*getCluster());
  if (ctas < 2 || ctas > 16)
    return emitOpError("a cluster has 2 to 16 CTAs, got ") << ctas;
  // They copy for each other.
  if (!getBulk())
    return emitOpError("with cluster = ") << ctas << " must be bulk";
  return success();
}

LogicalResult RingAdvanceOp::verify() {
  auto steps = static_cast<int64_t>(getSteps());
  int64_t slots = getRing().getType().getSlots();
  if (steps < 1 || steps > slots)
    return emitOpError("by 1 to all ")
           << slots << " slots of the ring, got " << steps;
  return success();
}

/// An operation that only one of the roles may run.
static LogicalResult verifyRole(Operation *op, bool isProducer) {
  auto roles = op->getParentOfType<WarpSpecializeOp>();
  if (!roles || roles.isProducer(op) != isProducer)
    return op->emitOpError("must be in the ")
           << (isProducer ? "producers" : "consumers")
           << " of nm_tile.warp_specialize";
  return success();
}

LogicalResult RingWaitOp::verify() {
  return verifyRole(*this, getState() == RingState::Empty);
}

LogicalResult RingCommitOp::verify() { return verifyRole(*this, true); }

LogicalResult RingReleaseOp::verify() {
  if (failed(verifyRole(*this, false)))
    return failure();
  if (getLate() && !isa<KLoopOp>((*this)->getParentOp()))
    return emitOpError("late must be in the body of a nm_tile.k_loop, which "
                       "says whether there was a step before");
  return success();
}

LogicalResult RingDrainOp::verify() { return verifyRole(*this, false); }
