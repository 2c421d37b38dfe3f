//===- Machine.h - threads, CTAs and clusters -----------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A cluster (one CTA, where a launch has no clusters) is the unit of
// execution: its threads are fibers that one thread of the host runs in turn,
// each until it blocks. Clusters run in parallel over the cores of the host.
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_EMULATOR_MACHINE_MACHINE_H
#define NM_SPARSE_LIB_EMULATOR_MACHINE_MACHINE_H

#include "Machine/Fiber.h"
#include "Machine/GlobalOrder.h"
#include "Machine/TensorMapOrder.h"
#include "Memory/Clock.h"
#include "Memory/Memory.h"
#include "Memory/Site.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SetVector.h"
#include <deque>
#include <mutex>

namespace mlir::nm_sparse::emulator {

class CTA;
class BankCounter;
class BankTable;
class BarrierTable;
class ClusterBarrier;
class MBarrierTable;
class CollectiveTable;
class WarpgroupTable;

constexpr unsigned warpSize = 32;
constexpr unsigned warpgroupSize = 128;

/// One kernel launch.
struct Launch {
  const char *kernelName = "";
  std::string chip; ///< sm_90a
  unsigned cluster[3] = {1, 1, 1};
  unsigned grid[3] = {1, 1, 1};
  unsigned block[3] = {1, 1, 1};
  unsigned staticSharedBytes = 0, dynamicSharedBytes = 0;
  unsigned granule = 1; ///< Divides every access to memory.
  /// Registers a thread may have at the start; 0: unknown.
  unsigned maxRegisters = 0;
  /// Runs the kernel as the calling fiber's thread.
  std::function<void()> function;
  GlobalMemory *memory = nullptr;
  GlobalOrder *order = nullptr; ///< Created by runLaunch for this launch.
  BankTable *banks = nullptr;   ///< Null: conflicts are not counted.

  unsigned getThreads() const { return block[0] * block[1] * block[2]; }
  unsigned getClusterSize() const {
    return cluster[0] * cluster[1] * cluster[2];
  }
};

/// One thread of a CTA.
class Thread {
public:
  Thread(CTA &cta, unsigned id);

  CTA &cta;
  const unsigned id; ///< Linear, in its CTA.
  unsigned getLane() const { return id % warpSize; }
  unsigned getWarp() const { return id / warpSize; }
  unsigned getWarpgroup() const { return id / warpgroupSize; }
  /// x, y or z of its position.
  unsigned getPosition(unsigned axis) const;

  const Site *site = nullptr; ///< The operation that it executes.

  //===--- Order ----------------------------------------------------------===//
  Clock known; ///< The events before its next operation.
  AgentId getAgent() const;
  Moment getMoment() const { return known.generic.get(getAgent()); }
  /// Lets `clock` know all that this thread knows and did; what the thread does
  /// next is not part of that.
  void release(Clock &clock);
  /// Knows from now on what `clock` knows.
  void acquire(const Clock &clock) { known.join(clock); }
  /// fence.proxy.async: what it knows, and did, the async proxy sees.
  void fenceProxy();
  /// fence.acq_rel.gpu: what it knows can be published, what it has seen is
  /// known.
  void fenceGPU();
  /// Published by other clusters at addresses that a strong read of this thread
  /// found, and not known before a fence.
  ForeignClock seen;
  /// Where those reads were. Compiled code reads after it has told the
  /// emulator, so what another host thread published in between is looked up at
  /// the fence.
  llvm::SmallSetVector<uint64_t, 4> observed;

  //===--- Memory ---------------------------------------------------------===//
  /// Checks and records an access by a load, a store or an atomic operation of
  /// this thread, and returns where it is in the host's memory.
  char *access(uint64_t address, AddressSpace space, uint32_t bytes,
               uint32_t alignment, AccessKind kind);
  /// The same for an access that something else does on behalf of this thread:
  /// `agent` at `moment`, after all that `after` knows.
  char *accessAs(AgentId agent, Moment moment, bool isAsyncProxy,
                 const Clock &after, uint64_t address, AddressSpace space,
                 uint32_t bytes, uint32_t alignment, AccessKind kind);
  /// The shared address of `address`, which must point into shared memory.
  uint64_t toShared(uint64_t address, AddressSpace space);

  /// The clock that relaxed arrivals of this thread release: all that happened
  /// before its last fence.
  Clock fenced;
  /// The clock that relaxed waits of this thread learnt; the thread knows it
  /// from its next fence on.
  Clock awaited;

