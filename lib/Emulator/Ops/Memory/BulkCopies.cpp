//===- BulkCopies.cpp - cp.async.bulk -------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// As with cp.async the data moves at once. Copies into shared memory are done
// by an agent of the mbarrier on which they complete, at the moment after its
// phase; the end of the phase tells who waits. Copies out of it are done by an
// agent of the thread, which learns of them when it waits for their group.
//
//===----------------------------------------------------------------------===//

#include "Ops/Memory/BulkCopies.h"
#include "Ops/OpTable.h"
#include "Ops/Operands.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "llvm/Support/FormatVariadic.h"
#include <cstring>

using namespace mlir;
using namespace mlir::nm_sparse;
using namespace mlir::nm_sparse::emulator;

static constexpr uint64_t offsetMask = (uint64_t(1) << sharedRankShift) - 1;

static uint64_t getRank(const Thread &thread, uint64_t address) {
  uint64_t rank = address >> sharedRankShift;
  return rank == 0 ? thread.cta.rank : rank - 1;
}

BulkTarget::BulkTarget(Thread &thread, uint64_t target,
                       uint64_t mbarrierAddress)
    : thread(&thread), address(target) {
  uint64_t rank = getRank(thread, target);
  uint64_t mbarrierRank = getRank(thread, mbarrierAddress);
  if (rank != mbarrierRank)
    thread.fault(llvm::formatv(
        "writes to CTA {0} of the cluster and completes on an mbarrier of CTA "
        "{1}: the mbarrier must be in the CTA of the destination",
        rank, mbarrierRank));
  if (rank == thread.cta.rank)
    address &= offsetMask;
  uint64_t offset;
  std::tie(table, offset) = findMBarriers(thread, mbarrierAddress);
  mbarrier = &table->get(thread, offset, MBarrierUse::AsyncProxy);
}

char *BulkTarget::write(uint64_t where, uint32_t bytes,
                        uint32_t alignment) const {
  return thread->accessAs(
      table->getCopyAgent(*mbarrier), MBarrierTable::getCopyMoment(*mbarrier),
      /*isAsyncProxy=*/true, thread->known, where, AddressSpace::SharedCluster,
      bytes, alignment, AccessKind::Write);
}

const char *BulkTarget::read(uint64_t where, uint32_t bytes,
                             uint32_t alignment) const {
  return thread->accessAs(
      table->getCopyAgent(*mbarrier), MBarrierTable::getCopyMoment(*mbarrier),
      /*isAsyncProxy=*/true, thread->known, where, AddressSpace::Shared, bytes,
      alignment, AccessKind::Read);
}

void BulkTarget::complete(int64_t bytes) const {
  table->completeCopies(*thread, *mbarrier, bytes);
}

SmallVector<BulkTarget, 1>
emulator::getBulkTargets(Thread &thread, uint64_t address,
                         uint64_t mbarrierAddress,
                         std::optional<uint16_t> multicastMask) {
  SmallVector<BulkTarget, 1> targets;
  if (!multicastMask) {
    targets.emplace_back(thread, address, mbarrierAddress);
    return targets;
  }
  size_t numCTAs = thread.cta.cluster.ctas.size();
  if (*multicastMask == 0 || *multicastMask >> numCTAs != 0)
    thread.fault(
        llvm::formatv("its multicast mask is {0:x}, which must name at "
                      "least one CTA and only the {1} of the cluster",
                      *multicastMask, numCTAs));
  for (uint64_t rank = 0; rank < numCTAs; ++rank) {
    if (!(*multicastMask >> rank & 1))
      continue;
    uint64_t base = (rank + 1) << sharedRankShift;
    targets.emplace_back(thread, base | (address & offsetMask),
                         base | (mbarrierAddress & offsetMask));
  }
  return targets;
}

BulkSource::BulkSource(Thread &thread)
    : thread(thread), moment(++thread.bulkCopiesIssued) {
  if (thread.bulkReader)
    return;
  thread.bulkReader = thread.cta.cluster.addAgent("a bulk copy");
  thread.bulkWriter = thread.cta.cluster.addAgent("a bulk copy");
}

