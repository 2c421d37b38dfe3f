//===- Cluster.cpp - the scheduler ----------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Threads run in a fixed order, so that two runs give the same report. What the
// hardware could do in another order is what the clocks are for.
//
//===----------------------------------------------------------------------===//

#include "Machine/BankConflicts.h"
#include "Machine/BarrierTable.h"
#include "Machine/Collective.h"
#include "Machine/CollectiveTable.h"
#include "Machine/MBarrier.h"
#include "Machine/Machine.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/Support/FormatVariadic.h"
#include <atomic>
#include <chrono>
#include <thread>

using namespace mlir;
using namespace mlir::nm_sparse::emulator;

static thread_local Thread *currentThread = nullptr;

Thread &nm_sparse::emulator::getCurrentThread() { return *currentThread; }

//===----------------------------------------------------------------------===//
// CTAs
//===----------------------------------------------------------------------===//

CTA::CTA(Cluster &cluster, unsigned rank)
    : cluster(cluster), rank(rank),
      shared(cluster.launch.staticSharedBytes +
                 cluster.launch.dynamicSharedBytes,
             cluster.launch.granule),
      barriers(std::make_unique<BarrierTable>()),
      mbarriers(std::make_unique<MBarrierTable>(*this)),
      collectives(std::make_unique<CollectiveTable>()),
      banks(cluster.launch.banks
                ? std::make_unique<BankCounter>(*cluster.launch.banks)
                : nullptr) {}

CTA::~CTA() = default;

unsigned CTA::countLive() const {
  return llvm::count_if(threads,
                        [](const auto &thread) { return !thread->hasEnded(); });
}

std::string CTA::findInFlight() const {
  VectorClock known;
  for (const auto &thread : threads)
    known.join(thread->known.generic);
  std::string what = shared.findInFlight(cluster, known);
  if (what.empty())
    what = mbarriers->findInFlight(known);
  if (what.empty())
    return {};
  return llvm::formatv("kernel '{0}', block ({1}, {2}, {3}): it ends while {4}",
                       cluster.launch.kernelName, position[0], position[1],
                       position[2], what);
}

//===----------------------------------------------------------------------===//
// Clusters
//===----------------------------------------------------------------------===//

Cluster::Cluster(const Launch &launch, unsigned index, StackPool &stacks)
    : launch(launch), index(index),
      barriers(std::make_unique<ClusterBarrier>()) {
  unsigned perAxis[3], position[3];
  unsigned rest = index;
  for (unsigned axis = 0; axis < 3; ++axis) {
    perAxis[axis] = launch.grid[axis] / launch.cluster[axis];
    position[axis] = rest % perAxis[axis];
    rest /= perAxis[axis];
  }
  // Threads are the first agents; they need no name.
  agents.resize(launch.getClusterSize() * launch.getThreads());
  for (unsigned rank = 0; rank < launch.getClusterSize(); ++rank) {
    auto cta = std::make_unique<CTA>(*this, rank);
    unsigned within = rank;
    for (unsigned axis = 0; axis < 3; ++axis) {
      cta->position[axis] =
          position[axis] * launch.cluster[axis] + within % launch.cluster[axis];
      within /= launch.cluster[axis];
    }
    for (unsigned id = 0; id < launch.getThreads(); ++id) {
      auto thread = std::make_unique<Thread>(*cta, id);
      thread->fiber = std::make_unique<Fiber>(
          stacks.getStack(rank * launch.getThreads() + id),
          stacks.getStackBytes(), launch.function);
      thread->stackBegin = reinterpret_cast<uint64_t>(
          stacks.getStack(rank * launch.getThreads() + id));
      thread->stackEnd = thread->stackBegin + stacks.getStackBytes();
      cta->threads.push_back(std::move(thread));
    }
    ctas.push_back(std::move(cta));
  }
}

Cluster::~Cluster() = default;

AgentId Cluster::addAgent(std::string text) {
  agents.push_back(std::move(text));
  return agents.size() - 1;
}

/// How long a flag in global memory may take to change.
static constexpr std::chrono::seconds globalPatience(10);

