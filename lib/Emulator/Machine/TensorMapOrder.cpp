//===- TensorMapOrder.cpp - who acquired which tensor map -----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Machine/TensorMapOrder.h"

#include "Machine/Machine.h"
#include "Memory/TensorMap.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::nm_sparse::emulator;

/// Changes with each write of this launch to the map.
static uint64_t getStamp(Thread &thread, uint64_t address) {
  return thread.cta.cluster.launch.order->getStamp(address, sizeof(TensorMap));
}

static GlobalMemory &getMemory(Thread &thread) {
  return *thread.cta.cluster.launch.memory;
}

void TensorMapOrder::replace(Thread &thread, uint64_t address) {
  getMemory(thread).setUnreleased(address, sizeof(TensorMap), true);
  AgentId agent = thread.getAgent();
  Change change = {agent, thread.getMoment(), address};
  auto isSame = [&](const Change &other) {
    return other.thread == agent && other.address == address;
  };
  if (Change *found = llvm::find_if(unreleased, isSame);
      found != unreleased.end())
    *found = change;
  else
    unreleased.push_back(change);
}

void TensorMapOrder::release(Thread &thread) {
  llvm::erase_if(unreleased, [&](const Change &change) {
    if (thread.known.generic.get(change.thread) < change.moment)
      return false;
    getMemory(thread).setUnreleased(change.address, sizeof(TensorMap), false);
    return true;
  });
}

void TensorMapOrder::acquire(Thread &thread, uint64_t address) {
  AgentId agent = thread.getAgent();
  uint64_t stamp = getStamp(thread, address);
  // If nothing lies between two fences, more threads know the earlier one.
  for (const Fence &fence : fences[address])
    if (fence.thread == agent && fence.stamp == stamp)
      return;
  fences[address].push_back({agent, thread.getMoment(), stamp});
}

void TensorMapOrder::checkUse(Thread &thread, uint64_t address) const {
  GlobalMemory &memory = getMemory(thread);
  uint64_t stamp = getStamp(thread, address);
  if (stamp == 0 && !memory.isFromKernel(address, sizeof(TensorMap)))
    return;
  if (memory.isUnreleased(address, sizeof(TensorMap)))
    thread.fault(llvm::formatv("uses the tensor map at {0:x}, which a kernel "
                               "changed with tensormap.replace, but no "
                               "fence.proxy.release came after that",
                               address));
  bool isStale = false;
  if (auto found = fences.find(address); found != fences.end())
    for (const Fence &fence : found->second) {
      if (thread.known.generic.get(fence.thread) < fence.moment)
        continue;
      if (fence.stamp == stamp)
        return;
      isStale = true;
    }
  thread.fault(llvm::formatv(
      "uses the tensor map at {0:x}, which a kernel wrote, {1}", address,
      isStale ? "but it was written again after its fence.proxy.acquire"
              : "but no fence.proxy.acquire of this CTA comes before"));
}
