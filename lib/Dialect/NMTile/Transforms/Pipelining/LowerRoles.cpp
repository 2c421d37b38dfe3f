//===- LowerRoles.cpp - roles, rings and loops as threads run them --------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The last pass that knows what the operations mean: it writes each where it
// stands, in the order of the code, so that what an operation lowers to has the
// values of those before it.
//
//===----------------------------------------------------------------------===//

#include "Pipelining/RingBarriers.h"
#include "Pipelining/RingPosition.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "nm_sparse/Dialect/NMTile/IR/NMTile.h"
#include "nm_sparse/Dialect/NMTile/Transforms/Passes.h"
#include "llvm/ADT/TypeSwitch.h"

namespace mlir::nm_sparse {
#define GEN_PASS_DEF_NMSPARSELOWERROLESPASS
#include "nm_sparse/Dialect/NMTile/Transforms/Passes.h.inc"
} // namespace mlir::nm_sparse

using namespace mlir;
using namespace mlir::nm_sparse;

namespace {

class RoleLowering {
public:
  explicit RoleLowering(MLIRContext *context) : b(context) {}

  void run(Operation *root);

private:
  void lower(Block &block);
  void lower(RingOp op) { rings.try_emplace(op.getRing(), b, op); }
  void lower(RingBeginOp op);
  void lower(RingAdvanceOp op);
  void lower(RingSlotOp op) { op.replaceAllUsesWith(at(op).slot); }
  void lower(RingMBarrierOp op);
  void lower(RingWaitOp op);
  void lower(RingCommitOp op) {
    ring(op).emitProducerArrival(at(op).slot, op.getStores());
  }
  void lower(RingReleaseOp op);
  void lower(RingDrainOp op);
  void lower(RoleBarrierOp op);
  void lower(WarpSpecializeOp op);
  void lower(YieldOp op);
  template <typename LoopOp>
  void lowerLoop(LoopOp op);

  Value constant(Location loc, int64_t v) {
    return arith::ConstantIndexOp::create(b, loc, v);
  }
  Value word(Location loc, int64_t v) {
    return arith::ConstantIntOp::create(b, loc, b.getI32Type(), v);
  }
  /// The lowered form of the ring, and of the position, of `op`.
  template <typename OpTy>
  RingBarriers &ring(OpTy op) {
    return rings.find(op.getRing())->second;
  }
  template <typename OpTy>
  RingPosition at(OpTy op) {
    return positions.lookup(op.getPosition());
  }
  Value getBarrier(RingBarriers &ring, RingState state, Value slot) {
    return state == RingState::Full ? ring.getFull(slot) : ring.getEmpty(slot);
  }
  /// The slot before `position` has been read by products in flight.
  void emitLateRelease(Location loc, RingBarriers &ring, RingPosition position,
                       Value condition, bool hasRead);
  /// `values`, with two for each position.
  SmallVector<Value> expand(ValueRange values);
  /// Lets those who use `before` use what `after` has in its place.
  void replace(ValueRange before, ValueRange after);
  /// Moves the body of one operation into another one's, and lowers it there.
  void moveBody(Region &from, Block *to);

  OpBuilder b;
  llvm::DenseMap<Value, RingBarriers> rings;
  llvm::DenseMap<Value, RingPosition> positions;
  /// The role that the lowering is in: its named barrier and its threads.
  std::pair<int64_t, int64_t> role;
  /// Lowered operations, whose results name what others lower to.
  SmallVector<Operation *> lowered;
};

} // namespace

void RoleLowering::lower(RingBeginOp op) {
  Location loc = op.getLoc();
  Value slot = op.getSlot() ? op.getSlot() : constant(loc, 0);
  // A wait for the phase before the first one returns at once: all is empty.
  Value parity = word(loc, op.getState() == RingState::Empty ? 1 : 0);
  positions[op.getPosition()] = {slot, parity};
}

void RoleLowering::lower(RingAdvanceOp op) {
  positions[op.getNext()] = at(op).advance(
      b, op.getLoc(), static_cast<int64_t>(op.getSteps()), ring(op).getSlots());
}

