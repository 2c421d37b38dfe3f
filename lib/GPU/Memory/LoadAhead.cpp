//===- LoadAhead.cpp - what copies are told, one iteration ahead ----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A loop whose asynchronous copies read their addresses from global memory
//
//   for i { row = load index[i]; async_copy x[row] -> tile }
//
// waits in each iteration for what it could have loaded in the one before:
//
//   next = load index[0]
//   for i { row = next; next = load index[i + 1]; async_copy x[row] -> tile }
//
// The load stands before the copies, so that it is on its way while they are
// issued. It keeps its conditions: some threads may have nothing to copy, and
// copies for a later K step are made where there is one.
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/GPU/Passes.h"

#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/Analysis/TopologicalSortUtils.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/NVGPU/IR/NVGPUDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/SCF/Transforms/Transforms.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "nm_sparse/GPU/Support/Buffers.h"

namespace mlir::nm_sparse {
#define GEN_PASS_DEF_NMSPARSELOADAHEADPASS
#include "nm_sparse/GPU/Passes.h.inc"
} // namespace mlir::nm_sparse

using namespace mlir;
using namespace mlir::nm_sparse;

namespace {

/// The loads of one loop that tell its copies where to read.
class LoopLoads {
public:
  explicit LoopLoads(scf::ForOp loop) : loop(loop) {}

  void collect();
  bool empty() const { return loads.empty(); }
  /// Moves the loads to the front of the loop, and a copy of all that they
  /// need.
  void hoist(RewriterBase &b);
  LogicalResult pipeline(RewriterBase &b);

private:
  /// A load, the conditions on which it is made, and if they hold there, and
  /// what it and they are computed from.
  struct Load {
    memref::LoadOp op;
    SmallVector<std::pair<Value, bool>> guards;
    llvm::SetVector<Operation *> needed;
  };

  bool isKnownAhead(Value value, llvm::SetVector<Operation *> &needed);
  bool canMove(Load &load);

  scf::ForOp loop;
  SmallVector<Load> loads;
  /// The first operations of the loop, once the loads are there.
  llvm::SmallDenseSet<Operation *> early;
};

} // namespace

/// The operations of `loop` that compute `value`.
static llvm::SetVector<Operation *> getSlice(scf::ForOp loop, Value value) {
  llvm::SetVector<Operation *> slice;
  BackwardSliceOptions options;
  options.inclusive = true;
  options.omitBlockArguments = true;
  options.filter = [&](Operation *op) { return loop->isProperAncestor(op); };
  if (Operation *def = value.getDefiningOp(); def && options.filter(def))
    (void)getBackwardSlice(value, &slice, options);
  return slice;
}

/// Returns true if `value` can be computed an iteration ahead; adds what it is
/// computed from to `needed`.
bool LoopLoads::isKnownAhead(Value value,
                             llvm::SetVector<Operation *> &needed) {
  auto isCarried = [&](Value operand) {
    return llvm::is_contained(loop.getRegionIterArgs(), operand);
  };
  llvm::SetVector<Operation *> slice = getSlice(loop, value);
  needed.insert_range(slice);
  return !isCarried(value) && llvm::all_of(slice, [&](Operation *op) {
    return isMemoryEffectFree(op) && op->getNumRegions() == 0 &&
           llvm::none_of(op->getOperands(), isCarried);
  });
}

/// Returns true if `load` can be made at the front of its loop, on the
/// conditions that it has.
bool LoopLoads::canMove(Load &load) {
  Operation *child = load.op;
  for (Operation *parent = child->getParentOp(); parent != loop;
       child = parent, parent = parent->getParentOp()) {
    auto ifOp = dyn_cast<scf::IfOp>(parent);
    if (!ifOp || !isKnownAhead(ifOp.getCondition(), load.needed))
      return false;
    bool holds = child->getParentRegion() == &ifOp.getThenRegion();
    load.guards.emplace_back(ifOp.getCondition(), holds);
  }
  return llvm::all_of(load.op->getOperands(), [&](Value operand) {
    return isKnownAhead(operand, load.needed);
  });
}

