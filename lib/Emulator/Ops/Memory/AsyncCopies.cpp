//===- AsyncCopies.cpp - cp.async -----------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The data moves at once. What the hardware would do later, the clocks say: a
// copy is an access by the agent of its thread's copies, at a moment that the
// thread knows of only when it waited for the copy's group.
//
//===----------------------------------------------------------------------===//

#include "Ops/Memory/AsyncCopies.h"
#include "Machine/BankConflicts.h"
#include "Ops/OpTable.h"
#include "Ops/Operands.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "llvm/Support/FormatVariadic.h"
#include <cstring>

using namespace mlir;
using namespace mlir::nm_sparse;
using namespace mlir::nm_sparse::emulator;

void emulator::copyAsync(Thread &thread, uint64_t sharedAddress,
                         uint64_t globalAddress, uint32_t bytes,
                         uint32_t sourceBytes) {
  if (sourceBytes > bytes)
    thread.fault(llvm::formatv("reads {0} bytes to copy {1}: the size of the "
                               "source must not be larger",
                               sourceBytes, bytes));
  const char *source = nullptr;
  if (sourceBytes != 0)
    source = thread.access(globalAddress, AddressSpace::Global, sourceBytes,
                           /*alignment=*/bytes, AccessKind::Read);
  char *target = thread.accessAs(thread.getCopyAgent(), ++thread.copiesIssued,
                                 /*isAsyncProxy=*/false, thread.known,
                                 sharedAddress, AddressSpace::Shared, bytes,
                                 /*alignment=*/bytes, AccessKind::Write);
  countBanks(thread, SharedOp::AsyncCopy, sharedAddress, AddressSpace::Shared,
             bytes, bytes);
  if (source)
    std::memcpy(target, source, sourceBytes);
  std::memset(target + sourceBytes, 0, bytes - sourceBytes);
}

void emulator::commitCopies(Thread &thread) {
  thread.copyGroups.push_back(thread.copiesIssued);
}

void emulator::waitForCopies(Thread &thread, uint32_t remaining) {
  while (thread.copyGroups.size() > remaining) {
    // Written through the generic proxy: the async proxy still needs a fence.
    if (Moment moment = thread.copyGroups.front())
      thread.known.generic.advance(thread.getCopyAgent(), moment);
    thread.copyGroups.pop_front();
  }
}

void emulator::arriveAfterCopies(Thread &thread, MBarrierTable &table,
                                 MBarrier &barrier, bool isExtra) {
  if (isExtra)
    table.addArrival(thread, barrier);
  // It is the copies that arrive: stores of the thread are not released.
  Clock clock;
  if (thread.copiesIssued != 0)
    clock.generic.advance(thread.getCopyAgent(), thread.copiesIssued);
  table.arrive(thread, barrier, 1, clock);
}

namespace {

FailureOr<Handler> prepareCopy(Operation *op) {
  auto copy = cast<NVVM::CpAsyncOp>(op);
  OperandReader<uint64_t> target(copy.getDstMutable());
  OperandReader<uint64_t> source(copy.getSrcMutable());
  OptionalReader<uint32_t> sourceBytes(copy.getCpSizeMutable());
  uint32_t bytes = copy.getSize();
  return Handler([=](Thread &thread, Values operands, Values) {
    copyAsync(thread, target(operands), source(operands), bytes,
              sourceBytes(operands).value_or(bytes));
  });
}

FailureOr<Handler> prepareCommit(Operation *) {
  return Handler([](Thread &thread, Values, Values) { commitCopies(thread); });
}

FailureOr<Handler> prepareWait(Operation *op) {
  uint32_t remaining = cast<NVVM::CpAsyncWaitGroupOp>(op).getN();
  return Handler([=](Thread &thread, Values, Values) {
    waitForCopies(thread, remaining);
  });
}

FailureOr<Handler> prepareArrive(Operation *op) {
  auto arrive = cast<NVVM::CpAsyncMBarrierArriveOp>(op);
  OperandReader<uint64_t> address(arrive.getAddrMutable());
  AddressSpace space = getAddressSpace(arrive.getAddr());
  bool isExtra = !arrive.getNoinc();
  return Handler([=](Thread &thread, Values operands, Values) {
    auto [table, offset] =
        findMBarriers(thread, thread.toShared(address(operands), space));
    if (table != thread.cta.mbarriers.get())
      thread.fault("arrives at mbarriers of its own CTA only");
    MBarrier &barrier = table->get(thread, offset, MBarrierUse::Thread);
    arriveAfterCopies(thread, *table, barrier, isExtra);
  });
}

} // namespace

ArrayRef<OpEntry> emulator::getAsyncCopyOps() {
  static const OpEntry entries[] = {
      {"nvvm.cp.async.shared.global", prepareCopy},
      {"nvvm.cp.async.commit.group", prepareCommit},
      {"nvvm.cp.async.wait.group", prepareWait},
      {"nvvm.cp.async.mbarrier.arrive", prepareArrive},
  };
  return entries;
}
