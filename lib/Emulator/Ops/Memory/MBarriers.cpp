//===- MBarriers.cpp - operations on mbarriers ----------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Scopes are not told apart: whatever releases, releases to the whole cluster.
//
//===----------------------------------------------------------------------===//

#include "Machine/MBarrier.h"
#include "Ops/OpTable.h"
#include "Ops/Operands.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::nm_sparse;
using namespace mlir::nm_sparse::emulator;

namespace {

/// The operand that says which mbarrier.
class MBarrierReader {
public:
  MBarrierReader(OpOperand &operand)
      : address(operand), space(getAddressSpace(operand.get())) {}

  std::pair<MBarrierTable *, uint64_t> find(Thread &thread,
                                            Values operands) const {
    return findMBarriers(thread, thread.toShared(address(operands), space));
  }
  /// In the shared memory of the executing thread's CTA.
  std::pair<MBarrierTable *, uint64_t> findOwn(Thread &thread,
                                               Values operands) const {
    auto found = find(thread, operands);
    if (found.first != thread.cta.mbarriers.get())
      thread.fault(llvm::formatv("works on mbarriers of its own CTA only, not "
                                 "on {0:x}, which is in another CTA of the "
                                 "cluster",
                                 address(operands)));
    return found;
  }
  std::pair<MBarrierTable &, MBarrier &> operator()(Thread &thread,
                                                    Values operands) const {
    auto [table, offset] = find(thread, operands);
    bool isOwn = table == thread.cta.mbarriers.get();
    return {*table, table->get(thread, offset,
                               isOwn ? MBarrierUse::Thread
                                     : MBarrierUse::RemoteThread)};
  }

private:
  OperandReader<uint64_t> address;
  AddressSpace space;
};

FailureOr<Handler> prepareInit(Operation *op) {
  auto init = cast<NVVM::MBarrierInitOp>(op);
  MBarrierReader mbarrier(init.getAddrMutable());
  OperandReader<uint32_t> count(init.getCountMutable());
  PredicateReader predicate(init.getPredicateMutable());
  return Handler([=](Thread &thread, Values operands, Values) {
    if (!predicate(operands))
      return;
    auto [table, offset] = mbarrier.findOwn(thread, operands);
    table->init(thread, offset, count(operands));
  });
}

FailureOr<Handler> prepareInvalidate(Operation *op) {
  MBarrierReader mbarrier(cast<NVVM::MBarrierInvalOp>(op).getAddrMutable());
  return Handler([=](Thread &thread, Values operands, Values) {
    auto [table, offset] = mbarrier.findOwn(thread, operands);
    table->invalidate(thread, offset);
  });
}

template <typename Op, bool isComplete>
FailureOr<Handler> prepareBytes(Operation *op) {
  MBarrierReader mbarrier(cast<Op>(op).getAddrMutable());
  OperandReader<int32_t> bytes(cast<Op>(op).getTxcountMutable());
  return Handler([=](Thread &thread, Values operands, Values) {
    auto [table, barrier] = mbarrier(thread, operands);
    if (isComplete)
      table.complete(thread, barrier, bytes(operands));
    else
      table.expect(thread, barrier, bytes(operands));
  });
}

/// The common part of the forms of mbarrier.arrive.
class Arrival {
public:
  Arrival(Operation *op, OpOperand &address, bool drops, bool isRelaxed)
      : mbarrier(address), drops(drops), isRelaxed(isRelaxed),
        hasResult(op->getNumResults() != 0) {}

  /// The mbarrier, whose state before the arrival is the result.
  std::pair<MBarrierTable &, MBarrier &> begin(Thread &thread, Values operands,
                                               Values results) const {
    auto [table, barrier] = mbarrier(thread, operands);
    if (hasResult)
      setResult(results, MBarrierTable::getState(barrier));
    return {table, barrier};
  }
  void finish(Thread &thread, MBarrierTable &table, MBarrier &barrier,
              uint32_t count) const {
    if (drops)
      table.drop(thread, barrier, count);
    table.arrive(thread, barrier, count, isRelaxed);
  }

private:
  MBarrierReader mbarrier;
  bool drops, isRelaxed, hasResult;
};

/// mbarrier.arrive, with `drops` arrive_drop.
template <typename Op, bool drops>
FailureOr<Handler> prepareArrive(Operation *op) {
  auto arrive = cast<Op>(op);
  Arrival arrival(op, arrive.getAddrMutable(), drops, arrive.getRelaxed());
  OptionalReader<uint32_t> count(arrive.getCountMutable());
  return Handler([=](Thread &thread, Values operands, Values results) {
    auto [table, barrier] = arrival.begin(thread, operands, results);
    arrival.finish(thread, table, barrier, count(operands).value_or(1));
  });
}

/// The forms that must not complete a phase.
template <typename Op, bool drops>
FailureOr<Handler> prepareArriveWithoutEnd(Operation *op) {
  auto arrive = cast<Op>(op);
  Arrival arrival(op, arrive.getAddrMutable(), drops, /*isRelaxed=*/false);
  OperandReader<uint32_t> given(arrive.getCountMutable());
  return Handler([=](Thread &thread, Values operands, Values results) {
    auto [table, barrier] = arrival.begin(thread, operands, results);
    uint32_t count = given(operands);
    if (count == barrier.pending && barrier.pendingBytes == 0)
      thread.fault(
          llvm::formatv("arrives {0} times, which would complete phase "
                        "{1} of the mbarrier at {2:x}: use the form "
                        "without nocomplete",
                        count, barrier.phase, barrier.address));
    arrival.finish(thread, table, barrier, count);
  });
}

/// If arrivals announce bytes, the first one has a predicate.
template <typename Op>
std::optional<PredicateReader> getPredicate(Op) {
  return std::nullopt;
}
template <>
std::optional<PredicateReader>
getPredicate(NVVM::MBarrierArriveExpectTxOp arrive) {
  return PredicateReader(arrive.getPredicateMutable());
}

template <typename Op, bool drops>
FailureOr<Handler> prepareArriveWithBytes(Operation *op) {
  auto arrive = cast<Op>(op);
  Arrival arrival(op, arrive.getAddrMutable(), drops, arrive.getRelaxed());
  OperandReader<int32_t> bytes(arrive.getTxcountMutable());
  std::optional<PredicateReader> predicate = getPredicate(arrive);
  return Handler([=](Thread &thread, Values operands, Values results) {
    if (predicate && !(*predicate)(operands))
      return;
    auto [table, barrier] = arrival.begin(thread, operands, results);
    table.expect(thread, barrier, bytes(operands));
    arrival.finish(thread, table, barrier, 1);
  });
}

/// A state of 64 bits or a parity of 32.
class PhaseReader {
public:
  PhaseReader(OpOperand &operand)
      : state(operand), parity(operand),
        isState(operand.get().getType().isInteger(64)) {}

