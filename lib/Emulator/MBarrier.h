//===- MBarrier.h - the mbarriers of a CTA --------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_EMULATOR_MBARRIER_H
#define NM_SPARSE_LIB_EMULATOR_MBARRIER_H

#include "Machine.h"

namespace mlir::nm_sparse::emulator {

/// One mbarrier: a phase completes when no arrivals and no bytes are pending.
struct MBarrier {
  uint64_t address = 0;  ///< Shared address in the CTA that holds it.
  uint32_t expected = 0; ///< Arrivals of each phase.
  uint32_t pending = 0;  ///< Arrivals that the current phase lacks.
  int64_t pendingBytes = 0;
  uint64_t phase = 0; ///< Phases completed.
  Clock arriving;     ///< What arrivals of the current phase released.
  Clock completed;    ///< What the last completed phase released.
  AgentId copyAgent;  ///< Copies that complete on it, at moment phase + 1.
  /// Whether the initialization was made visible to the async proxy and the
  /// cluster (fence.mbarrier_init or fence.proxy.async).
  bool isFenced = false;
  AgentId initAgent;
  Moment initMoment;
  struct Waiter {
    Thread *thread;
    uint64_t phase; ///< Waits for the end of this phase.
  };
  std::vector<Waiter> waiters;
};

/// Those of one CTA, by address.
class MBarrierTable {
public:
  explicit MBarrierTable(CTA &cta) : cta(cta) {}

  void init(Thread &thread, uint64_t address, uint32_t count);
  void invalidate(Thread &thread, uint64_t address);
  /// The initialized mbarrier at `address`, whose initialization is visible to
  /// `thread`; a fault otherwise. `proxy`: it will be used by the async proxy.
  MBarrier &get(Thread &thread, uint64_t address, bool isAsyncProxy = false);
  /// `count` arrivals that release `clock`.
  void arrive(Thread &thread, MBarrier &barrier, uint32_t count,
              const Clock &clock);
  void expect(Thread &thread, MBarrier &barrier, int64_t bytes);
  /// Bytes of an asynchronous copy that arrived and release `clock`.
  void complete(Thread &thread, MBarrier &barrier, int64_t bytes,
                const Clock &clock);
  /// Whether the phase of `parity` has completed; acquires it if so.
  bool test(Thread &thread, MBarrier &barrier, bool parity);
  /// Blocks until it has.
  void wait(Thread &thread, MBarrier &barrier, bool parity);
  /// All of the CTA's mbarriers that `thread` initialized are visible to the
  /// async proxy and the cluster.
  void fence(Thread &thread);

private:
  void completePhase(MBarrier &barrier);
  std::string describe(const MBarrier &barrier) const;

  CTA &cta;
  llvm::DenseMap<uint64_t, MBarrier> barriers;
};

/// The table and the address, in its block, that a shared address names.
std::pair<MBarrierTable *, uint64_t> findMBarriers(Thread &thread,
                                                   uint64_t sharedAddress);

} // namespace mlir::nm_sparse::emulator

#endif // NM_SPARSE_LIB_EMULATOR_MBARRIER_H
