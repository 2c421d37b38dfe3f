//===- StreamK.cpp - persistent CTAs that end together --------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Of T tiles and G persistent CTAs, the last wave occupies T mod G of them.
// Under `stream_k` each CTA computes whole tiles, T / G - 1 of them, and then
// its share of the K steps of all that are left, one to two tiles:
//
//   tile        | F            | F + 1        | F + 2        | ...
//   CTA         |<---- c ---->|<--- c + 1 --->|<--- c + 2 --->|
//
// As a share is at least as long as a tile, no more than two CTAs have a part
// in one. The one that computes its end does so first, and leaves the sum in a
// workspace in device memory; the other one finds it there at the end, adds its
// own and goes on with the epilogue. Should it come first, it leaves its sum
// instead: nobody waits, and as two numbers have the same sum in either order,
// the result does not depend on who comes last.
//
//===----------------------------------------------------------------------===//

#include "PartExchange.h"
#include "PersistentRoles.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"
#include "nm_sparse/Dialect/NMSparse/IR/NMSparse.h"
#include "nm_sparse/Dialect/NMSparse/Transforms/Passes.h"

namespace mlir::nm_sparse {
#define GEN_PASS_DEF_NMSPARSESTREAMKPASS
#include "nm_sparse/Dialect/NMSparse/Transforms/Passes.h.inc"
} // namespace mlir::nm_sparse

using namespace mlir;
using namespace mlir::nm_sparse;

namespace {

/// The loops of one role, and the K steps of a tile that the inner one makes,
/// from `begin` to `stop`.
struct RoleLoops {
  scf::ForOp tiles, ring;
  Value begin, stop;
};

/// Shares the last tiles of one launch.
class Streamer {
public:
  Streamer(gpu::LaunchOp launch, TileMatmulOp product)
      : launch(launch), product(product), b(launch), loc(product.getLoc()),
        exchange(b, product, /*parts=*/2, [this] { emitConsumerBarrier(); }) {}

  LogicalResult run();

private:
  /// In 32 bits, which number more K steps than any CTA has time for: a 64-bit
  /// division is a call.
  Value word(int64_t v) {
    return arith::ConstantIntOp::create(b, loc, b.getI32Type(), v);
  }
  Value constant(int64_t v) {
    return arith::ConstantIndexOp::create(b, loc, v);
  }
  Value narrow(Value v) {
    return b.createOrFold<arith::IndexCastUIOp>(loc, b.getI32Type(), v);
  }
  Value widen(Value v) {
    return b.createOrFold<arith::IndexCastUIOp>(loc, b.getIndexType(), v);
  }
  Value add(Value a, Value c) {
    return b.createOrFold<arith::AddIOp>(loc, a, c);
  }
  Value sub(Value a, Value c) {
    return b.createOrFold<arith::SubIOp>(loc, a, c);
  }
  Value mul(Value a, Value c) {
    return b.createOrFold<arith::MulIOp>(loc, a, c);
  }
  Value div(Value a, Value c) {
    return b.createOrFold<arith::DivUIOp>(loc, a, c);
  }
  Value ceilDiv(Value a, Value c) {
    return b.createOrFold<arith::CeilDivUIOp>(loc, a, c);
  }
  Value min(Value a, Value c) {
    return b.createOrFold<arith::MinUIOp>(loc, a, c);
  }
  Value max(Value a, Value c) {
    return b.createOrFold<arith::MaxUIOp>(loc, a, c);
  }
  Value compare(arith::CmpIPredicate predicate, Value a, Value c) {
    return b.createOrFold<arith::CmpIOp>(loc, predicate, a, c);
  }
  Value select(Value condition, Value a, Value c) {
    return b.createOrFold<arith::SelectOp>(loc, condition, a, c);
  }

  FailureOr<RoleLoops> findLoops(Block *role);
  void emitConsumerBarrier();
  void shareSteps(RoleLoops loops);
  void renumber(RoleLoops &loops);
  Value branch(Type type, Value condition, function_ref<Value()> emitThen,
               function_ref<Value()> emitElse);
  void startFromZero(RoleLoops loops);
  void exchangeParts(RoleLoops loops);

  gpu::LaunchOp launch;
  TileMatmulOp product;
  OpBuilder b;
  Location loc;
  PartExchange exchange;

  /// K steps of a tile; the number of this CTA and of all.
  Value steps, cta, ctas;
  /// Whole tiles of each CTA, and of all of them.
  Value whole, wholeTiles;
  /// This CTA's share of the steps of all other tiles, the one of them that it
  /// begins in, and the parts of tiles that it has in all.
  Value first, end, firstTile, items;
};

} // namespace