  /// The agent and the moment of the cp.async copies of this thread.
  AgentId getCopyAgent();
  Moment copiesIssued = 0;
  /// `copiesIssued` at each commit that was not waited for.
  std::deque<Moment> copyGroups;

  /// The same for its bulk copies out of shared memory: the agents of their
  /// reads and of their writes. None before the first.
  std::optional<AgentId> bulkReader, bulkWriter;
  Moment bulkCopiesIssued = 0;
  std::deque<Moment> bulkGroups;

  //===--- Control --------------------------------------------------------===//
  /// Stops until wake(). `what` completes "waits ...", for deadlock messages;
  /// it is called only when there is one.
  void suspend(std::function<std::string()> what);
  void wake();
  /// Lets all other runnable threads go first. For operations that poll, in
  /// global memory (which other clusters change) or elsewhere.
  void yield(std::function<std::string()> what, bool isGlobal = false);
  /// Says that something changed, which may end the wait of a thread that
  /// polls.
  void noteProgress();
  /// Ends the launch with "kernel K, block B, thread T: OP: <what>".
  [[noreturn]] void fault(const Twine &what);

  bool hasEnded() const { return ended; }
  unsigned registers = 0; ///< Set by setmaxnreg; 0: as compiled.
  uint64_t timeReads = 0; ///< How often it read a clock.
  /// How often it met all other lanes of its warp.
  size_t meetings = 0;

private:
  friend class Cluster;
  /// Returns true if the range is local memory: on the stack of its fiber.
  bool ownsStack(uint64_t address, uint64_t bytes) const {
    return address >= stackBegin && address + bytes <= stackEnd;
  }
  std::unique_ptr<Fiber> fiber;
  uint64_t stackBegin = 0, stackEnd = 0;
  std::function<std::string()> waitsFor;
  bool ready = false, ended = false, polls = false, pollsGlobal = false;
  std::optional<AgentId> copyAgent;
};

/// A cooperative thread array, what CUDA calls a block.
class CTA {
public:
  CTA(Cluster &cluster, unsigned rank);
  ~CTA();

  Cluster &cluster;
  const unsigned rank;  ///< Linear, in its cluster.
  unsigned position[3]; ///< In the grid.
  std::vector<std::unique_ptr<Thread>> threads;
  SharedMemory shared;

  std::unique_ptr<BarrierTable> barriers;
  std::unique_ptr<MBarrierTable> mbarriers;
  std::unique_ptr<CollectiveTable> collectives;
  TensorMapOrder tensorMaps;
  std::unique_ptr<BankCounter> banks; ///< Null: nothing is counted.
  /// Shared only to keep its destructor out of this header. Null: no products.
  std::shared_ptr<WarpgroupTable> warpgroups;

  unsigned countLive() const;
  /// Now that all threads have ended: what may still use the CTA's shared
  /// memory or mbarriers; empty when nothing does.
  std::string findInFlight() const;
};

/// One cluster, and the scheduler of its threads.
class Cluster {
public:
  Cluster(const Launch &launch, unsigned index, StackPool &stacks);
  ~Cluster();

  const Launch &launch;
  const unsigned index; ///< In the grid of clusters.
  std::vector<std::unique_ptr<CTA>> ctas;
  std::unique_ptr<ClusterBarrier> barriers;

  /// Runs to the end, to a fault, or until every thread waits. What went wrong,
  /// empty when nothing did.
  std::string run();

  /// A new agent. `text` says what it is in messages: "the copies that complete
  /// on the mbarrier at 0x40".
  AgentId addAgent(std::string text);
  StringRef getAgentText(AgentId agent) const { return agents[agent]; }

  uint32_t numMBarriers = 0; ///< That were initialized so far.

private:
  friend class Thread;
  std::string describeDeadlock() const;

  std::deque<Thread *> readyThreads;
  std::vector<std::string> agents;
  std::string faultText;
  size_t progress = 0; ///< Grows when a thread does other than poll.
};

/// The thread whose fiber runs on this thread of the host.
Thread &getCurrentThread();

/// Runs all clusters of `launch`, on `jobs` threads of the host, in the order
/// of their numbers or, with `lastFirst`, in the reverse order. The text of the
/// first fault, empty when there was none.
std::string runLaunch(const Launch &launch, unsigned jobs, bool lastFirst);

} // namespace mlir::nm_sparse::emulator

#endif // NM_SPARSE_LIB_EMULATOR_MACHINE_MACHINE_H