void RoleLowering::lower(RingMBarrierOp op) {
  op.replaceAllUsesWith(getBarrier(ring(op), op.getState(), at(op).slot));
}

void RoleLowering::lower(RingWaitOp op) {
  RingPosition position = at(op);
  ring(op).emitWait(getBarrier(ring(op), op.getState(), position.slot),
                    position.parity);
}

void RoleLowering::emitLateRelease(Location loc, RingBarriers &ring,
                                   RingPosition position, Value condition,
                                   bool hasRead) {
  auto ifOp = scf::IfOp::create(b, loc, condition, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(ifOp.thenBlock());
  ring.emitConsumerArrival(position.getPreviousSlot(b, loc, ring.getSlots()),
                           hasRead);
}

void RoleLowering::lower(RingReleaseOp op) {
  if (!op.getLate()) {
    ring(op).emitConsumerArrival(at(op).slot, /*hasRead=*/true);
    return;
  }
  // The K loop is an scf.for by now.
  auto loop = cast<scf::ForOp>(op->getParentOp());
  Value hasPrevious =
      arith::CmpIOp::create(b, op.getLoc(), arith::CmpIPredicate::ugt,
                            loop.getInductionVar(), loop.getLowerBound());
  emitLateRelease(op.getLoc(), ring(op), at(op), hasPrevious,
                  op.getByThreads());
}

void RoleLowering::lower(RingDrainOp op) {
  NVVM::WgmmaWaitGroupSyncOp::create(b, op.getLoc(), 0);
  if (op.getRelease())
    emitLateRelease(op.getLoc(), ring(op), at(op), op.getRelease(),
                    op.getByThreads());
}

void RoleLowering::lower(RoleBarrierOp op) {
  Location loc = op.getLoc();
  NVVM::BarrierOp::create(b, loc, TypeRange(), word(loc, role.first),
                          word(loc, role.second), NVVM::BarrierReductionAttr(),
                          Value());
}

void RoleLowering::lower(WarpSpecializeOp op) {
  Location loc = op.getLoc();
  auto consumers = static_cast<int64_t>(op.getConsumers());
  auto producers = static_cast<int64_t>(op.getProducers());
  // Which role it is stands first, right behind the barrier of the ring, and
  // what both roles compute next to its uses.
  Operation *first = op;
  while (first->getPrevNode() && isMemoryEffectFree(first->getPrevNode()))
    first = first->getPrevNode();
  b.setInsertionPoint(first);
  Value thread = gpu::ThreadIdOp::create(b, loc, gpu::Dimension::x);
  Value isConsumer = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult,
                                           thread, constant(loc, consumers));
  RingBarriers *shared = nullptr;
  op.walk([&](RingWaitOp wait) {
    if (ring(wait).getCluster() > 1)
      shared = &ring(wait);
  });
  b.setInsertionPoint(op);
  auto ifOp = scf::IfOp::create(b, loc, isConsumer, /*withElseRegion=*/true);
  // Others of its cluster may still write to the memory of a CTA, or arrive on
  // its mbarriers.
  if (shared)
    shared->emitClusterBarrier(/*orders=*/true);
  auto lowerRole = [&](Region &from, Block *to, std::pair<int64_t, int64_t> in,
                       std::optional<uint64_t> registers,
                       NVVM::SetMaxRegisterAction action) {
    role = in;
    b.setInsertionPointToStart(to);
    if (registers)
      NVVM::SetMaxRegisterOp::create(b, loc, *registers, action);
    moveBody(from, to);
  };
  lowerRole(op.getConsumerBody(), ifOp.thenBlock(),
            {kConsumerBarrier, consumers}, op.getConsumerRegisters(),
            NVVM::SetMaxRegisterAction::increase);
  lowerRole(op.getProducerBody(), ifOp.elseBlock(),
            {kProducerBarrier, producers}, op.getProducerRegisters(),
            NVVM::SetMaxRegisterAction::decrease);
}

