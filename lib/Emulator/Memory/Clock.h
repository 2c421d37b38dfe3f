//===- Clock.h - what happened before what ----------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Vector clocks over the agents of a cluster. An agent is whatever accesses
// memory in an order of its own: a thread, the cp.async copies of a thread, the
// warpgroup products in flight, the copies that complete on one mbarrier. A
// clock says for each agent up to which of its moments everything is known to
// have happened. See docs/Emulator.md.
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_EMULATOR_MEMORY_CLOCK_H
#define NM_SPARSE_LIB_EMULATOR_MEMORY_CLOCK_H

#include "mlir/Support/LLVM.h"
#include "llvm/ADT/SmallVector.h"
#include <map>

namespace mlir::nm_sparse::emulator {

using AgentId = uint32_t;
/// A moment of an agent; the first is 1, and 0 is before everything.
using Moment = uint32_t;

class VectorClock {
public:
  Moment get(AgentId agent) const {
    return agent < moments.size() ? moments[agent] : 0;
  }
  void advance(AgentId agent, Moment moment) {
    if (agent >= moments.size())
      moments.resize(agent + 1, 0);
    if (moments[agent] < moment)
      moments[agent] = moment;
  }
  /// Knows from now on what either knew.
  void join(const VectorClock &other) {
    if (moments.size() < other.moments.size())
      moments.resize(other.moments.size(), 0);
    // Pointers, since the check of each index keeps the loop from being
    // vectorized; joins take a fifth of an emulation.
    Moment *into = moments.data();
    const Moment *from = other.moments.data();
    for (size_t i = 0, e = other.moments.size(); i < e; ++i)
      into[i] = into[i] < from[i] ? from[i] : into[i];
  }
  /// Knows from now on only what both knew.
  void meet(const VectorClock &other) {
    if (moments.size() > other.moments.size())
      moments.resize(other.moments.size());
    Moment *into = moments.data();
    const Moment *from = other.moments.data();
    for (size_t i = 0, e = moments.size(); i < e; ++i)
      into[i] = from[i] < into[i] ? from[i] : into[i];
  }
  /// Returns true if `other` knows all that this one does.
  bool isKnownTo(const VectorClock &other) const {
    for (size_t i = 0, e = moments.size(); i < e; ++i)
      if (moments[i] > other.get(i))
        return false;
    return true;
  }
  void clear() { moments.clear(); }

private:
  SmallVector<Moment, 0> moments;
};

/// The known moments of other clusters, by the number of the cluster.
using ForeignClock = std::map<unsigned, VectorClock>;

inline void joinForeign(ForeignClock &clock, const ForeignClock &other) {
  for (const auto &[cluster, moments] : other)
    clock[cluster].join(moments);
}

/// The events that happened before, as each kind of observer sees them.
struct Clock {
  VectorClock generic;
  /// The view of the async proxy, never ahead of `generic`: writes through the
  /// generic proxy (stores, cp.async) become known to it (bulk copies,
  /// warpgroup products) by fence.proxy.async only, anywhere on the path from
  /// the write.
  VectorClock async;
  /// The events that fences have made fit to be published to other clusters.
  VectorClock gpu;
  /// How many phases of each mbarrier, by its number, have ended. That is an
  /// order in time, which also holds where no memory is released.
  VectorClock phases;
  ForeignClock others;

  void advance(AgentId agent, Moment moment) {
    generic.advance(agent, moment);
    async.advance(agent, moment);
  }
  void join(const Clock &other) {
    generic.join(other.generic);
    async.join(other.async);
    gpu.join(other.gpu);
    phases.join(other.phases);
    joinForeign(others, other.others);
  }
  /// Forgets the other clusters: products read no global memory.
  void meet(const Clock &other) {
    generic.meet(other.generic);
    async.meet(other.async);
    gpu.meet(other.gpu);
    phases.meet(other.phases);
    others.clear();
  }
  void clear() {
    generic.clear();
    async.clear();
    gpu.clear();
    phases.clear();
    others.clear();
  }
};

} // namespace mlir::nm_sparse::emulator

#endif // NM_SPARSE_LIB_EMULATOR_MEMORY_CLOCK_H
