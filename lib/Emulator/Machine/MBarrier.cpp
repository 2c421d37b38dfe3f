//===- MBarrier.cpp - the mbarriers of a CTA ------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Machine/MBarrier.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::nm_sparse;
using namespace mlir::nm_sparse::emulator;

std::pair<MBarrierTable *, uint64_t>
emulator::findMBarriers(Thread &thread, uint64_t sharedAddress) {
  uint64_t rank = sharedAddress >> sharedRankShift;
  uint64_t offset = sharedAddress & ((uint64_t(1) << sharedRankShift) - 1);
  if (rank == 0)
    return {thread.cta.mbarriers.get(), offset};
  const auto &ctas = thread.cta.cluster.ctas;
  if (rank > ctas.size())
    thread.fault(
        llvm::formatv("shared address {0:x} names CTA {1} of a cluster "
                      "of {2}",
                      sharedAddress, rank - 1, ctas.size()));
  CTA &cta = *ctas[rank - 1];
  if (cta.countLive() == 0)
    thread.fault(llvm::formatv("uses an mbarrier of CTA {0} of the cluster, "
                               "which has ended: let it wait at a barrier of "
                               "the cluster before it ends",
                               cta.rank));
  return {cta.mbarriers.get(), offset};
}

//===----------------------------------------------------------------------===//
// Life
//===----------------------------------------------------------------------===//

void MBarrierTable::init(Thread &thread, uint64_t address, uint32_t count) {
  if (count == 0 || count > maxCount)
    thread.fault(
        llvm::formatv("initializes an mbarrier for {0} arrivals, which "
                      "must be 1 to {1}",
                      count, maxCount));
  thread.access(address, AddressSpace::Shared, /*bytes=*/8, /*alignment=*/8,
                AccessKind::Write);
  auto [entry, isNew] = barriers.try_emplace(address);
  MBarrier &barrier = entry->second;
  if (!isNew)
    thread.fault(llvm::formatv("initializes {0}, which {1} initialized before: "
                               "put an mbarrier.inval between them",
                               describe(barrier), barrier.initSite->text));
  barrier.address = address;
  barrier.number = cta.cluster.numMBarriers++;
  barrier.expected = barrier.pending = count;
  barrier.initAgent = thread.getAgent();
  barrier.initMoment = thread.getMoment();
  barrier.initSite = thread.site;
}

void MBarrierTable::invalidate(Thread &thread, uint64_t address) {
  MBarrier &barrier = get(thread, address, MBarrierUse::Thread);
  if (barrier.numWaiting != 0)
    thread.fault(llvm::formatv("invalidates {0} while {1} threads wait on it",
                               describe(barrier), barrier.numWaiting));
  thread.access(address, AddressSpace::Shared, /*bytes=*/8, /*alignment=*/8,
                AccessKind::Write);
  barriers.erase(address);
}

MBarrier &MBarrierTable::get(Thread &thread, uint64_t address,
                             MBarrierUse use) {
  if (address % 8 != 0)
    thread.fault(llvm::formatv("misaligned mbarrier at {0:x}, which must be a "
                               "multiple of 8",
                               address));
  auto found = barriers.find(address);
  if (found == barriers.end())
    thread.fault(llvm::formatv("there is no initialized mbarrier at {0:x} of "
                               "CTA {1} of the cluster",
                               address, cta.rank));
  MBarrier &barrier = found->second;
  const Clock &known = thread.known;
  auto fenceAgent = fenceAgents.find(barrier.initAgent);
  bool isFenced =
      known.async.get(barrier.initAgent) >= barrier.initMoment ||
      (barrier.fenceMoment != 0 &&
       known.generic.get(fenceAgent->second) >= barrier.fenceMoment);
  bool isKnown =
      isFenced || known.generic.get(barrier.initAgent) >= barrier.initMoment;
  if (!isKnown)
    thread.fault(llvm::formatv("uses {0}, and no barrier orders that after its "
                               "initialization by {1}",
                               describe(barrier), barrier.initSite->text));
  if (!isFenced && use != MBarrierUse::Thread)
    thread.fault(llvm::formatv(
        "{0} uses {1}, but no fence.mbarrier.init or fence.proxy.async lets it "
        "see the initialization by {2}",
        use == MBarrierUse::AsyncProxy ? "the async proxy" : "another CTA",
        describe(barrier), barrier.initSite->text));
  return barrier;
}

void MBarrierTable::fence(Thread &thread) {
  for (auto &[address, barrier] : barriers) {
    if (barrier.initAgent != thread.getAgent() || barrier.fenceMoment != 0)
      continue;
    auto [entry, isNew] = fenceAgents.try_emplace(thread.getAgent(), 0);
    if (isNew)
      entry->second = cta.cluster.addAgent("a fence.mbarrier.init");
    AgentId agent = entry->second;
    barrier.fenceMoment = thread.known.generic.get(agent) + 1;
    // Moments may be skipped: each mbarrier takes one of its own.
    thread.known.advance(agent, barrier.fenceMoment);
    thread.fenced.advance(agent, barrier.fenceMoment);
  }
}

