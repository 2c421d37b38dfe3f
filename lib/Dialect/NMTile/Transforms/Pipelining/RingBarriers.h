//===- RingBarriers.h - mbarriers between producers and consumers -*- C++ -*-=//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A ring in the code of a thread: two mbarriers for each slot, `full`, on which
// producers arrive when the tile is there, and `empty`, on which consumers
// arrive when they have read it.
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_DIALECT_NMTILE_TRANSFORMS_PIPELINING_RINGBARRIERS_H
#define NM_SPARSE_LIB_DIALECT_NMTILE_TRANSFORMS_PIPELINING_RINGBARRIERS_H

#include "mlir/IR/Builders.h"
#include "nm_sparse/Dialect/NMTile/IR/NMTile.h"

namespace mlir::nm_sparse {

class RingBarriers {
public:
  /// Emits at the insertion points of `b`, first the mbarriers of `ring`, set
  /// up to expect its arrivals, and a barrier of the CTA, or of its cluster.
  RingBarriers(OpBuilder &b, RingOp ring);

  int64_t getSlots() const { return slots; }
  /// CTAs that copy for each other.
  int64_t getCluster() const { return cluster; }
  /// Address of an mbarrier of `slot`.
  Value getFull(Value slot) { return getAddress(full, slot); }
  Value getEmpty(Value slot) { return getAddress(empty, slot); }

  /// Returns when the phase of the given parity of `barrier` is over.
  void emitWait(Value barrier, Value parity);

  /// The copies of each thread arrive on `full` when they are done; with
  /// `stores`, so does each warp, whose stores are done now.
  void emitProducerArrival(Value slot, bool stores);

  /// Each warp arrives on `empty`; with `hasRead`, its lanes have read the tile
  /// themselves. (What products of warpgroups read in the async proxy is the
  /// warp's to wait for.)
  void emitConsumerArrival(Value slot, bool hasRead);

  /// All threads of the cluster meet; with `orders`, whatever each did comes
  /// before what others do then.
  void emitClusterBarrier(bool orders);

private:
  Value word(int64_t v);
  Value constant(int64_t v);
  Value getAddress(Value barriers, Value slot);
  /// Arrives on `barrier` in the first lane of each warp.
  void emitWarpArrival(Value barrier, bool orders);
  void emitClusterArrival(Value barrier, bool orders);

  OpBuilder &b;
  Location loc;
  int64_t slots, cluster;
  /// The number of the thread in its CTA, and the mbarriers.
  Value thread, full, empty;
};

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_LIB_DIALECT_NMTILE_TRANSFORMS_PIPELINING_RINGBARRIERS_H