void LoopLoads::collect() {
  Operation *launch = loop->getParentOfType<gpu::LaunchOp>();
  llvm::SetVector<Operation *> found;
  loop.walk([&](nvgpu::DeviceAsyncCopyOp copy) {
    if (copy->getParentOfType<scf::ForOp>() != loop)
      return;
    for (Value index : copy.getSrcIndices())
      found.insert_range(getSlice(loop, index));
    found.insert_range(getSlice(loop, copy.getSrc()));
    if (Value elements = copy.getSrcElements())
      found.insert_range(getSlice(loop, elements));
  });
  loop.walk([&](memref::LoadOp op) {
    Load load = {op, {}, {}};
    if (found.contains(op) && isRepeatable(op, launch) && canMove(load))
      loads.push_back(std::move(load));
  });
}

/// `load` where `condition` holds; what it is otherwise, nothing uses.
static scf::IfOp guardLoad(RewriterBase &b, memref::LoadOp load,
                           Value condition) {
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(load);
  Location loc = load.getLoc();
  auto ifOp = scf::IfOp::create(b, loc, load.getType(), condition,
                                /*withElseRegion=*/true);
  b.replaceAllUsesWith(load, ifOp.getResult(0));
  b.moveOpBefore(load, ifOp.thenBlock(), ifOp.thenBlock()->end());
  b.setInsertionPointToEnd(ifOp.thenBlock());
  scf::YieldOp::create(b, loc, load.getResult());
  b.setInsertionPointToEnd(ifOp.elseBlock());
  Value none = arith::ConstantOp::create(b, loc, b.getZeroAttr(load.getType()));
  scf::YieldOp::create(b, loc, none);
  return ifOp;
}

void LoopLoads::hoist(RewriterBase &b) {
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  IRMapping map;
  for (Load &load : loads) {
    for (Operation *op : topologicalSort(load.needed))
      if (!map.contains(op))
        early.insert(b.clone(*op, map));
    Location loc = load.op.getLoc();
    Value condition;
    auto add = [&](Operation *op) {
      early.insert(op);
      return op->getResult(0);
    };
    for (auto [guard, holds] : load.guards) {
      Value known = map.lookupOrDefault(guard);
      if (!holds) {
        Value one = add(arith::ConstantIntOp::create(b, loc, b.getI1Type(), 1));
        known = add(arith::XOrIOp::create(b, loc, known, one));
      }
      condition = condition
                      ? add(arith::AndIOp::create(b, loc, condition, known))
                      : known;
    }
    auto moved = cast<memref::LoadOp>(b.clone(*load.op, map));
    b.replaceOp(load.op, moved->getResults());
    early.insert(condition ? guardLoad(b, moved, condition).getOperation()
                           : moved.getOperation());
  }
}

/// A load where `predicate` holds, too.
static Operation *predicateLoad(RewriterBase &b, Operation *op,
                                Value predicate) {
  if (isMemoryEffectFree(op))
    return op;
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(op);
  if (auto load = dyn_cast<memref::LoadOp>(op))
    return guardLoad(b, load, predicate);
  auto ifOp = dyn_cast<scf::IfOp>(op);
  if (!ifOp)
    return nullptr;
  Value both =
      arith::AndIOp::create(b, ifOp.getLoc(), predicate, ifOp.getCondition());
  ifOp.getConditionMutable().assign(both);
  return ifOp;
}

LogicalResult LoopLoads::pipeline(RewriterBase &b) {
  std::vector<std::pair<Operation *, unsigned>> order;
  for (Operation &op : loop.getBody()->without_terminator())
    order.emplace_back(&op, early.contains(&op) ? 0 : 1);
  scf::PipeliningOption options;
  options.getScheduleFn =
      [&](scf::ForOp, std::vector<std::pair<Operation *, unsigned>> &result) {
        result = order;
      };
  options.peelEpilogue = false;
  options.supportDynamicLoops = true;
  options.predicateFn = predicateLoad;
  b.setInsertionPoint(loop);
  if (failed(scf::pipelineForLoop(b, loop, options)))
    return loop.emitOpError("with loads that its copies depend on could not be "
                            "pipelined");
  return success();
}

namespace {
struct LoadAhead
    : public nm_sparse::impl::NMSparseLoadAheadPassBase<LoadAhead> {
  void runOnOperation() override {
    SmallVector<scf::ForOp> loops;
    getOperation()->walk([&](scf::ForOp loop) {
      if (loop->getParentOfType<gpu::LaunchOp>())
        loops.push_back(loop);
    });
    IRRewriter rewriter(&getContext());
    for (scf::ForOp loop : loops) {
      LoopLoads loads(loop);
      loads.collect();
      if (loads.empty())
        continue;
      loads.hoist(rewriter);
      if (failed(loads.pipeline(rewriter)))
        return signalPassFailure();
    }
  }
};
} // namespace
