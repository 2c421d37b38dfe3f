//===- SpecializeWarps.cpp - warps that copy, warps that multiply ---------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Consumes the stages written by --nm-sparse-assign-stages where the schedule
// has producers. With S stages a launch
//
//   for w { copies(w) -> tile; product(tile) }; epilogue
//
// becomes (ring = S tiles, full and empty = S mbarriers each)
//
//   if (thread < consumers) {
//     for w { wait(full[s]); product(ring[s]); arrive(empty[s]); s = next(s) }
//     epilogue
//   } else {
//     for w { wait(empty[s]); copies(w) -> ring[s]; arrive(full[s]); ... }
//   }
//
// A producer thread does not wait for its copies: the mbarrier counts its
// arrival when they are done, so that S steps are in flight.
//
//===----------------------------------------------------------------------===//

#include "PersistentRoles.h"
#include "RingBarriers.h"
#include "RingPosition.h"
#include "RoleSetup.h"
#include "StagedLoop.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/IR/IRMapping.h"
#include "nm_sparse/Analysis/Occupancy.h"
#include "nm_sparse/Dialect/NMSparse/Transforms/Passes.h"
#include "llvm/ADT/TypeSwitch.h"

namespace mlir::nm_sparse {
#define GEN_PASS_DEF_NMSPARSESPECIALIZEWARPSPASS
#include "nm_sparse/Dialect/NMSparse/Transforms/Passes.h.inc"
} // namespace mlir::nm_sparse

using namespace mlir;
using namespace mlir::nm_sparse;

namespace {

/// Splits one launch.
class Specializer {
public:
  Specializer(gpu::LaunchOp launch, scf::ForOp loop, TileMatmulOp product,
              const Chip *chip)
      : launch(launch), loop(loop), product(product), b(loop),
        loc(product.getLoc()), stages(*getStage(product) + 1),
        consumers(product.getSchedule().getNumThreads()),
        producers(product.getSchedule().getProducers() * 32),
        turns(getProducerTurns(product, stages)), chip(chip), barriers(b, loc) {
  }

  LogicalResult run();

private:
  /// The copies of the loop, or what is left of it without them.
  enum class Role { Producer, Consumer };

  LogicalResult checkBody();
  void createRings();
  void createBarriers();
  void emitResidentCopies(ArrayRef<Operation *> copies, Role role);
  scf::ForOp emitLoop(Role role);
  void emitLateArrival(RingPosition position, Value step, Value first);
  void emitLastWait(scf::ForOp consumerLoop);
  void moveEpilogue(scf::ForOp consumerLoop);

  Value constant(int64_t v) {
    return arith::ConstantIndexOp::create(b, loc, v);
  }
  Value word(int64_t v) {
    return arith::ConstantIntOp::create(b, loc, b.getI32Type(), v);
  }
  Value equals(Value a, Value c) {
    return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, a, c);
  }
  DenseI64ArrayAttr getThreads(Role role) {
    return role == Role::Producer
               ? b.getDenseI64ArrayAttr({consumers, producers})
               : b.getDenseI64ArrayAttr({0, consumers});
  }
  /// Those that make a copy in the K loop.
  DenseI64ArrayAttr getLoopThreads() {
    return turns > 1 ? b.getDenseI64ArrayAttr({consumers, 32, turns})
                     : getThreads(Role::Producer);
  }
  /// Products of warpgroups overlap with the next wait for a stage.
  bool staysInFlight() {
    return product.getSchedule().getKind() == ScheduleKind::Wgmma;
  }
  void emitNamedBarrier(Role role);

  gpu::LaunchOp launch;
  scf::ForOp loop;
  TileMatmulOp product;
  OpBuilder b;
  Location loc;
  int64_t stages, consumers, producers;
  int64_t turns;    ///< Steps that producers copy at a time.
  const Chip *chip; ///< Null when it is not known.

  RoleSetup setup;
  SmallVector<std::pair<memref::AllocOp, Value>> rings;
  RingBarriers barriers;
  /// Producers may fill a tile by ordinary stores.
  bool stores = false;
};

} // namespace