const char *BulkSource::read(uint64_t address, uint32_t bytes,
                             uint32_t alignment) const {
  return thread.accessAs(*thread.bulkReader, moment, /*isAsyncProxy=*/true,
                         thread.known, address, AddressSpace::Shared, bytes,
                         alignment, AccessKind::Read);
}

char *BulkSource::write(uint64_t address, uint32_t bytes, uint32_t alignment,
                        AccessKind kind) const {
  return thread.accessAs(*thread.bulkWriter, moment, /*isAsyncProxy=*/true,
                         thread.known, address, AddressSpace::Global, bytes,
                         alignment, kind);
}

void emulator::commitBulkCopies(Thread &thread) {
  thread.bulkGroups.push_back(thread.bulkCopiesIssued);
}

void emulator::waitForBulkCopies(Thread &thread, uint32_t remaining,
                                 bool onlyReads) {
  auto &groups = thread.bulkGroups;
  if (groups.size() <= remaining)
    return;
  Moment moment = groups[groups.size() - remaining - 1];
  if (moment != 0) {
    thread.known.advance(*thread.bulkReader, moment);
    if (!onlyReads)
      thread.known.advance(*thread.bulkWriter, moment);
  }
  // Groups whose writes are in flight can be waited for again.
  if (!onlyReads)
    groups.erase(groups.begin(), groups.end() - remaining);
}

