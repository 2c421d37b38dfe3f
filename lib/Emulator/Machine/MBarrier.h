//===- MBarrier.h - the mbarriers of a CTA ----------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_EMULATOR_MACHINE_MBARRIER_H
#define NM_SPARSE_LIB_EMULATOR_MACHINE_MBARRIER_H

#include "Machine/Machine.h"
#include "llvm/ADT/MapVector.h"

namespace mlir::nm_sparse::emulator {

/// One mbarrier.
struct MBarrier {
  uint64_t address = 0;     ///< In the shared memory of the CTA that holds it.
  uint32_t number = 0;      ///< In Clock::phases.
  uint32_t expected = 0;    ///< Arrivals of each phase.
  uint32_t pending = 0;     ///< Arrivals that the current phase lacks.
  int64_t pendingBytes = 0; ///< Bytes of copies that the current phase lacks.
  int64_t phase = 0;        ///< The current one: how many have completed.
  Clock arriving;           ///< Released by arrivals of the current phase.
  Clock completed;          ///< Released by those of the last phase.
  std::vector<Thread *> waiters; ///< For the end of the current phase.
  unsigned numWaiting = 0;       ///< With those that have yet to go on.
  /// By thread, the last phase whose end a try_wait was for, and how many of
  /// these gave up.
  llvm::DenseMap<AgentId, std::pair<int64_t, unsigned>> givenUp;
  /// The copies that complete on it, each at the moment after its phase.
  std::optional<AgentId> copyAgent;

  /// The initialization, which all uses must come after; those of other CTAs
  /// and of the async proxy also after a fence.
  AgentId initAgent = 0;
  Moment initMoment = 0;
  Moment fenceMoment = 0; ///< The moment of fence.mbarrier.init; 0: none.
  const Site *initSite = nullptr;

  /// The last arrivals by threads of other CTAs.
  struct Arrival {
    Moment moment;
    const Site *site;
  };
  llvm::MapVector<AgentId, Arrival> remoteArrivals;
};

/// Who uses an mbarrier.
enum class MBarrierUse { Thread, RemoteThread, AsyncProxy };

/// Those of one CTA, by address.
class MBarrierTable {
public:
  explicit MBarrierTable(CTA &cta) : cta(cta) {}

  static constexpr uint32_t maxCount = (1u << 20) - 1;

  void init(Thread &thread, uint64_t address, uint32_t count);
  void invalidate(Thread &thread, uint64_t address);
  /// The initialized mbarrier at `address`, whose initialization `thread` may
  /// rely on; a fault otherwise.
  MBarrier &get(Thread &thread, uint64_t address, MBarrierUse use);

  /// `count` arrivals that release what `thread` did, or with `isRelaxed` only
  /// what it did before its last fence.
  void arrive(Thread &thread, MBarrier &barrier, uint32_t count,
              bool isRelaxed);
  /// `count` arrivals that release `clock`.
  void arrive(Thread &thread, MBarrier &barrier, uint32_t count,
              const Clock &clock);
  /// The phase waits for one arrival more.
  void addArrival(Thread &thread, MBarrier &barrier);
  /// Each phase after this one waits for `count` arrivals less.
  void drop(Thread &thread, MBarrier &barrier, uint32_t count);
  /// The phase waits for the copies of `bytes` more.
  void expect(Thread &thread, MBarrier &barrier, int64_t bytes);
  /// `bytes` have arrived.
  void complete(Thread &thread, MBarrier &barrier, int64_t bytes);
  /// The same for the copies of `getCopyAgent()` at `getCopyMoment()`.
  void completeCopies(Thread &thread, MBarrier &barrier, int64_t bytes);
  AgentId getCopyAgent(MBarrier &barrier);
  static Moment getCopyMoment(const MBarrier &barrier) {
    return barrier.phase + 1;
  }

  /// Blocks until `phase` has completed.
  void wait(Thread &thread, MBarrier &barrier, int64_t phase, bool isRelaxed);
  /// As hardware may: gives up a few times, with false, before it waits, unless
  /// `thread` knows without a wait that `phase` has completed.
  bool tryWait(Thread &thread, MBarrier &barrier, int64_t phase,
               bool isRelaxed);
  /// Returns true if `phase` has completed; other threads run first if it has
  /// not.
  bool test(Thread &thread, MBarrier &barrier, int64_t phase, bool isRelaxed);
  /// The phase that a wait for `parity` waits for; -1 is before the first.
  int64_t getPhaseOfParity(Thread &thread, const MBarrier &barrier,
                           uint32_t parity) const;
  /// The state that an arrival returns and a wait takes.
  static uint64_t getState(const MBarrier &barrier);
  int64_t getPhaseOfState(Thread &thread, const MBarrier &barrier,
                          uint64_t state) const;

  /// Arrivals that may be later than all that `known` knows; empty when there
  /// is none.
  std::string findInFlight(const VectorClock &known) const;

  /// fence.mbarrier.init of `thread`.
  void fence(Thread &thread);

private:
  void checkPhase(Thread &thread, MBarrier &barrier) const;
  void completePhaseIfAll(Thread &thread, MBarrier &barrier);
  bool givesUp(Thread &thread, MBarrier &barrier, int64_t phase);
  bool acquireIfCompleted(Thread &thread, MBarrier &barrier, int64_t phase,
                          bool isRelaxed);
  std::string describe(const MBarrier &barrier) const;
  std::string describeWait(const MBarrier &barrier, int64_t phase) const;

  CTA &cta;
  /// References stay valid.
  std::map<uint64_t, MBarrier> barriers;
  /// The agents of the fences of each thread that initialized an mbarrier.
  llvm::DenseMap<AgentId, AgentId> fenceAgents;
};

/// The table and the address, in its CTA, that a shared address names.
std::pair<MBarrierTable *, uint64_t> findMBarriers(Thread &thread,
                                                   uint64_t sharedAddress);

} // namespace mlir::nm_sparse::emulator

#endif // NM_SPARSE_LIB_EMULATOR_MACHINE_MBARRIER_H