  int64_t operator()(Thread &thread, const MBarrierTable &table,
                     const MBarrier &barrier, Values operands) const {
    return isState ? table.getPhaseOfState(thread, barrier, state(operands))
                   : table.getPhaseOfParity(thread, barrier, parity(operands));
  }

private:
  OperandReader<uint64_t> state;
  OperandReader<uint32_t> parity;
  bool isState;
};

MBarrier &getOwn(Thread &thread, const MBarrierReader &mbarrier,
                 Values operands) {
  auto [table, offset] = mbarrier.findOwn(thread, operands);
  return table->get(thread, offset, MBarrierUse::Thread);
}

/// test_wait, and try_wait with `waits`, which gives up now and then.
template <typename Op, bool waits>
FailureOr<Handler> prepareWait(Operation *op) {
  auto wait = cast<Op>(op);
  MBarrierReader mbarrier(wait.getAddrMutable());
  PhaseReader read(wait.getStateOrPhaseMutable());
  bool relaxed = wait.getRelaxed();
  return Handler([=](Thread &thread, Values operands, Values results) {
    MBarrierTable &table = *thread.cta.mbarriers;
    MBarrier &barrier = getOwn(thread, mbarrier, operands);
    int64_t phase = read(thread, table, barrier, operands);
    setResult<uint8_t>(results,
                       waits ? table.tryWait(thread, barrier, phase, relaxed)
                             : table.test(thread, barrier, phase, relaxed));
  });
}

FailureOr<Handler> prepareWaitForParity(Operation *op) {
  auto wait = cast<NVVM::MBarrierTryWaitParityOp>(op);
  MBarrierReader mbarrier(wait.getAddrMutable());
  OperandReader<uint32_t> parity(wait.getPhaseMutable());
  return Handler([=](Thread &thread, Values operands, Values) {
    MBarrierTable &table = *thread.cta.mbarriers;
    MBarrier &barrier = getOwn(thread, mbarrier, operands);
    table.wait(thread, barrier,
               table.getPhaseOfParity(thread, barrier, parity(operands)),
               /*isRelaxed=*/false);
  });
}

} // namespace

ArrayRef<OpEntry> emulator::getMBarrierOps() {
  static const OpEntry entries[] = {
      {"nvvm.mbarrier.init", prepareInit},
      {"nvvm.mbarrier.inval", prepareInvalidate},
      {"nvvm.mbarrier.expect_tx",
       prepareBytes<NVVM::MBarrierExpectTxOp, /*isComplete=*/false>},
      {"nvvm.mbarrier.complete_tx",
       prepareBytes<NVVM::MBarrierCompleteTxOp, /*isComplete=*/true>},
      {"nvvm.mbarrier.arrive",
       prepareArrive<NVVM::MBarrierArriveOp, /*drops=*/false>},
      {"nvvm.mbarrier.arrive_drop",
       prepareArrive<NVVM::MBarrierArriveDropOp, /*drops=*/true>},
      {"nvvm.mbarrier.arrive.nocomplete",
       prepareArriveWithoutEnd<NVVM::MBarrierArriveNocompleteOp,
                               /*drops=*/false>},
      {"nvvm.mbarrier.arrive_drop.nocomplete",
       prepareArriveWithoutEnd<NVVM::MBarrierArriveDropNocompleteOp,
                               /*drops=*/true>},
      {"nvvm.mbarrier.arrive.expect_tx",
       prepareArriveWithBytes<NVVM::MBarrierArriveExpectTxOp, /*drops=*/false>},
      {"nvvm.mbarrier.arrive_drop.expect_tx",
       prepareArriveWithBytes<NVVM::MBarrierArriveDropExpectTxOp,
                              /*drops=*/true>},
      {"nvvm.mbarrier.test.wait",
       prepareWait<NVVM::MBarrierTestWaitOp, /*waits=*/false>},
      {"nvvm.mbarrier.try_wait",
       prepareWait<NVVM::MBarrierTryWaitOp, /*waits=*/true>},
      {"nvvm.mbarrier.try_wait.parity", prepareWaitForParity},
  };
  return entries;
}
