//===- BarrierTable.cpp - barriers of CTAs and clusters -------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Machine/BarrierTable.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::nm_sparse::emulator;

//===----------------------------------------------------------------------===//
// Aligned operations
//===----------------------------------------------------------------------===//

void AlignedOrder::check(Thread &thread) {
  if (warps.size() <= thread.getWarp())
    warps.resize(thread.getWarp() + 1);
  Warp &warp = warps[thread.getWarp()];
  size_t place = warp.executed[thread.getLane()]++ - warp.forgotten;
  if (place < warp.sites.size()) {
    if (warp.sites[place] != thread.site)
      thread.fault(llvm::formatv(
          "divergent: in its place other threads of warp {0} execute {1}; all "
          "threads of a warp must reach an aligned barrier together",
          thread.getWarp(), warp.sites[place]->text));
    return;
  }
  warp.sites.push_back(thread.site);

  constexpr size_t kept = 64;
  if (warp.sites.size() < kept)
    return;
  size_t byAll = warp.forgotten + warp.sites.size();
  for (const auto &other : thread.cta.threads)
    if (other->getWarp() == thread.getWarp() && !other->hasEnded())
      byAll = std::min(byAll, warp.executed[other->getLane()]);
  for (; warp.forgotten < byAll; ++warp.forgotten)
    warp.sites.pop_front();
}

//===----------------------------------------------------------------------===//
// Named barriers
//===----------------------------------------------------------------------===//

BarrierTable::Barrier &BarrierTable::enter(Thread &thread,
                                           const Arrival &arrival) {
  if (arrival.id >= numBarriers)
    thread.fault(llvm::formatv("barrier {0} does not exist: a CTA has 0 to {1}",
                               arrival.id, numBarriers - 1));
  auto capacity =
      static_cast<uint32_t>(llvm::alignTo(thread.cta.threads.size(), warpSize));
  uint32_t count = arrival.count.value_or(capacity);
  if (count == 0 || count % warpSize != 0 || count > capacity)
    thread.fault(llvm::formatv(
        "barrier {0} waits for {1} threads, which must be a positive multiple "
        "of {2} and at most the {3} threads of the CTA",
        arrival.id, count, warpSize, capacity));

  Barrier &barrier = barriers[arrival.id];
  barrier.arrived.resize(thread.cta.threads.size());
  if (barrier.expected == 0) {
    barrier.expected = count;
    barrier.reduction = arrival.reduction;
  }
  if (barrier.expected != count)
    thread.fault(llvm::formatv(
        "barrier {0} waits for {1} threads here and for {2} where others "
        "arrived: all that use a barrier must name the same number",
        arrival.id, count, barrier.expected));
  if (barrier.reduction != arrival.reduction)
    thread.fault(llvm::formatv(
        "barrier {0} is used by different kinds of reduction, or with and "
        "without one, at the same time",
        arrival.id));
  if (barrier.arrived[thread.id])
    thread.fault(llvm::formatv(
        "arrives twice at barrier {0}, at which {1} of {2} threads have "
        "arrived",
        arrival.id, barrier.numArrived, barrier.expected));
  order.check(thread);

  barrier.isCounted |= arrival.count.has_value();
  barrier.arrived[thread.id] = true;
  ++barrier.numArrived;
  barrier.numTrue += arrival.predicate;
  thread.release(barrier.clock);
  thread.noteProgress();
  return barrier;
}

bool BarrierTable::isComplete(const CTA &cta, const Barrier &barrier) const {
  size_t numThreads = cta.threads.size();
  if (numEnded == 0 && numThreads % warpSize == 0)
    return barrier.numArrived == barrier.expected;

  // A warp arrives as a whole, whatever part of it there is.
  unsigned numArrived = 0, numMissing = 0;
  for (size_t first = 0; first < numThreads; first += warpSize) {
    unsigned arrived = 0, missing = 0;
    size_t last = std::min<size_t>(first + warpSize, numThreads);
    for (size_t id = first; id < last; ++id) {
      arrived += barrier.arrived[id];
      missing += !barrier.arrived[id] && !cta.threads[id]->hasEnded();
    }
    numArrived += arrived != 0 && missing == 0 ? warpSize : arrived;
    numMissing += missing;
  }
  return barrier.isCounted ? numArrived == barrier.expected : numMissing == 0;
}

