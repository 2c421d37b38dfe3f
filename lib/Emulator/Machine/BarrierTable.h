//===- BarrierTable.h - barriers of CTAs and clusters -----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_EMULATOR_MACHINE_BARRIERTABLE_H
#define NM_SPARSE_LIB_EMULATOR_MACHINE_BARRIERTABLE_H

#include "Machine/Machine.h"

namespace mlir::nm_sparse::emulator {

/// Finds threads of a warp that execute different aligned operations: all of
/// them must execute the same ones in the same order.
class AlignedOrder {
public:
  /// `thread` executes its next aligned operation; a fault when another thread
  /// of its warp executed a different one in its place.
  void check(Thread &thread);

private:
  struct Warp {
    std::deque<const Site *> sites; ///< Executed by one thread at least.
    size_t forgotten = 0;           ///< Earlier ones, executed by all.
    size_t executed[warpSize] = {}; ///< By each thread.
  };
  std::vector<Warp> warps;
};

/// The reduction of a barrier over the predicates of those who arrive.
enum class BarrierReduction { None, Count, And, Or };

/// The sixteen named barriers of one CTA.
class BarrierTable {
public:
  static constexpr unsigned numBarriers = 16;

  struct Arrival {
    uint32_t id = 0;
    std::optional<uint32_t> count; ///< Threads; without: all that live.
    BarrierReduction reduction = BarrierReduction::None;
    bool predicate = false;
  };

  /// Arrives, waits for the others, and returns the result of the reduction.
  uint32_t sync(Thread &thread, const Arrival &arrival);
  /// Arrives and goes on.
  void arrive(Thread &thread, const Arrival &arrival);
  /// Barriers no longer wait for `thread`.
  void threadEnded(Thread &thread);
  /// `thread` executes an aligned operation on these or another barrier.
  void checkAligned(Thread &thread) { order.check(thread); }

private:
  struct Waiter {
    Thread &thread;
    bool isDone = false;
    uint32_t result = 0;
  };
  struct Barrier {
    uint32_t expected = 0;  ///< Threads; 0: nobody has arrived in this phase.
    bool isCounted = false; ///< A thread said how many.
    BarrierReduction reduction = BarrierReduction::None;
    std::vector<bool> arrived; ///< By thread.
    uint32_t numArrived = 0, numTrue = 0;
    Clock clock; ///< The moments that arrivals released.
    std::vector<Waiter *> waiters;
  };
  Barrier &enter(Thread &thread, const Arrival &arrival);
  bool isComplete(const CTA &cta, const Barrier &barrier) const;
  /// Ends the phase if all have arrived.
  void completeIfAll(const CTA &cta, Barrier &barrier);

  Barrier barriers[numBarriers];
  unsigned numEnded = 0;
  AlignedOrder order;
};

/// barrier.cluster.
class ClusterBarrier {
public:
  void arrive(Thread &thread, bool isRelaxed, bool isAligned);
  void wait(Thread &thread, bool isAligned);
  /// The barrier no longer waits for `thread`.
  void threadEnded(Thread &thread);

private:
  struct State {
    bool hasArrived = false; ///< And has not waited since.
    uint64_t phase = 0;      ///< In which it arrived.
  };
  State &getState(const Thread &thread);
  void completeIfAll(const Cluster &cluster);

  std::vector<State> states; ///< By thread of the cluster.
  std::vector<Thread *> waiters;
  unsigned numArrived = 0, numEnded = 0;
  uint64_t phase = 0;
  Clock arriving;  ///< Released by the arrivals of this phase.
  Clock completed; ///< Released by those of the last phase.
};

} // namespace mlir::nm_sparse::emulator

#endif // NM_SPARSE_LIB_EMULATOR_MACHINE_BARRIERTABLE_H
