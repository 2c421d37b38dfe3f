//===- Thread.cpp - one thread of a kernel --------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Machine/Machine.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::nm_sparse::emulator;

Thread::Thread(CTA &cta, unsigned id) : cta(cta), id(id) {
  known.generic.advance(getAgent(), 1);
}

AgentId Thread::getAgent() const {
  return cta.rank * cta.cluster.launch.getThreads() + id;
}

unsigned Thread::getPosition(unsigned axis) const {
  const unsigned *extent = cta.cluster.launch.block;
  unsigned below = 1;
  for (unsigned i = 0; i < axis; ++i)
    below *= extent[i];
  return id / below % extent[axis];
}

void Thread::release(Clock &clock) {
  clock.join(known);
  known.generic.advance(getAgent(), getMoment() + 1);
}

void Thread::fenceProxy() {
  known.async = known.generic;
  known.generic.advance(getAgent(), getMoment() + 1);
}

void Thread::fenceGPU() {
  for (uint64_t address : observed)
    cta.cluster.launch.order->observe(*this, address);
  joinForeign(known.others, seen);
  known.gpu = known.generic;
  known.generic.advance(getAgent(), getMoment() + 1);
}

AgentId Thread::getCopyAgent() {
  if (!copyAgent)
    copyAgent = cta.cluster.addAgent("a cp.async");
  return *copyAgent;
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

uint64_t Thread::toShared(uint64_t address, AddressSpace space) {
  if (space == AddressSpace::Shared || space == AddressSpace::SharedCluster)
    return address & 0xffffffff;
  if ((address & sharedWindow) == sharedWindow)
    return address - sharedWindow;
  fault(llvm::formatv("address {0:x} is not in shared memory", address));
}

char *Thread::access(uint64_t address, AddressSpace space, uint32_t bytes,
                     uint32_t alignment, AccessKind kind) {
  return accessAs(getAgent(), getMoment(), /*isAsyncProxy=*/false, known,
                  address, space, bytes, alignment, kind);
}

static const char *getNoun(AccessKind kind) {
  return !writes(kind) ? "read" : !reads(kind) ? "write" : "atomic update";
}

char *Thread::accessAs(AgentId agent, Moment moment, bool isAsyncProxy,
                       const Clock &after, uint64_t address, AddressSpace space,
                       uint32_t bytes, uint32_t alignment, AccessKind kind) {
  if (writes(kind))
    noteProgress();
  bool isShared = space == AddressSpace::Shared ||
                  space == AddressSpace::SharedCluster ||
                  (space == AddressSpace::Generic &&
                   (address & sharedWindow) == sharedWindow);
  if (address % alignment != 0)
    fault(llvm::formatv("misaligned {0} of {1} bytes of {2} memory at {3:x}, "
                        "which must be a multiple of {4}",
                        getNoun(kind), bytes, isShared ? "shared" : "global",
                        address & ~sharedWindow, alignment));
  if (!isShared) {
    if (ownsStack(address, bytes))
      return reinterpret_cast<char *>(address);
    std::string wrong = cta.cluster.launch.memory->access(address, bytes, kind,
                                                          /*fromKernel=*/true);
    if (!wrong.empty())
      fault(llvm::formatv("{0} of global memory: {1}", getNoun(kind), wrong));
    GlobalOrder &order = *cta.cluster.launch.order;
    if (!isStrong(kind))
      wrong = order.access(*this, agent, moment, after, address, bytes, kind);
    if (!wrong.empty())
      fault(wrong);
    if (isStrong(kind) && reads(kind))
      observed.insert(address);
    if (isStrong(kind) && writes(kind))
      order.publish(*this, address);
    return reinterpret_cast<char *>(address);
  }

  uint64_t where = toShared(address, space);
  uint32_t offset = where & ((1u << sharedRankShift) - 1);
  unsigned rank = where >> sharedRankShift;
  if (rank > cta.cluster.ctas.size())
    fault(
        llvm::formatv("shared address {0:x} names CTA {1} of a cluster of {2}",
                      where, rank - 1, cta.cluster.ctas.size()));
  CTA &target = rank == 0 ? cta : *cta.cluster.ctas[rank - 1];
  if (offset + uint64_t(bytes) > target.shared.size())
    fault(llvm::formatv("{0} of {1} bytes at {2:x} is out of bounds: the CTA "
                        "has {3} bytes of shared memory",
                        getNoun(kind), bytes, offset, target.shared.size()));
  if (&target != &cta && target.countLive() == 0)
    fault(llvm::formatv("{0} of shared memory of CTA {1} of the cluster, which "
                        "has ended",
                        getNoun(kind), target.rank));
  SharedAccess record = {kind,   isAsyncProxy, agent, moment,
                         &after, site,         id,    cta.rank};
  std::string wrong = target.shared.access(cta.cluster, offset, bytes, record);
  if (!wrong.empty())
    fault(wrong);
  return target.shared.getData() + offset;
}

//===----------------------------------------------------------------------===//
// Control
//===----------------------------------------------------------------------===//

void Thread::suspend(std::function<std::string()> what) {
  waitsFor = std::move(what);
  fiber->suspend();
  waitsFor = nullptr;
  noteProgress();
}

void Thread::noteProgress() { ++cta.cluster.progress; }

void Thread::wake() {
  if (ready)
    return;
  ready = true;
  cta.cluster.readyThreads.push_back(this);
}

void Thread::yield(std::function<std::string()> what, bool isGlobal) {
  waitsFor = std::move(what);
  polls = true;
  pollsGlobal = isGlobal;
  wake();
  fiber->suspend();
  polls = false;
  waitsFor = nullptr;
}

void Thread::fault(const Twine &what) {
  Cluster &cluster = cta.cluster;
  cluster.faultText = llvm::formatv(
      "kernel '{0}', block ({1}, {2}, {3}), thread {4}: {5}: {6}",
      cluster.launch.kernelName, cta.position[0], cta.position[1],
      cta.position[2], id, site ? site->text : "no operation", what.str());
  // A collective operation runs on the fiber of its last thread.
  getCurrentThread().fiber->suspend();
  llvm_unreachable("a thread went on after its fault");
}
