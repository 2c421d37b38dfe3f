//===- SharedMemory.cpp - shadowed shared memory --------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Races are found as FastTrack finds them: for each granule the last write and
// the reads since, each with the moment of its agent. An access that does not
// know of a conflicting earlier one races with it, whichever way the fibers
// happened to run.
//
//===----------------------------------------------------------------------===//

#include "Machine/Machine.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::nm_sparse::emulator;

SharedMemory::SharedMemory(size_t bytes, unsigned granule)
    : data(bytes, char(0xff)), cells(llvm::divideCeil(bytes, granule)),
      granuleShift(llvm::Log2_32(granule)) {}

static StringRef getVerb(AccessKind kind) {
  return !writes(kind) ? "reads" : !reads(kind) ? "writes" : "updates";
}

std::string SharedMemory::describeAgent(const Cluster &cluster,
                                        const Mark &mark) const {
  std::string text = cluster.getAgentText(mark.agent).str();
  if (!text.empty())
    text += " of ";
  text += llvm::formatv("thread {0}", mark.thread);
  if (cluster.launch.getClusterSize() > 1)
    text += llvm::formatv(" of CTA {0} of the cluster", mark.rank);
  return text;
}

std::string SharedMemory::describe(const Cluster &cluster,
                                   const SharedAccess &access, uint32_t offset,
                                   uint32_t bytes, const Mark &other,
                                   bool otherWrites) const {
  std::string text = llvm::formatv(
      "race: {0} {1} bytes of shared memory at {2:x}, which {3} {4} by {5}",
      getVerb(access.kind), bytes, offset, describeAgent(cluster, other),
      otherWrites ? "writes" : "reads", other.site->text);
  bool onlyProxy = access.known->generic.get(other.agent) >= other.moment;
  text += !onlyProxy    ? "; no barrier, mbarrier or wait orders them"
          : otherWrites ? "; they are ordered, but no fence.proxy.async lets "
                          "the async proxy see the write"
                        : "; they are ordered, but no fence.proxy.async keeps "
                          "the async proxy behind the read";
  return text;
}

std::string SharedMemory::access(const Cluster &cluster, uint32_t offset,
                                 uint32_t bytes, const SharedAccess &access) {
  Mark mark;
  mark.agent = access.agent;
  mark.moment = access.moment;
  mark.isAsyncProxy = access.isAsyncProxy;
  mark.thread = access.thread;
  mark.rank = access.rank;
  mark.isStrong = isStrong(access.kind);
  mark.site = access.site;

  // Accesses of the generic proxy reach the async proxy through a fence.
  auto isKnown = [&](const Mark &earlier) {
    bool needsFence = access.isAsyncProxy && !earlier.isAsyncProxy;
    const VectorClock &known =
        needsFence ? access.known->async : access.known->generic;
    return known.get(earlier.agent) >= earlier.moment;
  };

  size_t first = offset >> granuleShift;
  size_t last = (offset + bytes - 1) >> granuleShift;
  for (size_t i = first; i <= last; ++i) {
    Cell &cell = cells[i];
    uint32_t where = std::max<uint32_t>(offset, i << granuleShift);
    if (cell.write.moment == 0) {
      if (reads(access.kind))
        return llvm::formatv(
            "{0} {1} bytes of shared memory at {2:x}, of which "
            "nothing wrote those at {3:x}",
            getVerb(access.kind), bytes, offset, where);
    } else if (!(mark.isStrong && cell.write.isStrong) &&
               !isKnown(cell.write)) {
      return describe(cluster, access, offset, bytes, cell.write, true);
    }
    if (!writes(access.kind)) {
      // Whoever comes after this read comes after those too.
      llvm::erase_if(cell.reads, [&](const Mark &read) {
        return read.agent == access.agent || isKnown(read);
      });
      cell.reads.push_back(mark);
      continue;
    }
    for (const Mark &read : cell.reads)
      if (!(read.isStrong && mark.isStrong) && !isKnown(read))
        return describe(cluster, access, offset, bytes, read, false);
    cell.reads.clear();
    cell.write = mark;
  }
  return {};
}

std::string SharedMemory::findInFlight(const Cluster &cluster,
                                       const VectorClock &known) const {
  size_t numThreads =
      cluster.launch.getThreads() * cluster.launch.getClusterSize();
  auto find = [&](size_t cell, const Mark &mark, StringRef verb) {
    // The end of a thread waits for its cp.async.
    bool isAsyncCopy = mark.agent >= numThreads && !mark.isAsyncProxy;
    if (isAsyncCopy || known.get(mark.agent) >= mark.moment)
      return std::string();
    return llvm::formatv("{0} {1} its shared memory at {2:x} by {3}, which may "
                         "be later",
                         describeAgent(cluster, mark), verb,
                         cell << granuleShift, mark.site->text)
        .str();
  };
  for (size_t i = 0; i < cells.size(); ++i) {
    if (std::string text = find(i, cells[i].write, "writes"); !text.empty())
      return text;
    for (const Mark &read : cells[i].reads)
      if (std::string text = find(i, read, "reads"); !text.empty())
        return text;
  }
  return {};
}