void RoleLowering::lower(YieldOp op) {
  scf::YieldOp::create(b, op.getLoc(), expand(op.getResults()));
}

SmallVector<Value> RoleLowering::expand(ValueRange values) {
  SmallVector<Value> expanded;
  for (Value value : values) {
    if (!isa<RingPositionType>(value.getType())) {
      expanded.push_back(value);
      continue;
    }
    RingPosition position = positions.lookup(value);
    expanded.append({position.slot, position.parity});
  }
  return expanded;
}

void RoleLowering::replace(ValueRange before, ValueRange after) {
  for (Value value : before) {
    if (isa<RingPositionType>(value.getType())) {
      positions[value] = {after[0], after[1]};
      after = after.drop_front(2);
      continue;
    }
    value.replaceAllUsesWith(after.front());
    after = after.drop_front();
  }
}

void RoleLowering::moveBody(Region &from, Block *to) {
  if (to->mightHaveTerminator())
    to->getTerminator()->erase();
  to->getOperations().splice(to->end(), from.front().getOperations());
  lower(*to);
}

template <typename LoopOp>
void RoleLowering::lowerLoop(LoopOp op) {
  auto loop =
      scf::ForOp::create(b, op.getLoc(), op.getLowerBound(), op.getUpperBound(),
                         op.getStep(), expand(op.getInitArgs()));
  replace(op.getBody().getArguments(), loop.getBody()->getArguments());
  replace(op.getResults(), loop.getResults());
  moveBody(op.getBody(), loop.getBody());
}

void RoleLowering::lower(Block &block) {
  for (Operation &op : llvm::make_early_inc_range(block)) {
    b.setInsertionPoint(&op);
    bool isLowered = true;
    llvm::TypeSwitch<Operation *>(&op)
        .Case<KLoopOp, TileLoopOp>([&](auto loop) { lowerLoop(loop); })
        .Case<RingOp, RingBeginOp, RingAdvanceOp, RingSlotOp, RingMBarrierOp,
              RingWaitOp, RingCommitOp, RingReleaseOp, RingDrainOp,
              RoleBarrierOp, WarpSpecializeOp, YieldOp>(
            [&](auto known) { lower(known); })
        .Default([&](Operation *other) {
          isLowered = false;
          for (Region &region : other->getRegions())
            for (Block &inner : region)
              lower(inner);
        });
    if (isLowered)
      lowered.push_back(&op);
  }
}

void RoleLowering::run(Operation *root) {
  for (Region &region : root->getRegions())
    for (Block &block : region)
      lower(block);
  // Those inside a loop come before it.
  for (Operation *op : lowered) {
    op->dropAllUses();
    op->erase();
  }
}

/// The lowering finds what a ring is, and where one stands in it, from the
/// operations that make them.
static LogicalResult checkValues(Operation *root) {
  WalkResult result = root->walk([](Operation *op) {
    for (Value operand : op->getOperands()) {
      bool isRing = isa<RingType>(operand.getType());
      if (isRing && !operand.getDefiningOp<RingOp>()) {
        op->emitOpError("uses a ring that no nm_tile.ring sets up");
        return WalkResult::interrupt();
      }
      if (!isa<RingPositionType>(operand.getType()))
        continue;
      Operation *source = operand.getDefiningOp();
      if (!source)
        source = operand.getParentBlock()->getParentOp();
      if (!isa<RingBeginOp, RingAdvanceOp, KLoopOp, TileLoopOp>(source)) {
        op->emitOpError("uses a position in a ring that is from ")
            << source->getName()
            << "; legal are nm_tile.ring_begin, nm_tile.ring_advance and the "
               "loops of nm_tile";
        return WalkResult::interrupt();
      }
    }
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

namespace {

struct LowerRoles
    : public nm_sparse::impl::NMSparseLowerRolesPassBase<LowerRoles> {
  void runOnOperation() override {
    if (failed(checkValues(getOperation())))
      return signalPassFailure();
    RoleLowering(&getContext()).run(getOperation());
  }
};

} // namespace