FailureOr<RoleLoops> Streamer::findLoops(Block *role) {
  Region &body = launch.getBody();
  for (auto loop : role->getOps<scf::ForOp>()) {
    scf::ForOp ring = findRing(loop.getBody());
    if (ring && loop.getLowerBound() == launch.getBlockIds().x &&
        loop.getStep() == launch.getGridSize().x &&
        llvm::all_of(ring->getOperands().take_front(3), [&](Value bound) {
          return bound.getParentRegion()->isAncestor(&body);
        }))
      return RoleLoops{loop, ring, Value(), Value()};
  }
  return product.emitOpError("under stream_k must be in a launch whose roles "
                             "loop over tiles as --nm-sparse-persist leaves "
                             "them");
}

void Streamer::emitConsumerBarrier() {
  NVVM::BarrierOp::create(b, loc, TypeRange(), word(kConsumerBarrier),
                          word(product.getSchedule().getNumThreads()),
                          NVVM::BarrierReductionAttr(), Value());
}

/// What the roles have in common, before they part.
void Streamer::shareSteps(RoleLoops loops) {
  scf::ForOp ring = loops.ring;
  Value length = narrow(sub(ring.getUpperBound(), ring.getLowerBound()));
  steps = ceilDiv(length, narrow(ring.getStep()));
  cta = narrow(launch.getBlockIds().x);
  ctas = word(*getConstantIntValue(launch.getGridSizeX()));
  Value tiles = narrow(loops.tiles.getUpperBound());
  Value one = word(1);
  // Where tiles are fewer than CTAs, each is one share.
  whole = sub(max(div(tiles, ctas), one), one);
  wholeTiles = mul(whole, ctas);
  Value total = mul(sub(tiles, wholeTiles), steps);
  Value share = max(ceilDiv(total, ctas), steps);
  first = min(mul(cta, share), total);
  end = min(add(first, share), total);
  firstTile = div(first, steps);
  Value parts = sub(ceilDiv(end, steps), firstTile);
  Value hasShare = compare(arith::CmpIPredicate::ult, first, end);
  items = widen(add(whole, select(hasShare, parts, word(0))));
}

/// Makes the loop over tiles one over the parts of this CTA.
void Streamer::renumber(RoleLoops &loops) {
  scf::ForOp tiles = loops.tiles, ring = loops.ring;
  Value former = tiles.getInductionVar();
  b.setInsertionPoint(tiles);
  tiles.setLowerBound(constant(0));
  tiles.setUpperBound(items);
  tiles.setStep(constant(1));
  Operation *next = &tiles.getBody()->front();
  b.setInsertionPoint(next);
  auto item = arith::IndexCastUIOp::create(b, loc, b.getI32Type(), former);
  Value zero = word(0);
  Value isWhole = compare(arith::CmpIPredicate::ult, item, whole);
  Value shared = add(firstTile, sub(item, whole));
  Value origin = mul(shared, steps);
  Value begin = select(isWhole, zero, sub(max(first, origin), origin));
  Value stop =
      select(isWhole, steps, sub(min(end, add(origin, steps)), origin));
  Value tile = widen(
      select(isWhole, add(cta, mul(item, ctas)), add(wholeTiles, shared)));
  former.replaceAllUsesExcept(tile, item);
  loops.begin = begin;
  loops.stop = stop;

  Value lower = ring.getLowerBound();
  auto getBound = [&](Value count) {
    return add(lower, mul(widen(count), ring.getStep()));
  };
  Value newLower = getBound(begin);
  // The test for the first step.
  for (Operation *user : ring.getInductionVar().getUsers())
    if (isa<arith::CmpIOp>(user))
      user->replaceUsesOfWith(lower, newLower);
  ring.setLowerBound(newLower);
  ring.setUpperBound(getBound(stop));
  SmallVector<Operation *> perItem;
  for (Operation *op = item; op != next; op = op->getNextNode())
    perItem.push_back(op);
  sinkToFirstUse(perItem);
}

/// Where `ring` and what follows it have handed its last slot back.
static Operation *findHandover(scf::ForOp ring) {
  Operation *last = ring;
  for (Operation *op = ring->getNextNode(); op; op = op->getNextNode()) {
    bool hands = isa<NVVM::WgmmaWaitGroupSyncOp>(op);
    op->walk([&](NVVM::MBarrierArriveOp) { hands = true; });
    if (hands)
      last = op;
  }
  return last;
}

/// The value of `emitThen` where `condition` holds, else that of `emitElse`.
Value Streamer::branch(Type type, Value condition,
                       function_ref<Value()> emitThen,
                       function_ref<Value()> emitElse) {
  OpBuilder::InsertionGuard guard(b);
  auto ifOp =
      scf::IfOp::create(b, loc, type, condition, /*withElseRegion=*/true);
  b.setInsertionPointToStart(ifOp.thenBlock());
  scf::YieldOp::create(b, loc, emitThen());
  b.setInsertionPointToStart(ifOp.elseBlock());
  scf::YieldOp::create(b, loc, emitElse());
  return ifOp.getResult(0);
}

