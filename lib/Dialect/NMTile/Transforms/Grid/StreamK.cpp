//===- StreamK.cpp - persistent CTAs that end together --------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// With T tiles and G persistent CTAs, the last wave occupies T mod G CTAs.
// Under `stream_k` each CTA computes whole tiles, F = T / G - 1 of them or
// none, and then its share of the K steps of all that are left, one to two
// tiles:
//
//   tile        | F            | F + 1        | F + 2        | ...
//   CTA         |<---- c ---->|<--- c + 1 --->|<--- c + 2 --->|
//
// As a share is at least as long as a tile, no more than two CTAs have a part
// in one. The one that computes its end does so first, and leaves the sum in a
// workspace in device memory; the other one finds it there at the end, adds its
// own and goes on with the epilogue. Should it come first, it leaves its sum
// instead: nobody waits, and as two numbers have the same sum in either order,
// the result does not depend on who comes last. It does depend on where tiles
// are cut: the sum of a tile that is shared is rounded otherwise than that of
// one that is not, so the last bits of a token's result depend on the number of
// tokens, its place among them, and the number of CTAs.
//
//===----------------------------------------------------------------------===//

#include "Grid/PartExchange.h"
#include "Grid/PersistentRoles.h"
#include "nm_sparse/Dialect/NMTile/Utils/IndexMath.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/ValueBoundsOpInterface.h"
#include "nm_sparse/Dialect/NMTile/IR/NMTile.h"
#include "nm_sparse/Dialect/NMTile/Transforms/Passes.h"

namespace mlir::nm_sparse {
#define GEN_PASS_DEF_NMSPARSESTREAMKPASS
#include "nm_sparse/Dialect/NMTile/Transforms/Passes.h.inc"
} // namespace mlir::nm_sparse

using namespace mlir;
using namespace mlir::nm_sparse;

namespace {

/// Shares the last tiles of one launch.
class Streamer : private IndexEmitter {
public:
  Streamer(gpu::LaunchOp launch, TileMatmulOp product)
      : IndexEmitter(launch, product.getLoc()), launch(launch),
        product(product),
        exchange(b, product, /*parts=*/2, /*inThreadOrder=*/true,
                 [this] { RoleBarrierOp::create(b, loc); }) {}

  LogicalResult run();

private:
  void shareSteps(RoleLoops loops, int64_t numCtas);
  void renumber(RoleLoops loops);
  Value branch(Type type, Value condition, function_ref<Value()> emitThen,
               function_ref<Value()> emitElse);
  void startFromZero(RoleLoops loops);
  void exchangeParts(RoleLoops loops);

  gpu::LaunchOp launch;
  TileMatmulOp product;
  PartExchange exchange;

  /// K steps of a tile; the number of this CTA and of all.
  Value steps, cta, ctas;
  /// Whole tiles of each CTA, and of all of them.
  Value whole, wholeTiles;
  /// This CTA's share of the steps of all other tiles, the one of them that it
  /// begins in, and the parts of tiles that it has in all.
  Value first, end, firstTile, items;
  /// The steps of its tile that the consumers make, from `begin` to `stop`.
  Value begin, stop;
};

} // namespace

/// Emits the values that the roles share, before they part.
void Streamer::shareSteps(RoleLoops loops, int64_t numCtas) {
  KLoopOp loop = loops.steps;
  Value length = narrow(sub(loop.getUpperBound(), loop.getLowerBound()));
  steps = ceilDiv(length, narrow(loop.getStep()));
  cta = narrow(launch.getBlockIds().x);
  ctas = word(numCtas);
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
  // None where nothing is left.
  Value parts = sub(ceilDiv(end, steps), firstTile);
  items = widen(add(whole, parts));
}

/// Makes the loop over tiles one over the parts of this CTA.
void Streamer::renumber(RoleLoops loops) {
  TileLoopOp tiles = loops.tiles;
  KLoopOp loop = loops.steps;
  Value former = tiles.getInductionVar();
  b.setInsertionPoint(tiles);
  tiles.setLowerBound(constant(0));
  tiles.setUpperBound(items);
  tiles.setStep(constant(1));
  Operation *next = &tiles.getBody().front().front();
  b.setInsertionPoint(next);
  auto item = arith::IndexCastUIOp::create(b, loc, b.getI32Type(), former);
  Value zero = word(0);
  Value isWhole = compare(arith::CmpIPredicate::ult, item, whole);
  Value shared = add(firstTile, sub(item, whole));
  Value origin = mul(shared, steps);
  begin = select(isWhole, zero, sub(max(first, origin), origin));
  stop = select(isWhole, steps, sub(min(end, add(origin, steps)), origin));
  Value tile = widen(
      select(isWhole, add(cta, mul(item, ctas)), add(wholeTiles, shared)));
  former.replaceAllUsesExcept(tile, item);

  Value lower = loop.getLowerBound();
  auto getBound = [&](Value count) {
    return add(lower, mul(widen(count), loop.getStep()));
  };
  loop.setLowerBound(getBound(begin));
  loop.setUpperBound(getBound(stop));
  SmallVector<Operation *> perItem;
  for (Operation *op = item; op != next; op = op->getNextNode())
    perItem.push_back(op);
  sinkToFirstUse(perItem);
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
  KLoopOp loop = loops.steps;
  OpOperand &carried = loop.getInitsMutable().front();
  Value init = carried.get();
  if (matchPattern(init, m_AnyZeroFloat()) || matchPattern(init, m_Zero()))
    return;
  b.setInsertionPoint(loop);
  Value none = arith::ConstantOp::create(b, loc, b.getZeroAttr(init.getType()));
  Value hasBegin = compare(arith::CmpIPredicate::eq, begin, word(0));
  Operation *read = init.getDefiningOp<vector::TransferReadOp>();
  bool isOwn = read && read->getBlock() == loop->getBlock() && init.hasOneUse();
  Value start = branch(
      init.getType(), hasBegin,
      [&] {
        if (isOwn)
          read->moveBefore(b.getInsertionBlock(), b.getInsertionPoint());
        return init;
      },
      [&] { return none; });
  carried.set(start);
}

