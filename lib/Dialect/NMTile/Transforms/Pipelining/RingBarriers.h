//===- RingBarriers.h - mbarriers between producers and consumers -*- C++ -*-=//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A ring of tiles has two mbarriers for each slot: `full`, on which producers
// arrive when the tile is there, and `empty`, on which consumers arrive when
// they have read it.
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_DIALECT_NMTILE_TRANSFORMS_PIPELINING_RINGBARRIERS_H
#define NM_SPARSE_LIB_DIALECT_NMTILE_TRANSFORMS_PIPELINING_RINGBARRIERS_H

#include "mlir/IR/Builders.h"

namespace mlir::nm_sparse {

class RingBarriers {
public:
  /// Emits at the insertion points of `b`.
  RingBarriers(OpBuilder &b, Location loc) : b(b), loc(loc) {}

  /// Allocates the mbarriers of `slots` slots and sets them up to expect the
  /// given arrivals; ends with a barrier of the CTA. `areAsync`: the tensor
  /// memory accelerator counts on them too.
  void create(int64_t slots, int64_t fullArrivals, int64_t emptyArrivals,
              bool areAsync);

  /// The number of the thread in its CTA.
  Value getThread() const { return thread; }
  /// Address of an mbarrier of `slot`.
  Value getFull(Value slot) { return getAddress(full, slot); }
  Value getEmpty(Value slot) { return getAddress(empty, slot); }

  /// Returns when the phase of the given parity of `barrier` is over.
  void emitWait(Value barrier, Value parity);

  /// The copies of each thread arrive on `full` when they are done; with
  /// `stores`, so does each warp, whose stores are done now.
  void emitProducerArrival(Value slot, bool stores);

  /// Each warp arrives on `empty`; with `hasRead`, its lanes have read the tile
  /// themselves.
  void emitConsumerArrival(Value slot, bool hasRead);

private:
  Value word(int64_t v);
  Value constant(int64_t v);
  Value getAddress(Value barriers, Value slot);
  /// Arrives on `barrier` in the first lane of each warp.
  void emitWarpArrival(Value barrier, bool orders);

  OpBuilder &b;
  Location loc;
  Value thread, full, empty;
};

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_LIB_DIALECT_NMTILE_TRANSFORMS_PIPELINING_RINGBARRIERS_H
