//===- Collective.cpp - operations of a warp or a warpgroup ---------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Machine/CollectiveTable.h"

#include "llvm/ADT/bit.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::nm_sparse::emulator;

static bool includes(const CollectiveTable::Gathering &gathering, unsigned id) {
  if (id < gathering.firstThread ||
      id - gathering.firstThread >= gathering.lanes.size())
    return false;
  unsigned lane = id - gathering.firstThread;
  return gathering.lanes.size() > warpSize || (gathering.mask >> lane & 1);
}

void CollectiveTable::join(Thread &thread, unsigned firstThread, unsigned lanes,
                           uint32_t mask, Values operands, Values results,
                           llvm::function_ref<void(ArrayRef<Lane>)> body) {
  bool isWarp = lanes == warpSize;
  unsigned lane = thread.id - firstThread;
  if (isWarp && !(mask >> lane & 1))
    thread.fault(llvm::formatv("the mask {0:x} leaves out lane {1}, which "
                               "executes the operation",
                               mask, lane));
  Gathering *gathering = nullptr;
  for (auto &candidate : gatherings) {
    if (!includes(*candidate, thread.id))
      continue;
    const Site *other = candidate->site;
    if (other != thread.site) {
      // The warps of a warpgroup go their own ways between its operations.
      const auto *waiting =
          llvm::find_if(candidate->lanes, [&](const Lane &lane) {
            return lane.thread && (!isWarp || lane.thread->id / warpSize ==
                                                  firstThread / warpSize);
          });
      if (waiting == candidate->lanes.end())
        continue;
      thread.fault(llvm::formatv("divergence: thread {0} of the same {1} waits "
                                 "at {2}",
                                 waiting->thread->id,
                                 isWarp ? "warp" : "warpgroup", other->text));
    }
    if (candidate->mask != mask)
      thread.fault(llvm::formatv("divergence: its mask is {0:x}, that of "
                                 "another thread of the warp {1:x}",
                                 mask, candidate->mask));
    gathering = candidate.get();
  }
  if (!gathering) {
    gatherings.push_back(std::make_unique<Gathering>());
    gathering = gatherings.back().get();
    gathering->site = thread.site;
    gathering->mask = mask;
    gathering->firstThread = firstThread;
    gathering->lanes.resize(lanes);
    gathering->wanted = isWarp ? llvm::popcount(mask) : lanes;
  }
  for (unsigned i = 0; i < lanes; ++i) {
    unsigned id = firstThread + i;
    bool isWanted = !isWarp || (mask >> i & 1);
    if (isWanted &&
        (id >= thread.cta.threads.size() || thread.cta.threads[id]->hasEnded()))
      thread.fault(llvm::formatv(
          "divergence: thread {0} {1}, but the "
          "operation needs it",
          id,
          id >= thread.cta.threads.size() ? "does not exist" : "has ended"));
  }
  gathering->lanes[lane] = {&thread, operands, results};
  if (++gathering->arrived < gathering->wanted) {
    thread.suspend([gathering] {
      return llvm::formatv("{0} of {1} threads have arrived",
                           gathering->arrived, gathering->wanted)
          .str();
    });
    return;
  }
  std::unique_ptr<Gathering> complete;
  llvm::erase_if(gatherings, [&](std::unique_ptr<Gathering> &candidate) {
    if (candidate.get() != gathering)
      return false;
    complete = std::move(candidate);
    return true;
  });
  body(complete->lanes);
  for (const Lane &other : complete->lanes)
    if (other.thread && other.thread != &thread)
      other.thread->wake();
}

std::string CollectiveTable::threadEnded(Thread &thread) {
  for (auto &gathering : gatherings) {
    if (!includes(*gathering, thread.id))
      continue;
    const Launch &launch = thread.cta.cluster.launch;
    const unsigned *position = thread.cta.position;
    return llvm::formatv("kernel '{0}', block ({1}, {2}, {3}), thread {4}: "
                         "divergence: it ended, "
                         "but {5} of its {6} wait for it at {7}",
                         launch.kernelName, position[0], position[1],
                         position[2], thread.id, gathering->arrived,
                         gathering->lanes.size() == warpSize ? "warp"
                                                             : "warpgroup",
                         gathering->site->text);
  }
  return {};
}

void nm_sparse::emulator::runWarpCollective(
    Thread &thread, uint32_t mask, Values operands, Values results,
    llvm::function_ref<void(ArrayRef<Lane>)> body) {
  thread.cta.collectives->join(thread, thread.id - thread.getLane(), warpSize,
                               mask, operands, results, body);
  thread.meetings += mask == ~0u;
}

void nm_sparse::emulator::runWarpgroupCollective(
    Thread &thread, Values operands, Values results,
    llvm::function_ref<void(ArrayRef<Lane>)> body) {
  unsigned first = thread.getWarpgroup() * warpgroupSize;
  thread.cta.collectives->join(thread, first, warpgroupSize, ~0u, operands,
                               results, body);
  ++thread.meetings;
}