//===----------------------------------------------------------------------===//
// Arrivals
//===----------------------------------------------------------------------===//

/// An arrival is for the current phase whatever the order of threads only where
/// the end of the last one is known to have come before. Otherwise it may have
/// been one too many for that: the count is too low, or a wait is missing.
void MBarrierTable::checkPhase(Thread &thread, MBarrier &barrier) const {
  VectorClock &phases = thread.known.phases;
  if (phases.get(barrier.number) >= barrier.phase)
    return;
  // Who knows of all arrivals needs no wait to know the end.
  if (barrier.completed.generic.isKnownTo(thread.known.generic)) {
    phases.advance(barrier.number, barrier.phase);
    return;
  }
  thread.fault(llvm::formatv(
      "arrives at {0} in phase {1}, and nothing orders that after the end of "
      "phase {2}, which came after {3} arrivals without this one: initialize "
      "it with the number of all arrivals of a phase, or wait for the end of a "
      "phase before arriving in the next",
      describe(barrier), barrier.phase, barrier.phase - 1, barrier.expected));
}

void MBarrierTable::arrive(Thread &thread, MBarrier &barrier, uint32_t count,
                           const Clock &clock) {
  if (count == 0 || count > maxCount)
    thread.fault(llvm::formatv("arrives {0} times at {1}, which must be 1 to "
                               "{2}",
                               count, describe(barrier), maxCount));
  if (count > barrier.pending)
    thread.fault(llvm::formatv(
        "arrives {0} times at {1}, whose phase {2} had {3} arrivals pending: "
        "initialize it with the number of arrivals of a phase",
        count, describe(barrier), barrier.phase, barrier.pending));
  checkPhase(thread, barrier);
  if (&thread.cta != &cta)
    barrier.remoteArrivals[thread.getAgent()] = {thread.getMoment(),
                                                 thread.site};
  barrier.arriving.join(clock);
  // Copies, and a relaxed arrival, are behind the waits of the thread, too.
  barrier.arriving.phases.join(thread.known.phases);
  barrier.pending -= count;
  completePhaseIfAll(thread, barrier);
}

void MBarrierTable::arrive(Thread &thread, MBarrier &barrier, uint32_t count,
                           bool isRelaxed) {
  arrive(thread, barrier, count, isRelaxed ? thread.fenced : thread.known);
  // Later actions of the thread were not released.
  if (!isRelaxed)
    thread.known.generic.advance(thread.getAgent(), thread.getMoment() + 1);
}

std::string MBarrierTable::findInFlight(const VectorClock &known) const {
  for (const auto &[address, barrier] : barriers)
    for (const auto &[agent, arrival] : barrier.remoteArrivals)
      if (known.get(agent) < arrival.moment)
        return llvm::formatv("a thread of another CTA arrives at {0} by {1}, "
                             "which may be later",
                             describe(barrier), arrival.site->text);
  return {};
}

void MBarrierTable::addArrival(Thread &thread, MBarrier &barrier) {
  if (barrier.pending == maxCount)
    thread.fault(llvm::formatv("{0} has {1} arrivals pending and cannot count "
                               "one more",
                               describe(barrier), maxCount));
  ++barrier.pending;
}

void MBarrierTable::drop(Thread &thread, MBarrier &barrier, uint32_t count) {
  if (count > barrier.expected)
    thread.fault(llvm::formatv("drops {0} arrivals of each phase of {1}, which "
                               "has {2}",
                               count, describe(barrier), barrier.expected));
  barrier.expected -= count;
}

void MBarrierTable::expect(Thread &thread, MBarrier &barrier, int64_t bytes) {
  barrier.pendingBytes += bytes;
  if (std::abs(barrier.pendingBytes) > maxCount)
    thread.fault(llvm::formatv("{0} would wait for {1} bytes, which must be "
                               "-{2} to {2}",
                               describe(barrier), barrier.pendingBytes,
                               maxCount));
  completePhaseIfAll(thread, barrier);
}

void MBarrierTable::complete(Thread &thread, MBarrier &barrier, int64_t bytes) {
  expect(thread, barrier, -bytes);
}

AgentId MBarrierTable::getCopyAgent(MBarrier &barrier) {
  if (!barrier.copyAgent)
    barrier.copyAgent = cta.cluster.addAgent("a bulk copy");
  return *barrier.copyAgent;
}

void MBarrierTable::completeCopies(Thread &thread, MBarrier &barrier,
                                   int64_t bytes) {
  barrier.arriving.advance(getCopyAgent(barrier), getCopyMoment(barrier));
  // Copies for another CTA are behind the waits of the thread that starts them.
  barrier.arriving.phases.join(thread.known.phases);
  complete(thread, barrier, bytes);
}

void MBarrierTable::completePhaseIfAll(Thread &thread, MBarrier &barrier) {
  thread.noteProgress();
  if (barrier.pending != 0 || barrier.pendingBytes != 0)
    return;
  ++barrier.phase;
  barrier.pending = barrier.expected;
  barrier.completed = std::move(barrier.arriving);
  barrier.arriving.clear();
  for (Thread *waiter : std::exchange(barrier.waiters, {}))
    waiter->wake();
}

