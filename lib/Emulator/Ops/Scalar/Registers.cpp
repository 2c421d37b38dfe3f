//===- Registers.cpp - special registers ----------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Ops/Scalar/Registers.h"
#include "Ops/OpTable.h"
#include "llvm/Support/MathExtras.h"
#include <cstring>

using namespace mlir;
using namespace mlir::nm_sparse::emulator;

namespace {

const Launch &getLaunch(Thread &thread) { return thread.cta.cluster.launch; }

template <unsigned axis>
uint64_t readThread(Thread &thread) {
  return thread.getPosition(axis);
}
template <unsigned axis>
uint64_t readThreads(Thread &thread) {
  return getLaunch(thread).block[axis];
}
template <unsigned axis>
uint64_t readCTA(Thread &thread) {
  return thread.cta.position[axis];
}
template <unsigned axis>
uint64_t readCTAs(Thread &thread) {
  return getLaunch(thread).grid[axis];
}
template <unsigned axis>
uint64_t readClusterCTAs(Thread &thread) {
  return getLaunch(thread).cluster[axis];
}
template <unsigned axis>
uint64_t readCluster(Thread &thread) {
  return readCTA<axis>(thread) / readClusterCTAs<axis>(thread);
}
template <unsigned axis>
uint64_t readClusters(Thread &thread) {
  return readCTAs<axis>(thread) / readClusterCTAs<axis>(thread);
}
template <unsigned axis>
uint64_t readCTAInCluster(Thread &thread) {
  return readCTA<axis>(thread) % readClusterCTAs<axis>(thread);
}

uint64_t readRank(Thread &thread) { return thread.cta.rank; }
uint64_t readRanks(Thread &thread) {
  return getLaunch(thread).getClusterSize();
}
uint64_t readLane(Thread &thread) { return thread.getLane(); }
uint64_t readWarp(Thread &thread) { return thread.getWarp(); }
uint64_t readWarpSize(Thread &) { return warpSize; }
/// Warps that a multiprocessor holds.
uint64_t readWarps(Thread &thread) {
  StringRef chip = getLaunch(thread).chip;
  bool isSmall = chip.starts_with("sm_86") || chip.starts_with("sm_89") ||
                 chip.starts_with("sm_12");
  return isSmall ? 48 : 64;
}

constexpr unsigned multiprocessors = 132; // As many as an H200 has.
uint64_t readMultiprocessors(Thread &) { return multiprocessors; }
uint64_t readMultiprocessor(Thread &thread) {
  const unsigned *grid = getLaunch(thread).grid;
  const unsigned *at = thread.cta.position;
  return (at[0] + uint64_t(grid[0]) * (at[1] + uint64_t(grid[1]) * at[2])) %
         multiprocessors;
}
uint64_t readGrid(Thread &) { return 0; }

uint64_t readEqual(Thread &thread) { return 1u << thread.getLane(); }
uint64_t readLess(Thread &thread) { return readEqual(thread) - 1; }
uint64_t readLessEqual(Thread &thread) {
  return readLess(thread) | readEqual(thread);
}
uint64_t readGreater(Thread &thread) { return ~readLessEqual(thread); }
uint64_t readGreaterEqual(Thread &thread) { return ~readLess(thread); }

uint64_t readDynamicBytes(Thread &thread) {
  return getLaunch(thread).dynamicSharedBytes;
}
/// Shared memory is given out in units of 128 bytes.
uint64_t readTotalBytes(Thread &thread) {
  return llvm::alignTo(
      getLaunch(thread).staticSharedBytes + readDynamicBytes(thread), 128);
}
/// With the 1 KiB of each CTA that the system keeps for itself.
uint64_t readAllBytes(Thread &thread) { return readTotalBytes(thread) + 1024; }

/// Time passes only where it is looked at, so that runs are repeatable.
uint64_t readTime(Thread &thread) { return ++thread.timeReads * 64; }

struct Register {
  StringRef name; ///< The name of the operation.
  ReadRegister read;
};

constexpr StringRef prefix = "nvvm.read.ptx.sreg.";

constexpr Register registers[] = {
    {"nvvm.read.ptx.sreg.tid.x", readThread<0>},
    {"nvvm.read.ptx.sreg.tid.y", readThread<1>},
    {"nvvm.read.ptx.sreg.tid.z", readThread<2>},
    {"nvvm.read.ptx.sreg.ntid.x", readThreads<0>},
    {"nvvm.read.ptx.sreg.ntid.y", readThreads<1>},
    {"nvvm.read.ptx.sreg.ntid.z", readThreads<2>},
    {"nvvm.read.ptx.sreg.ctaid.x", readCTA<0>},
    {"nvvm.read.ptx.sreg.ctaid.y", readCTA<1>},
    {"nvvm.read.ptx.sreg.ctaid.z", readCTA<2>},
    {"nvvm.read.ptx.sreg.nctaid.x", readCTAs<0>},
    {"nvvm.read.ptx.sreg.nctaid.y", readCTAs<1>},
    {"nvvm.read.ptx.sreg.nctaid.z", readCTAs<2>},
    {"nvvm.read.ptx.sreg.clusterid.x", readCluster<0>},
    {"nvvm.read.ptx.sreg.clusterid.y", readCluster<1>},
    {"nvvm.read.ptx.sreg.clusterid.z", readCluster<2>},
    {"nvvm.read.ptx.sreg.nclusterid.x", readClusters<0>},
    {"nvvm.read.ptx.sreg.nclusterid.y", readClusters<1>},
    {"nvvm.read.ptx.sreg.nclusterid.z", readClusters<2>},
    {"nvvm.read.ptx.sreg.cluster.ctaid.x", readCTAInCluster<0>},
    {"nvvm.read.ptx.sreg.cluster.ctaid.y", readCTAInCluster<1>},
    {"nvvm.read.ptx.sreg.cluster.ctaid.z", readCTAInCluster<2>},
    {"nvvm.read.ptx.sreg.cluster.nctaid.x", readClusterCTAs<0>},
    {"nvvm.read.ptx.sreg.cluster.nctaid.y", readClusterCTAs<1>},
    {"nvvm.read.ptx.sreg.cluster.nctaid.z", readClusterCTAs<2>},
    {"nvvm.read.ptx.sreg.cluster.ctarank", readRank},
    {"nvvm.read.ptx.sreg.cluster.nctarank", readRanks},
    {"nvvm.read.ptx.sreg.laneid", readLane},
    {"nvvm.read.ptx.sreg.warpid", readWarp},
    {"nvvm.read.ptx.sreg.nwarpid", readWarps},
    {"nvvm.read.ptx.sreg.warpsize", readWarpSize},
    {"nvvm.read.ptx.sreg.lanemask.eq", readEqual},
    {"nvvm.read.ptx.sreg.lanemask.lt", readLess},
    {"nvvm.read.ptx.sreg.lanemask.le", readLessEqual},
    {"nvvm.read.ptx.sreg.lanemask.gt", readGreater},
    {"nvvm.read.ptx.sreg.lanemask.ge", readGreaterEqual},
    {"nvvm.read.ptx.sreg.smid", readMultiprocessor},
    {"nvvm.read.ptx.sreg.nsmid", readMultiprocessors},
    {"nvvm.read.ptx.sreg.gridid", readGrid},
    {"nvvm.read.ptx.sreg.total.smem.size", readTotalBytes},
    {"nvvm.read.ptx.sreg.dynamic.smem.size", readDynamicBytes},
    {"nvvm.read.ptx.sreg.aggr.smem.size", readAllBytes},
    {"nvvm.read.ptx.sreg.clock", readTime},
    {"nvvm.read.ptx.sreg.clock64", readTime},
    {"nvvm.read.ptx.sreg.globaltimer", readTime},
    {"nvvm.read.ptx.sreg.globaltimer.lo", readTime},
};

ReadRegister find(StringRef opName) {
  for (const Register &entry : registers)
    if (entry.name == opName)
      return entry.read;
  return nullptr;
}

FailureOr<Handler> prepareRegister(Operation *op) {
  ReadRegister read = find(op->getName().getStringRef());
  Type type = op->getResult(0).getType();
  if (!type.isInteger(32) && !type.isInteger(64))
    return op->emitError() << "reads a special register as " << type
                           << ": legal are i32 and i64";
  size_t bytes = type.getIntOrFloatBitWidth() / 8;
  return Handler([read, bytes](Thread &thread, Values, Values results) {
    uint64_t value = read(thread);
    std::memcpy(results[0], &value, bytes);
  });
}

} // namespace

ReadRegister mlir::nm_sparse::emulator::findRegister(StringRef ptxName) {
  if (!ptxName.consume_front("%"))
    return nullptr;
  // PTX writes _ inside a name, the operations write a dot.
  std::string name = (prefix + ptxName).str();
  std::replace(name.begin(), name.end(), '_', '.');
  return find(name);
}

ArrayRef<OpEntry> mlir::nm_sparse::emulator::getRegisterOps() {
  static const SmallVector<OpEntry, 0> entries = [] {
    SmallVector<OpEntry, 0> list;
    for (const Register &entry : registers)
      list.push_back({entry.name, prepareRegister});
    return list;
  }();
  return entries;
}