std::string Cluster::run() {
  for (auto &cta : ctas)
    for (auto &thread : cta->threads)
      thread->wake();

  // When all that can run has only polled for a whole round, nothing changes
  // any more, unless another cluster changes it.
  size_t seen = progress;
  size_t idle = 0;
  bool pollsGlobal = false;
  std::optional<std::chrono::steady_clock::time_point> patience;
  while (!readyThreads.empty()) {
    Thread &thread = *readyThreads.front();
    readyThreads.pop_front();
    thread.ready = false;
    currentThread = &thread;
    thread.fiber->resume();
    currentThread = nullptr;
    if (!faultText.empty())
      return faultText;
    if (thread.fiber->hasEnded()) {
      thread.ended = true;
      ++progress;
      thread.cta.barriers->threadEnded(thread);
      barriers->threadEnded(thread);
      std::string divergent = thread.cta.collectives->threadEnded(thread);
      if (!divergent.empty())
        return divergent;
      if (thread.cta.countLive() == 0)
        if (std::string what = thread.cta.findInFlight(); !what.empty())
          return what;
    }
    if (!thread.polls || progress != seen) {
      seen = progress;
      idle = 0;
      pollsGlobal = false;
      patience.reset();
      continue;
    }
    pollsGlobal |= thread.pollsGlobal;
    if (++idle <= 2 * readyThreads.size())
      continue;
    if (!pollsGlobal)
      return describeDeadlock();
    auto now = std::chrono::steady_clock::now();
    if (!patience)
      patience = now + globalPatience;
    else if (now > *patience)
      return describeDeadlock();
    idle = 0;
    std::this_thread::yield();
  }
  for (auto &cta : ctas)
    if (cta->countLive() != 0)
      return describeDeadlock();
  return {};
}

/// "threads 0-31, 64": `ids` is sorted.
static std::string printRanges(ArrayRef<unsigned> ids) {
  std::string text = ids.size() == 1 ? "thread " : "threads ";
  for (size_t i = 0; i < ids.size();) {
    size_t last = i;
    while (last + 1 < ids.size() && ids[last + 1] == ids[last] + 1)
      ++last;
    text += (i ? ", " : "") + llvm::utostr(ids[i]);
    if (last != i)
      text += "-" + llvm::utostr(ids[last]);
    i = last + 1;
  }
  return text;
}

std::string Cluster::describeDeadlock() const {
  std::string text = llvm::formatv("kernel '{0}': deadlock: every thread waits",
                                   launch.kernelName);
  for (const auto &cta : ctas) {
    llvm::MapVector<StringRef, SmallVector<unsigned>,
                    std::map<StringRef, unsigned>>
        groups;
    std::vector<std::string> reasons(cta->threads.size());
    SmallVector<unsigned> ended;
    for (const auto &thread : cta->threads) {
      if (thread->hasEnded()) {
        ended.push_back(thread->id);
        continue;
      }
      std::string &reason = reasons[thread->id];
      reason = thread->site ? thread->site->text : "its start";
      if (thread->waitsFor)
        reason += " (" + thread->waitsFor() + ")";
      groups[reason].push_back(thread->id);
    }
    std::string where = llvm::formatv("block ({0}, {1}, {2})", cta->position[0],
                                      cta->position[1], cta->position[2]);
    for (const auto &[reason, ids] : groups)
      text += llvm::formatv("\n  {0}, {1}: at {2}", where, printRanges(ids),
                            reason);
    if (!ended.empty())
      text += llvm::formatv("\n  {0}, {1}: ended", where, printRanges(ended));
  }
  return text;
}

//===----------------------------------------------------------------------===//
// Launches
//===----------------------------------------------------------------------===//

/// Compiled kernels keep fragments on the stack; handlers are shallow.
static constexpr size_t stackBytes = 256 * 1024;

std::string nm_sparse::emulator::runLaunch(const Launch &wanted, unsigned jobs,
                                           bool lastFirst) {
  GlobalOrder order(wanted.granule);
  Launch launch = wanted;
  launch.order = &order;
  unsigned clusters = 1;
  for (unsigned axis = 0; axis < 3; ++axis)
    clusters *= launch.grid[axis] / launch.cluster[axis];
  if (jobs == 0)
    jobs = std::max(1u, std::thread::hardware_concurrency());
  jobs = std::min(jobs, clusters);

  // If several clusters fault, the fault of the first one is reported,
  // whichever host thread was faster.
  std::mutex mutex;
  unsigned faulty = clusters;
  std::string faultText;
  std::atomic<unsigned> next = 0;
  auto work = [&] {
    StackPool stacks(launch.getThreads() * launch.getClusterSize(), stackBytes);
    for (unsigned index; (index = next++) < clusters;) {
      {
        std::lock_guard<std::mutex> lock(mutex);
        if (index > faulty)
          return;
      }
      unsigned number = lastFirst ? clusters - 1 - index : index;
      std::string text = Cluster(launch, number, stacks).run();
      std::lock_guard<std::mutex> lock(mutex);
      if (!text.empty() && index < faulty) {
        faulty = index;
        faultText = std::move(text);
      }
    }
  };
  std::vector<std::thread> helpers;
  for (unsigned i = 1; i < jobs; ++i)
    helpers.emplace_back(work);
  work();
  for (std::thread &helper : helpers)
    helper.join();
  return faultText;
}