static void setThreads(Operation *copy, DenseI64ArrayAttr threads) {
  llvm::TypeSwitch<Operation *>(copy)
      .Case<AsyncCopyOp, AsyncGatherOp, BulkCopyOp>(
          [&](auto op) { op.setThreadsAttr(threads); });
}

/// cp.async moves 4 bytes at least, so tiles of narrower elements may be filled
/// by ordinary stores, depending on how the source is aligned.
static bool mayStore(Operation *copy) {
  auto dst = cast<DestinationStyleOpInterface>(copy).getDpsInits()[0];
  return !isa<BulkCopyOp>(copy) &&
         cast<MemRefType>(dst.getType()).getElementTypeBitWidth() < 32;
}

LogicalResult Specializer::checkBody() {
  if (loop.getNumRegionIterArgs() != 1)
    return loop.emitOpError("must carry the accumulator alone to be split "
                            "between producers and consumers");
  for (Operation &op : loop.getBody()->without_terminator())
    if (&op != product && !isTileCopy(&op) && !isMemoryEffectFree(&op))
      return op.emitOpError("in a K loop that is split between producers and "
                            "consumers must be a copy or the product, or have "
                            "no effect on memory");
  return success();
}

void Specializer::createRings() {
  FailureOr<SmallVector<memref::AllocOp>> tiles = findStagedTiles(loop);
  for (memref::AllocOp tile : *tiles) {
    b.setInsertionPoint(tile);
    rings.emplace_back(tile,
                       createRing(b, tile, stages, product.getSchedule()));
  }
}

/// Sets the mbarriers up: all threads pass them after that.
void Specializer::createBarriers() {
  stores = llvm::any_of(*loop.getBody(), [](Operation &op) {
    return isTileCopy(&op) && mayStore(&op);
  });
  auto bulkCopies = loop.getBody()->getOps<BulkCopyOp>();
  auto bulkArrivals = static_cast<int64_t>(llvm::range_size(bulkCopies));
  b.setInsertionPoint(loop);
  int64_t copiers = getLoopThreads()[1];
  barriers.create(stages, copiers + (stores ? copiers / 32 : 0) + bulkArrivals,
                  consumers / 32, /*areAsync=*/bulkArrivals > 0);
}

void Specializer::emitNamedBarrier(Role role) {
  bool isProducer = role == Role::Producer;
  NVVM::BarrierOp::create(
      b, loc, TypeRange(),
      word(isProducer ? kProducerBarrier : kConsumerBarrier),
      word(isProducer ? producers : consumers), NVVM::BarrierReductionAttr(),
      Value());
}

/// The product before this one is over: its tiles, one slot back, are read.
void Specializer::emitLateArrival(RingPosition position, Value step,
                                  Value first) {
  Value hasPrevious =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ugt, step, first);
  auto ifOp = scf::IfOp::create(b, loc, hasPrevious, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(ifOp.thenBlock());
  barriers.emitConsumerArrival(position.getPreviousSlot(b, loc, stages),
                               /*hasRead=*/!staysInFlight());
}

/// Waits for the last product, if there is one. Only the producers of a
/// persistent CTA then fill its slot again.
void Specializer::emitLastWait(scf::ForOp consumerLoop) {
  if (!staysInFlight())
    return;
  NVVM::WgmmaWaitGroupSyncOp::create(b, loc, 0);
  if (!product.getSchedule().getPersistent())
    return;
  emitLateArrival({consumerLoop.getResult(1), consumerLoop.getResult(2)},
                  loop.getUpperBound(), loop.getLowerBound());
}