/// Only the CTA that has the begin of a tile starts from its initial value.
void Streamer::startFromZero(RoleLoops loops) {
  scf::ForOp ring = loops.ring;
  Value init = ring.getInitArgs().front();
  if (matchPattern(init, m_AnyZeroFloat()) || matchPattern(init, m_Zero()))
    return;
  b.setInsertionPoint(ring);
  Value none = arith::ConstantOp::create(b, loc, b.getZeroAttr(init.getType()));
  Value isBegin = compare(arith::CmpIPredicate::eq, loops.begin, word(0));
  ring.getInitArgsMutable()[0].set(select(isBegin, init, none));
}

/// Everything after the K loop runs in the CTA that has all of a tile, on the
/// sum of both parts.
void Streamer::exchangeParts(RoleLoops loops) {
  scf::ForOp ring = loops.ring;
  Value acc = ring.getResult(0);
  Operation *handover = findHandover(ring);
  Operation *terminator = ring->getBlock()->getTerminator();
  SmallVector<Operation *> rest;
  for (Operation *op = handover->getNextNode(); op != terminator;
       op = op->getNextNode())
    rest.push_back(op);

  b.setInsertionPointAfter(handover);
  auto boolean = [&](bool v) -> Value {
    return arith::ConstantIntOp::create(b, loc, b.getI1Type(), v);
  };
  Value one = word(1);
  Value isEnd = compare(arith::CmpIPredicate::ne, loops.begin, word(0));
  Value isBegin = compare(arith::CmpIPredicate::ne, loops.stop, steps);
  Value isPart = arith::OrIOp::create(b, loc, isEnd, isBegin);
  // A CTA shares tiles with the one before it and the one after it.
  Value slot = widen(select(isEnd, cta, add(cta, one)));
  Value part = arith::IndexCastUIOp::create(b, loc, b.getIndexType(), isEnd);
  Value other = arith::IndexCastUIOp::create(b, loc, b.getIndexType(), isBegin);
  auto no = [&] { return boolean(false); };
  auto leavePart = [&] {
    exchange.write(acc, slot, part);
    return exchange.emitArrival(slot);
  };
  // The end of a tile is where its CTA starts, and there before the begin.
  auto findOther = [&] {
    Value isThere = branch(b.getI1Type(), isEnd, no,
                           [&] { return exchange.emitLateCheck(slot); });
    return branch(
        b.getI1Type(), isThere, [&] { return boolean(true); }, leavePart);
  };
  Value isSecond = branch(b.getI1Type(), isPart, findOther, no);
  Value sum = branch(
      acc.getType(), isSecond,
      [&] { return exchange.add(acc, exchange.read(slot, other)); },
      [&] { return acc; });
  Value isDone = arith::OrIOp::create(
      b, loc, isSecond, arith::XOrIOp::create(b, loc, isPart, boolean(true)));
  auto ifDone = scf::IfOp::create(b, loc, isDone, /*withElseRegion=*/false);
  for (Operation *op : rest)
    op->moveBefore(ifDone.thenBlock()->getTerminator());
  acc.replaceUsesWithIf(sum, [&](OpOperand &use) {
    return ifDone->isProperAncestor(use.getOwner());
  });
}

LogicalResult Streamer::run() {
  scf::IfOp roles = findRoles(launch, product);
  if (!roles)
    return product.emitOpError("under stream_k must be in a launch that "
                               "--nm-sparse-specialize-warps has split");
  if (!getConstantIntValue(launch.getGridSizeX()))
    return launch.emitOpError("of persistent CTAs under stream_k must have a "
                              "known number of them");
  FailureOr<RoleLoops> consumers = findLoops(roles.thenBlock());
  FailureOr<RoleLoops> producers = findLoops(roles.elseBlock());
  if (failed(consumers) || failed(producers))
    return failure();
  exchange.allocate(launch.getGridSizeX());
  b.setInsertionPoint(roles);
  shareSteps(*consumers);
  renumber(*consumers);
  renumber(*producers);
  startFromZero(*consumers);
  exchangeParts(*consumers);
  b.setInsertionPointAfter(launch);
  exchange.release();
  return success();
}

namespace {

struct StreamK : public nm_sparse::impl::NMSparseStreamKPassBase<StreamK> {
  void runOnOperation() override {
    SmallVector<std::pair<gpu::LaunchOp, TileMatmulOp>> products;
    getOperation().walk([&](TileMatmulOp op) {
      auto launch = op->getParentOfType<gpu::LaunchOp>();
      if (launch && op.getSchedule().getStreamK())
        products.emplace_back(launch, op);
    });
    for (auto [launch, product] : products)
      if (failed(Streamer(launch, product).run()))
        return signalPassFailure();
  }
};

} // namespace