/// Everything after the K loop runs in the CTA that has all of a tile, on the
/// sum of both parts.
void Streamer::exchangeParts(RoleLoops loops) {
  Value acc = loops.steps.getResult(0);
  Operation *drain = findDrain(loops.steps);
  Operation *terminator = drain->getBlock()->getTerminator();
  SmallVector<Operation *> rest;
  for (Operation *op = drain->getNextNode(); op != terminator;
       op = op->getNextNode())
    rest.push_back(op);

  b.setInsertionPointAfter(drain);
  auto boolean = [&](bool v) -> Value {
    return arith::ConstantIntOp::create(b, loc, b.getI1Type(), v);
  };
  Value one = word(1);
  Value lacksBegin = compare(arith::CmpIPredicate::ne, begin, word(0));
  Value lacksEnd = compare(arith::CmpIPredicate::ne, stop, steps);
  Value isPart = arith::OrIOp::create(b, loc, lacksBegin, lacksEnd);
  // A CTA shares a tile with the one before it in its own slot, and one with
  // the CTA after it in that one's. Nothing comes before CTA 0: its slot stays
  // empty.
  Value slot = widen(select(lacksBegin, cta, add(cta, one)));
  Value part = widen(lacksBegin), other = widen(lacksEnd);
  auto no = [&] { return boolean(false); };
  auto leavePart = [&] {
    exchange.write(acc, slot, part);
    return exchange.emitArrival(slot);
  };
  // The end of a tile is where its CTA starts, and there before the begin.
  auto findOther = [&] {
    Value isThere = branch(b.getI1Type(), lacksBegin, no,
                           [&] { return exchange.emitLateCheck(slot); });
    return branch(
        b.getI1Type(), isThere, [&] { return boolean(true); }, leavePart);
  };
  Value isSecond = branch(b.getI1Type(), isPart, findOther, no);
  Value sum = branch(
      acc.getType(), isSecond,
      [&] { return exchange.addParts(acc, exchange.read(slot, other)); },
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

/// No tile can be left over that two CTAs share.
static bool isEven(RoleLoops loops, int64_t ctas) {
  KLoopOp loop = loops.steps;
  std::optional<int64_t> tiles =
      getConstantIntValue(loops.tiles.getUpperBound());
  std::optional<int64_t> lower = getConstantIntValue(loop.getLowerBound());
  std::optional<int64_t> upper = getConstantIntValue(loop.getUpperBound());
  std::optional<int64_t> step = getConstantIntValue(loop.getStep());
  if (lower && upper && step && *upper - *lower <= *step)
    return true;
  return tiles && (*tiles <= ctas || *tiles % ctas == 0);
}

LogicalResult Streamer::run() {
  auto roles = product->getParentOfType<WarpSpecializeOp>();
  if (!roles)
    return product.emitOpError("under stream_k must be in a launch that "
                               "--nm-sparse-specialize-warps has split");
  // Where there are fewer tiles than CTAs, those without one are not launched:
  // they would have no share.
  FailureOr<int64_t> numCtas = ValueBoundsConstraintSet::computeConstantBound(
      presburger::BoundType::UB, {launch.getGridSizeX()},
      /*stopCondition=*/nullptr, /*closedUB=*/true);
  if (failed(numCtas))
    return launch.emitOpError(
        "under stream_k needs a bound of grid x, the number of persistent "
        "CTAs; got a value that has none: run --nm-sparse-persist first");
  // One CTA has nobody to share with.
  if (*numCtas == 1)
    return success();
  auto loops = findRoleLoops(launch, roles, product);
  if (failed(loops))
    return failure();
  auto [consumers, producers] = *loops;
  if (isEven(consumers, *numCtas))
    return success();
  b.setInsertionPoint(launch);
  exchange.allocate(arith::ConstantIndexOp::create(b, loc, *numCtas));
  b.setInsertionPoint(roles);
  shareSteps(consumers, *numCtas);
  renumber(producers);
  renumber(consumers);
  startFromZero(consumers);
  exchangeParts(consumers);
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
      if (launch && op.getSchedule().isStreamK())
        products.emplace_back(launch, op);
    });
    for (auto [launch, product] : products)
      if (failed(Streamer(launch, product).run()))
        return signalPassFailure();
  }
};

} // namespace