/// Copies before the loop, which the threads of `role` then read.
void Specializer::emitResidentCopies(ArrayRef<Operation *> copies, Role role) {
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

/// The part of the K loop that `role` runs. It also carries the slot of the
/// ring and the parity of the mbarrier's phase to wait for.
scf::ForOp Specializer::emitLoop(Role role) {
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

/// Everything after the loop, which has its result from `consumerLoop` now.
void Specializer::moveEpilogue(scf::ForOp consumerLoop) {
  SmallVector<Operation *> rest;
  Operation *roles = consumerLoop->getParentOp();
  for (Operation *op = roles->getNextNode(); op; op = op->getNextNode())
    if (op != loop && !isa<gpu::TerminatorOp>(op))
      rest.push_back(op);
  Operation *end = consumerLoop->getBlock()->getTerminator();
  for (Operation *op : rest) {
    op->moveBefore(end);
    op->walk([&](gpu::BarrierOp barrier) {
      b.setInsertionPoint(barrier);
      emitNamedBarrier(Role::Consumer);
      barrier.erase();
    });
  }
  loop.getResult(0).replaceAllUsesWith(consumerLoop.getResult(0));
}

LogicalResult Specializer::run() {
  if (failed(checkBody()) || failed(findStagedTiles(loop)))
    return failure();
  FailureOr<RoleSetup> sorted = sortRoleSetup(loop);
  if (failed(sorted))
    return failure();
  setup = *sorted;
  createRings();
  createBarriers();
  Value isConsumer =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult,
                            barriers.getThread(), constant(consumers));
  auto roles = scf::IfOp::create(b, loc, isConsumer, /*withElseRegion=*/true);

  std::optional<RegisterShares> registers;
  if (chip) {
    ScheduleAttr schedule = product.getSchedule();
    bool lean = schedule.getKind() == ScheduleKind::Mma
                    ? schedule.getTma()
                    : schedule.getKind() == ScheduleKind::Simt &&
                          !schedule.isPacked() && !schedule.getPersistent();
    registers = getRegisterShares(consumers, producers, *chip, lean);
  }

  b.setInsertionPointToStart(roles.elseBlock());
  if (registers)
    NVVM::SetMaxRegisterOp::create(b, loc, registers->producer,
                                   NVVM::SetMaxRegisterAction::decrease);
  emitResidentCopies(setup.producerCopies, Role::Producer);
  emitLoop(Role::Producer);

  b.setInsertionPointToStart(roles.thenBlock());
  if (registers)
    NVVM::SetMaxRegisterOp::create(b, loc, registers->consumer,
                                   NVVM::SetMaxRegisterAction::increase);
  for (Operation *op : setup.consumerRest)
    op->moveBefore(roles.thenBlock()->getTerminator());
  b.setInsertionPoint(roles.thenBlock()->getTerminator());
  emitResidentCopies(setup.consumerCopies, Role::Consumer);
  scf::ForOp consumerLoop = emitLoop(Role::Consumer);
  emitLastWait(consumerLoop);
  moveEpilogue(consumerLoop);

  loop.erase();
  for (auto &[tile, ring] : rings)
    tile.erase();
  for (ArrayRef<Operation *> copies :
       {ArrayRef(setup.producerCopies), ArrayRef(setup.consumerCopies)})
    for (Operation *copy : copies)
      copy->erase();
  return success();
}

namespace {

struct SpecializeWarps
    : public nm_sparse::impl::NMSparseSpecializeWarpsPassBase<SpecializeWarps> {
  using Base::Base;

  void runOnOperation() override {
    SmallVector<std::pair<gpu::LaunchOp, scf::ForOp>> loops;
    getOperation().walk([&](scf::ForOp loop) {
      auto launch = loop->getParentOfType<gpu::LaunchOp>();
      TileMatmulOp product = findStagedProduct(loop);
      if (launch && product && product.getSchedule().getProducers() > 0)
        loops.emplace_back(launch, loop);
    });
    for (auto [launch, loop] : loops) {
      TileMatmulOp product = findStagedProduct(loop);
      if (loop->getParentOp() != launch.getOperation()) {
        product.emitOpError("with producers must be in a K loop at the top of "
                            "its launch");
        return signalPassFailure();
      }
      const Chip *target = findChip(chip);
      if (failed(Specializer(launch, loop, product, target).run()))
        return signalPassFailure();
    }
  }
};

} // namespace