void BarrierTable::completeIfAll(const CTA &cta, Barrier &barrier) {
  if (barrier.expected == 0 || !isComplete(cta, barrier))
    return;
  uint32_t result = barrier.numTrue;
  if (barrier.reduction == BarrierReduction::And)
    result = barrier.numTrue == barrier.numArrived;
  else if (barrier.reduction == BarrierReduction::Or)
    result = barrier.numTrue != 0;
  for (Waiter *waiter : barrier.waiters) {
    waiter->isDone = true;
    waiter->result = result;
    waiter->thread.acquire(barrier.clock);
    waiter->thread.wake();
  }
  barrier = Barrier();
}

uint32_t BarrierTable::sync(Thread &thread, const Arrival &arrival) {
  Barrier &barrier = enter(thread, arrival);
  Waiter waiter{thread};
  barrier.waiters.push_back(&waiter);
  completeIfAll(thread.cta, barrier);
  // The last one goes on behind those that waited, so that threads stay in
  // order.
  do
    thread.suspend([&barrier, id = arrival.id] {
      return llvm::formatv("at barrier {0}: {1} of {2} threads have arrived",
                           id, barrier.numArrived, barrier.expected)
          .str();
    });
  while (!waiter.isDone);
  ++thread.meetings;
  return waiter.result;
}

void BarrierTable::arrive(Thread &thread, const Arrival &arrival) {
  completeIfAll(thread.cta, enter(thread, arrival));
}

void BarrierTable::threadEnded(Thread &thread) {
  ++numEnded;
  for (Barrier &barrier : barriers)
    completeIfAll(thread.cta, barrier);
}

//===----------------------------------------------------------------------===//
// barrier.cluster
//===----------------------------------------------------------------------===//

static size_t countThreads(const Cluster &cluster) {
  return cluster.launch.getThreads() * cluster.launch.getClusterSize();
}

ClusterBarrier::State &ClusterBarrier::getState(const Thread &thread) {
  states.resize(countThreads(thread.cta.cluster));
  return states[thread.getAgent()];
}

void ClusterBarrier::arrive(Thread &thread, bool isRelaxed, bool isAligned) {
  if (isAligned)
    thread.cta.barriers->checkAligned(thread);
  State &state = getState(thread);
  if (state.hasArrived)
    thread.fault("arrives twice at the barrier of the cluster: each "
                 "cluster.arrive needs a cluster.wait before the next");
  state = {/*hasArrived=*/true, phase};
  ++numArrived;
  if (isRelaxed)
    arriving.join(thread.fenced);
  else
    thread.release(arriving);
  arriving.phases.join(thread.known.phases);
  thread.noteProgress();
  completeIfAll(thread.cta.cluster);
}

void ClusterBarrier::wait(Thread &thread, bool isAligned) {
  if (isAligned)
    thread.cta.barriers->checkAligned(thread);
  State &state = getState(thread);
  if (!state.hasArrived)
    thread.fault("waits at the barrier of the cluster without having arrived: "
                 "put a cluster.arrive before it");
  while (phase == state.phase) {
    waiters.push_back(&thread);
    thread.suspend([this, &thread] {
      return llvm::formatv("at the barrier of the cluster: {0} of {1} threads "
                           "have arrived",
                           numArrived, countThreads(thread.cta.cluster))
          .str();
    });
  }
  state.hasArrived = false;
  thread.acquire(completed);
}

void ClusterBarrier::threadEnded(Thread &thread) {
  ++numEnded;
  completeIfAll(thread.cta.cluster);
}

void ClusterBarrier::completeIfAll(const Cluster &cluster) {
  if (numArrived == 0 || numArrived + numEnded < countThreads(cluster))
    return;
  for (const auto &cta : cluster.ctas)
    for (const auto &thread : cta->threads) {
      const State &state = getState(*thread);
      bool isMissing = !state.hasArrived || state.phase != phase;
      if (isMissing && !thread->hasEnded())
        return;
    }
  ++phase;
  numArrived = 0;
  completed = std::move(arriving);
  arriving.clear();
  for (Thread *thread : std::exchange(waiters, {}))
    thread->wake();
}