//===----------------------------------------------------------------------===//
// Waits
//===----------------------------------------------------------------------===//

static constexpr unsigned statePhaseBits = 40;

uint64_t MBarrierTable::getState(const MBarrier &barrier) {
  return barrier.address << statePhaseBits | barrier.phase;
}

int64_t MBarrierTable::getPhaseOfState(Thread &thread, const MBarrier &barrier,
                                       uint64_t state) const {
  if (state >> statePhaseBits != barrier.address)
    thread.fault(
        llvm::formatv("waits on {0} with a state that no arrival at it "
                      "returned: {1:x}",
                      describe(barrier), state));
  return state & ((uint64_t(1) << statePhaseBits) - 1);
}

int64_t MBarrierTable::getPhaseOfParity(Thread &thread, const MBarrier &barrier,
                                        uint32_t parity) const {
  if (parity > 1)
    thread.fault(llvm::formatv("waits on {0} for the parity {1}, which must be "
                               "0 or 1",
                               describe(barrier), parity));
  return (barrier.phase & 1) == parity ? barrier.phase : barrier.phase - 1;
}

bool MBarrierTable::acquireIfCompleted(Thread &thread, MBarrier &barrier,
                                       int64_t phase, bool isRelaxed) {
  if (barrier.phase <= phase)
    return false;
  if (barrier.phase - phase > 1)
    thread.fault(llvm::formatv(
        "waits for the end of phase {0} of {1}, which is in phase {2}: the "
        "hardware tells only the current and the last phase apart, so no phase "
        "may end before all threads saw the end of the one before it",
        phase, describe(barrier), barrier.phase));
  (isRelaxed ? thread.awaited : thread.known).join(barrier.completed);
  thread.known.phases.join(barrier.completed.phases);
  thread.known.phases.advance(barrier.number, barrier.phase);
  return true;
}

void MBarrierTable::wait(Thread &thread, MBarrier &barrier, int64_t phase,
                         bool isRelaxed) {
  ++barrier.numWaiting;
  while (!acquireIfCompleted(thread, barrier, phase, isRelaxed)) {
    barrier.waiters.push_back(&thread);
    thread.suspend(
        [this, &barrier, phase] { return describeWait(barrier, phase); });
  }
  --barrier.numWaiting;
}

/// Returns true if one more try_wait of `thread` for `phase` gives up. One to
/// three do, by the same rule in each run, so that neither a kernel that
/// ignores it nor one that tries again just once gets by.
bool MBarrierTable::givesUp(Thread &thread, MBarrier &barrier, int64_t phase) {
  constexpr uint64_t most = 3;
  auto [entry, isNew] =
      barrier.givenUp.try_emplace(thread.getAgent(), phase, 0);
  auto &[lastPhase, count] = entry->second;
  if (lastPhase != phase)
    entry->second = {phase, 0};
  uint64_t limit =
      1 + (thread.getAgent() + barrier.number + uint64_t(phase)) % most;
  return count < limit && ++count != 0;
}

bool MBarrierTable::tryWait(Thread &thread, MBarrier &barrier, int64_t phase,
                            bool isRelaxed) {
  // Code behind a phase for other reasons finds it complete on hardware.
  bool isKnown = barrier.phase > phase &&
                 (thread.known.phases.get(barrier.number) > phase ||
                  barrier.completed.generic.isKnownTo(thread.known.generic));
  if (!isKnown && givesUp(thread, barrier, phase))
    return false;
  wait(thread, barrier, phase, isRelaxed);
  return true;
}

bool MBarrierTable::test(Thread &thread, MBarrier &barrier, int64_t phase,
                         bool isRelaxed) {
  if (acquireIfCompleted(thread, barrier, phase, isRelaxed))
    return true;
  ++barrier.numWaiting;
  thread.yield(
      [this, &barrier, phase] { return describeWait(barrier, phase); });
  --barrier.numWaiting;
  return acquireIfCompleted(thread, barrier, phase, isRelaxed);
}

//===----------------------------------------------------------------------===//
// Messages
//===----------------------------------------------------------------------===//

std::string MBarrierTable::describe(const MBarrier &barrier) const {
  std::string text = llvm::formatv("the mbarrier at {0:x}", barrier.address);
  if (cta.cluster.launch.getClusterSize() > 1)
    text += llvm::formatv(" of CTA {0} of the cluster", cta.rank);
  return text;
}

std::string MBarrierTable::describeWait(const MBarrier &barrier,
                                        int64_t phase) const {
  std::string text = llvm::formatv(
      "for the end of phase {0} of {1}: {2} of {3} arrivals", phase,
      describe(barrier), barrier.expected - barrier.pending, barrier.expected);
  if (barrier.pendingBytes > 0)
    text += llvm::formatv(", {0} bytes of copies are missing",
                          barrier.pendingBytes);
  else if (barrier.pendingBytes < 0)
    text += llvm::formatv(", {0} bytes came that no expect_tx announced",
                          -barrier.pendingBytes);
  return text;
}