namespace {

/// The alignment of addresses and sizes.
constexpr uint32_t bulkAlignment = 16;

uint32_t checkSize(Thread &thread, uint32_t bytes, uint32_t unit) {
  if (bytes % unit != 0)
    thread.fault(
        llvm::formatv("its size is {0} bytes, which must be a multiple "
                      "of {1}",
                      bytes, unit));
  return bytes;
}

FailureOr<Handler> prepareLoad(Operation *op) {
  auto copy = cast<NVVM::CpAsyncBulkGlobalToSharedClusterOp>(op);
  OperandReader<uint64_t> target(copy.getDstMemMutable());
  OperandReader<uint64_t> source(copy.getSrcMemMutable());
  OperandReader<uint64_t> mbarrier(copy.getMbarMutable());
  OperandReader<uint32_t> size(copy.getSizeMutable());
  OptionalReader<uint16_t> mask(copy.getMulticastMaskMutable());
  return Handler([=](Thread &thread, Values operands, Values) {
    uint32_t bytes = checkSize(thread, size(operands), bulkAlignment);
    const char *from = thread.access(source(operands), AddressSpace::Global,
                                     bytes, bulkAlignment, AccessKind::Read);
    for (const BulkTarget &to : getBulkTargets(
             thread, target(operands), mbarrier(operands), mask(operands))) {
      std::memcpy(to.write(to.getAddress(), bytes, bulkAlignment), from, bytes);
      to.complete(bytes);
    }
  });
}

FailureOr<Handler> prepareClusterCopy(Operation *op) {
  auto copy = cast<NVVM::CpAsyncBulkSharedCTAToSharedClusterOp>(op);
  OperandReader<uint64_t> target(copy.getDstMemMutable());
  OperandReader<uint64_t> source(copy.getSrcMemMutable());
  OperandReader<uint64_t> mbarrier(copy.getMbarMutable());
  OperandReader<uint32_t> size(copy.getSizeMutable());
  return Handler([=](Thread &thread, Values operands, Values) {
    uint32_t bytes = checkSize(thread, size(operands), bulkAlignment);
    if (bytes == 0)
      return;
    BulkTarget to(thread, target(operands), mbarrier(operands));
    const char *from = to.read(source(operands), bytes, bulkAlignment);
    std::memmove(to.write(to.getAddress(), bytes, bulkAlignment), from, bytes);
    to.complete(bytes);
  });
}

FailureOr<Handler> prepareStore(Operation *op) {
  auto store = cast<NVVM::CpAsyncBulkSharedCTAToGlobalOp>(op);
  OperandReader<uint64_t> target(store.getDstMemMutable());
  OperandReader<uint64_t> source(store.getSrcMemMutable());
  OperandReader<uint32_t> size(store.getSizeMutable());
  OptionalReader<uint16_t> byteMask(store.getByteMaskMutable());
  return Handler([=](Thread &thread, Values operands, Values) {
    uint32_t bytes = checkSize(thread, size(operands), bulkAlignment);
    if (bytes == 0)
      return;
    BulkSource copy(thread);
    const char *from = copy.read(source(operands), bytes, bulkAlignment);
    uint64_t to = target(operands);
    std::optional<uint16_t> mask = byteMask(operands);
    if (!mask) {
      std::memcpy(copy.write(to, bytes, bulkAlignment), from, bytes);
      return;
    }
    for (uint32_t i = 0; i < bytes; ++i)
      if (*mask >> i % bulkAlignment & 1)
        *copy.write(to + i, /*bytes=*/1, /*alignment=*/1) = from[i];
  });
}

FailureOr<Handler> prepareCommit(Operation *) {
  return Handler(
      [](Thread &thread, Values, Values) { commitBulkCopies(thread); });
}

FailureOr<Handler> prepareWait(Operation *op) {
  auto wait = cast<NVVM::CpAsyncBulkWaitGroupOp>(op);
  uint32_t remaining = wait.getGroup();
  bool onlyReads = wait.getRead().has_value();
  return Handler([=](Thread &thread, Values, Values) {
    waitForBulkCopies(thread, remaining, onlyReads);
  });
}

FailureOr<Handler> preparePrefetch(Operation *op) {
  auto prefetch = cast<NVVM::CpAsyncBulkPrefetchOp>(op);
  OperandReader<uint64_t> source(prefetch.getSrcMemMutable());
  OperandReader<uint32_t> size(prefetch.getSizeMutable());
  return Handler([=](Thread &thread, Values operands, Values) {
    uint32_t bytes = checkSize(thread, size(operands), bulkAlignment);
    uint64_t address = source(operands);
    if (address % bulkAlignment != 0)
      thread.fault(llvm::formatv("misaligned address {0:x}, which must be a "
                                 "multiple of {1}",
                                 address, bulkAlignment));
    if (!thread.cta.cluster.launch.memory->contains(address, bytes))
      thread.fault(llvm::formatv("{0} bytes at {1:x} are not all device memory",
                                 bytes, address));
  });
}

FailureOr<Handler> prepareBulkStore(Operation *op) {
  auto store = cast<NVVM::BulkStoreOp>(op);
  OperandReader<uint64_t> target(store.getAddrMutable());
  OperandReader<uint64_t> size(store.getSizeMutable());
  AddressSpace space = getAddressSpace(store.getAddr());
  return Handler([=](Thread &thread, Values operands, Values) {
    constexpr uint32_t unit = 8;
    uint32_t bytes = checkSize(thread, size(operands), unit);
    if (bytes == 0)
      return;
    std::memset(thread.access(thread.toShared(target(operands), space),
                              AddressSpace::Shared, bytes, unit,
                              AccessKind::Write),
                0, bytes);
  });
}

} // namespace

ArrayRef<OpEntry> emulator::getBulkCopyOps() {
  static const OpEntry entries[] = {
      {"nvvm.cp.async.bulk.shared.cluster.global", prepareLoad},
      {"nvvm.cp.async.bulk.shared.cluster.shared.cta", prepareClusterCopy},
      {"nvvm.cp.async.bulk.global.shared.cta", prepareStore},
      {"nvvm.cp.async.bulk.commit.group", prepareCommit},
      {"nvvm.cp.async.bulk.wait_group", prepareWait},
      {"nvvm.cp.async.bulk.prefetch", preparePrefetch},
      {"nvvm.st.bulk", prepareBulkStore},
  };
  return entries;
}
