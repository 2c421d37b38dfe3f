//===- GlobalOrder.cpp - order between clusters ---------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Machine/GlobalOrder.h"

#include "Machine/Machine.h"
#include "llvm/ADT/Hashing.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::nm_sparse::emulator;

GlobalOrder::GlobalOrder(unsigned granule)
    : granuleShift(llvm::Log2_32(granule)),
      pages(std::make_unique<std::atomic<bool>[]>(numPages)) {}

std::string GlobalOrder::access(Thread &thread, AgentId agent, Moment moment,
                                const Clock &known, uint64_t address,
                                uint32_t bytes, AccessKind kind) {
  unsigned cluster = thread.cta.cluster.index;
  bool isWrite = writes(kind);
  if (isWrite)
    pages[getPage(address)].store(true, std::memory_order_relaxed);
  else if (!pages[getPage(address)].load(std::memory_order_relaxed))
    return {};

  uint64_t first = address >> granuleShift;
  uint64_t last = (address + bytes - 1) >> granuleShift;
  for (uint64_t granule = first; granule <= last; ++granule) {
    Shard &shard = getShard(granule);
    std::lock_guard<std::mutex> lock(shard.mutex);
    auto found = shard.writes.find(granule);
    if (found != shard.writes.end()) {
      const Mark &write = found->second;
      const VectorClock *clock = &known.generic;
      if (write.cluster != cluster) {
        auto other = known.others.find(write.cluster);
        clock = other == known.others.end() ? nullptr : &other->second;
      }
      if (!clock || clock->get(write.agent) < write.moment)
        return llvm::formatv(
            "race: {0} {1} bytes of global memory, which thread {2} of block "
            "({3}, {4}, {5}) writes by {6}; {7}",
            isWrite ? "writes" : "reads", bytes, write.thread, write.block[0],
            write.block[1], write.block[2], write.site->text,
            write.cluster == cluster
                ? "no barrier, mbarrier or wait orders them"
                : "no fences and atomic operation order the blocks");
    }
    if (!isWrite)
      continue;
    const unsigned *position = thread.cta.position;
    shard.writes[granule] = {cluster,
                             agent,
                             moment,
                             thread.id,
                             {position[0], position[1], position[2]},
                             thread.site};
  }
  return {};
}

uint64_t GlobalOrder::getStamp(uint64_t address, uint32_t bytes) {
  auto isWritten = [&](uint64_t at) {
    return pages[getPage(at)].load(std::memory_order_relaxed);
  };
  if (!isWritten(address) && !isWritten(address + bytes - 1))
    return 0;
  llvm::hash_code stamp = 0;
  bool found = false;
  uint64_t last = (address + bytes - 1) >> granuleShift;
  for (uint64_t granule = address >> granuleShift; granule <= last; ++granule) {
    Shard &shard = getShard(granule);
    std::lock_guard<std::mutex> lock(shard.mutex);
    auto write = shard.writes.find(granule);
    if (write == shard.writes.end())
      continue;
    found = true;
    stamp = llvm::hash_combine(stamp, granule, write->second.cluster,
                               write->second.agent, write->second.moment,
                               write->second.site);
  }
  return found ? size_t(stamp) | 1 : 0;
}

void GlobalOrder::observe(Thread &thread, uint64_t address) {
  std::lock_guard<std::mutex> lock(publishedMutex);
  auto found = published.find(address);
  if (found != published.end())
    joinForeign(thread.seen, found->second);
}

void GlobalOrder::publish(Thread &thread, uint64_t address) {
  std::lock_guard<std::mutex> lock(publishedMutex);
  ForeignClock &clock = published[address];
  joinForeign(clock, thread.known.others);
  clock[thread.cta.cluster.index].join(thread.known.gpu);
}
