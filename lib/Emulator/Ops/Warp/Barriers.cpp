//===- Barriers.cpp - barriers of warps, CTAs and clusters ----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Machine/BarrierTable.h"
#include "Machine/Collective.h"
#include "Ops/OpTable.h"
#include "Ops/Operands.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace mlir::nm_sparse;
using namespace mlir::nm_sparse::emulator;

namespace {

FailureOr<Handler> prepareBarrier0(Operation *) {
  return Handler([](Thread &thread, Values, Values) {
    thread.cta.barriers->sync(thread, {});
  });
}

FailureOr<Handler> prepareBarrier(Operation *op) {
  auto barrier = cast<NVVM::BarrierOp>(op);
  BarrierReduction reduction = BarrierReduction::None;
  if (std::optional<NVVM::BarrierReduction> kind = barrier.getReductionOp())
    switch (*kind) {
    case NVVM::BarrierReduction::POPC:
      reduction = BarrierReduction::Count;
      break;
    case NVVM::BarrierReduction::AND:
      reduction = BarrierReduction::And;
      break;
    case NVVM::BarrierReduction::OR:
      reduction = BarrierReduction::Or;
      break;
    }
  OptionalReader<uint32_t> id(barrier.getBarrierIdMutable());
  OptionalReader<uint32_t> count(barrier.getNumberOfThreadsMutable());
  OptionalReader<uint32_t> predicate(barrier.getReductionPredicateMutable());
  bool hasResult = op->getNumResults() != 0;
  return Handler([=](Thread &thread, Values operands, Values results) {
    BarrierTable::Arrival arrival;
    arrival.id = id(operands).value_or(0);
    arrival.count = count(operands);
    arrival.reduction = reduction;
    arrival.predicate = predicate(operands).value_or(0) != 0;
    uint32_t result = thread.cta.barriers->sync(thread, arrival);
    if (hasResult)
      setResult(results, result);
  });
}

FailureOr<Handler> prepareBarrierArrive(Operation *op) {
  auto barrier = cast<NVVM::BarrierArriveOp>(op);
  OptionalReader<uint32_t> id(barrier.getBarrierIdMutable());
  OperandReader<uint32_t> count(barrier.getNumberOfThreadsMutable());
  return Handler([=](Thread &thread, Values operands, Values) {
    BarrierTable::Arrival arrival;
    arrival.id = id(operands).value_or(0);
    arrival.count = count(operands);
    thread.cta.barriers->arrive(thread, arrival);
  });
}

FailureOr<Handler> prepareWarpBarrier(Operation *op) {
  OperandReader<uint32_t> mask(cast<NVVM::SyncWarpOp>(op).getMaskMutable());
  return Handler([=](Thread &thread, Values operands, Values results) {
    runWarpCollective(thread, mask(operands), operands, results,
                      [](ArrayRef<Lane> lanes) {
                        Clock clock;
                        for (const Lane &lane : lanes)
                          if (lane.thread)
                            lane.thread->release(clock);
                        for (const Lane &lane : lanes)
                          if (lane.thread)
                            lane.thread->acquire(clock);
                      });
  });
}

template <typename Op, bool isRelaxed>
FailureOr<Handler> prepareClusterArrive(Operation *op) {
  bool isAligned = cast<Op>(op).getAligned().has_value();
  return Handler([=](Thread &thread, Values, Values) {
    thread.cta.cluster.barriers->arrive(thread, isRelaxed, isAligned);
  });
}

FailureOr<Handler> prepareClusterWait(Operation *op) {
  bool isAligned = cast<NVVM::ClusterWaitOp>(op).getAligned().has_value();
  return Handler([=](Thread &thread, Values, Values) {
    thread.cta.cluster.barriers->wait(thread, isAligned);
  });
}

} // namespace

ArrayRef<OpEntry> emulator::getBarrierOps() {
  static const OpEntry entries[] = {
      {"nvvm.barrier0", prepareBarrier0},
      {"nvvm.barrier", prepareBarrier},
      {"nvvm.barrier.arrive", prepareBarrierArrive},
      {"nvvm.bar.warp.sync", prepareWarpBarrier},
      {"nvvm.cluster.arrive",
       prepareClusterArrive<NVVM::ClusterArriveOp, /*isRelaxed=*/false>},
      {"nvvm.cluster.arrive.relaxed",
       prepareClusterArrive<NVVM::ClusterArriveRelaxedOp, /*isRelaxed=*/true>},
      {"nvvm.cluster.wait", prepareClusterWait},
  };
  return entries;
}
