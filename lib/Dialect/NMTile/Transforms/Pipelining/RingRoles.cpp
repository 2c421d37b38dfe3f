//===- RingRoles.cpp - what producers and consumers of a ring run ---------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Pipelining/RingRoles.h"
#include "Pipelining/StagedLoop.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::nm_sparse;

/// How many steps the producer warps of `product` copy at a time: 1, all warps
/// the same, or as many as there are warps, each a step of its own.
static int64_t getProducerTurns(TileMatmulOp product, int64_t slots) {
  // A step takes some 350 cycles from the wait for its slot to the last copy,
  // in which the warps of a small tile have little to do: one after another
  // they would never fill the ring. That needs two slots for each warp (with
  // one, 256x4096x4096 takes 20.3 us instead of 17.8), and no more copies of a
  // thread than it makes without a loop (with 32, 7.2 instead of 6.5). From
  // tile to tile the warps of a persistent CTA would have to change their
  // turns.
  ScheduleAttr schedule = product.getSchedule();
  int64_t warps = schedule.getProducers();
  // One thread starts all bulk copies of a step.
  if (!schedule.getRingUse().producerTurns || schedule.isBulk() ||
      schedule.isPersistent() || warps == 0 || slots < 2 * warps)
    return 1;
  auto x = cast<MemRefType>(product.getLhs().getType());
  constexpr int64_t copyBits = 128, mostCopies = 16;
  bool isSmall = x.getNumElements() * x.getElementTypeBitWidth() <=
                 mostCopies * 32 * copyBits;
  return isSmall ? warps : 1;
}

RingRoles::RingRoles(KLoopOp loop, TileMatmulOp product)
    : IndexEmitter(loop, product.getLoc()), loop(loop), product(product),
      stages(static_cast<int64_t>(*loop.getStages())),
      consumers(product.getSchedule().getNumThreads()),
      producers(product.getSchedule().getProducers() * 32),
      turns(getProducerTurns(product, stages)) {}

static void setThreads(Operation *copy, DenseI64ArrayAttr threads) {
  llvm::TypeSwitch<Operation *>(copy)
      .Case<AsyncCopyOp, AsyncGatherOp, BulkCopyOp>(
          [&](auto op) { op.setThreadsAttr(threads); });
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
  RoleBarrierOp::create(b, loc);
}

/// The loop of `role`, whose body is still empty. Producers that take turns
/// each begin at a step, and a slot, of their own.
KLoopOp RingRoles::createLoop(Role role) {
  bool isProducer = role == Role::Producer;
  Value first, lower = loop.getLowerBound(), step = loop.getStep();
  if (isProducer && turns > 1) {
    Value thread = gpu::ThreadIdOp::create(b, loc, gpu::Dimension::x);
    first = arith::DivUIOp::create(
        b, loc, arith::SubIOp::create(b, loc, thread, constant(consumers)),
        constant(32));
    lower = arith::AddIOp::create(b, loc, lower,
                                  arith::MulIOp::create(b, loc, first, step));
    step = arith::MulIOp::create(b, loc, step, constant(turns));
  }
  SmallVector<Value> inits;
  if (!isProducer)
    inits.push_back(loop.getInitArgs()[0]);
  inits.push_back(RingBeginOp::create(
      b, loc, isProducer ? RingState::Empty : RingState::Full, ring, first));
  return KLoopOp::create(b, loc, lower, loop.getUpperBound(), step, inits);
}

/// The step at the position of the loop: what `role` has of it, between the
/// wait for its slot and the arrival there.
void RingRoles::emitBody(Role role, KLoopOp split) {
  bool isProducer = role == Role::Producer;
  Value position = split.getRingPosition();
  RingWaitOp::create(b, loc, isProducer ? RingState::Empty : RingState::Full,
                     ring, position);
  Value slot = RingSlotOp::create(b, loc, position);
  IRMapping map;
  map.map(loop.getInductionVar(), split.getInductionVar());
  if (!isProducer)
    map.map(loop.getRegionIterArgs()[0], split.getRegionIterArgs()[0]);
  for (auto &[tile, tiles] : tileRings)
    map.map(tile.getResult(),
            emitRingTile(b, tile.getLoc(), tiles, slot, tile.getType()));
  for (Operation &op : loop.getBody().front().without_terminator()) {
    if (isProducer ? &op == product : isTileCopy(&op))
      continue;
    Operation *copy = b.clone(op, map);
    if (isTileCopy(copy))
      setThreads(copy, getLoopThreads());
    if (auto bulk = dyn_cast<BulkCopyOp>(copy)) {
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPoint(bulk);
      bulk.getMbarrierMutable().assign(RingMBarrierOp::create(
          b, loc,
          LLVM::LLVMPointerType::get(
              b.getContext(), nvgpu::NVGPUDialect::kSharedMemoryAddressSpace),
          RingState::Full, ring, position));
    }
    if (auto consumer = dyn_cast<TileMatmulOp>(copy))
      consumer.setInFlight(getUse().staysInFlight);
  }
  // The accelerator arrives itself.
  if (isProducer && !product.getSchedule().isBulk())
    RingCommitOp::create(b, loc, ring, position, stores);
  if (!isProducer)
    RingReleaseOp::create(
        b, loc, ring, position, /*late=*/getUse().staysInFlight,
        /*by_threads=*/getUse().staysInFlight && getUse().readByThreads);
  Value next =
      RingAdvanceOp::create(b, loc, ring, position, isProducer ? turns : 1);
  SmallVector<Value> carried;
  if (!isProducer)
    carried.push_back(map.lookup(product.getResult()));
  carried.push_back(next);
  YieldOp::create(b, loc, carried);
}

KLoopOp RingRoles::emitLoop(Role role) {
  KLoopOp split = createLoop(role);
  OpBuilder::InsertionGuard guard(b);
  Block &body = split.getBody().front();
  b.setInsertionPointToStart(&body);
  emitBody(role, split);
  // Erase the operations that only the other role needed.
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(body)))
    if (isOpTriviallyDead(&op))
      op.erase();
  return split;
}

void RingRoles::emitDrain(KLoopOp consumerLoop) {
  if (!getUse().staysInFlight)
    return;
  Value any;
  if (product.getSchedule().isPersistent())
    any = compare(arith::CmpIPredicate::ugt, loop.getUpperBound(),
                  loop.getLowerBound());
  RingDrainOp::create(b, loc, ring, consumerLoop.getRingResult(), any,
                      getUse().readByThreads);
}
