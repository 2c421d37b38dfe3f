//===- RingRoles.cpp - what producers and consumers of a ring run ---------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Pipelining/RingRoles.h"

#include "Grid/PersistentRoles.h"
#include "Pipelining/StagedLoop.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::nm_sparse;

RingRoles::RingRoles(scf::ForOp loop, TileMatmulOp product)
    : WordMath(loop, product.getLoc()), loop(loop), product(product),
      stages(*getStage(product) + 1),
      consumers(product.getSchedule().getNumThreads()),
      producers(product.getSchedule().getProducers() * 32),
      turns(getProducerTurns(product, stages)), barriers(b, loc) {}

static void setThreads(Operation *copy, DenseI64ArrayAttr threads) {
  llvm::TypeSwitch<Operation *>(copy)
      .Case<AsyncCopyOp, AsyncGatherOp, BulkCopyOp>(
          [&](auto op) { op.setThreadsAttr(threads); });
}

void RingRoles::emitNamedBarrier(Role role) {
  bool isProducer = role == Role::Producer;
  NVVM::BarrierOp::create(
      b, loc, TypeRange(),
      word(isProducer ? kProducerBarrier : kConsumerBarrier),
      word(isProducer ? producers : consumers), NVVM::BarrierReductionAttr(),
      Value());
}

void RingRoles::emitLateArrival(RingPosition position, Value step,
                                Value first) {
  Value hasPrevious =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ugt, step, first);
  auto ifOp = scf::IfOp::create(b, loc, hasPrevious, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(ifOp.thenBlock());
  barriers.emitConsumerArrival(position.getPreviousSlot(b, loc, stages),
                               /*hasRead=*/!staysInFlight());
}

void RingRoles::emitLastWait(scf::ForOp consumerLoop) {
  if (!staysInFlight())
    return;
  NVVM::WgmmaWaitGroupSyncOp::create(b, loc, 0);
  if (!product.getSchedule().getPersistent())
    return;
  emitLateArrival({consumerLoop.getResult(1), consumerLoop.getResult(2)},
                  loop.getUpperBound(), loop.getLowerBound());
}

void RingRoles::emitResidentCopies(ArrayRef<Operation *> copies, Role role) {
  if (copies.empty())
    return;
  for (Operation *copy : copies) {
    b.insert(copy->clone());
    setThreads(&*std::prev(b.getInsertionPoint()), getThreads(role));
  }
  NVVM::CpAsyncCommitGroupOp::create(b, loc);
  NVVM::CpAsyncWaitGroupOp::create(b, loc, b.getI32IntegerAttr(0));
  emitNamedBarrier(role);
}

scf::ForOp RingRoles::emitLoop(Role role) {
  bool isProducer = role == Role::Producer;
  SmallVector<Value> inits;
  if (!isProducer)
    inits.push_back(loop.getInitArgs()[0]);
  Value first = constant(0), lower = loop.getLowerBound();
  Value step = loop.getStep();
  int64_t steps = isProducer ? turns : 1;
  if (steps > 1) {
    first = arith::DivUIOp::create(b, loc,
                                   arith::SubIOp::create(b, loc,
                                                         barriers.getThread(),
                                                         constant(consumers)),
                                   constant(32));
    lower = arith::AddIOp::create(b, loc, lower,
                                  arith::MulIOp::create(b, loc, first, step));
    step = arith::MulIOp::create(b, loc, step, constant(steps));
  }
  // A wait for the phase before the first one returns at once: all is empty.
  inits.append({first, word(isProducer ? 1 : 0)});
  auto split =
      scf::ForOp::create(b, loc, lower, loop.getUpperBound(), step, inits);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(split.getBody());
  RingPosition position = {split.getRegionIterArgs().drop_back().back(),
                           split.getRegionIterArgs().back()};
  Value slot = position.slot;
  barriers.emitWait(isProducer ? barriers.getEmpty(slot)
                               : barriers.getFull(slot),
                    position.parity);

  IRMapping map;
  map.map(loop.getInductionVar(), split.getInductionVar());
  if (!isProducer)
    map.map(loop.getRegionIterArg(0), split.getRegionIterArg(0));
  for (auto &[tile, ring] : rings)
    map.map(tile.getResult(),
            emitRingTile(b, tile.getLoc(), ring, slot, tile.getType()));
  NMSparseDialect::StageAttrHelper stage(loop.getContext());
  for (Operation &op : loop.getBody()->without_terminator()) {
    if (isProducer ? &op == product : isTileCopy(&op))
      continue;
    Operation *copy = b.clone(op, map);
    if (stage.isAttrPresent(copy))
      stage.removeAttr(copy);
    if (isTileCopy(copy))
      setThreads(copy, getLoopThreads());
    if (auto bulk = dyn_cast<BulkCopyOp>(copy)) {
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPoint(bulk);
      bulk.getMbarrierMutable().assign(barriers.getFull(slot));
    }
    if (auto consumer = dyn_cast<TileMatmulOp>(copy))
      consumer.setInFlight(staysInFlight());
  }
  if (isProducer)
    barriers.emitProducerArrival(slot, stores);
  else if (staysInFlight())
    emitLateArrival(position, split.getInductionVar(), split.getLowerBound());
  else
    barriers.emitConsumerArrival(slot, /*hasRead=*/true);

  RingPosition next = position.advance(b, loc, steps, stages);
  SmallVector<Value> carried;
  if (!isProducer)
    carried.push_back(map.lookup(product.getResult()));
  carried.append({next.slot, next.parity});
  scf::YieldOp::create(b, loc, carried);

  // What only the other role needed.
  for (Operation &op :
       llvm::make_early_inc_range(llvm::reverse(*split.getBody())))
    if (isOpTriviallyDead(&op))
      op.erase();
  return split;
}
