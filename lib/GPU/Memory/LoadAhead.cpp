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
// issued.
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
#include "nm_sparse/Dialect/NMSparse/Utils/Buffers.h"

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
  bool isUniform(scf::IfOp ifOp);
  bool canMove(memref::LoadOp load, llvm::SetVector<Operation *> &needed);

  scf::ForOp loop;
  SmallVector<memref::LoadOp> loads;
  /// The first operations of the loop, once the loads are there.
  llvm::SmallDenseSet<Operation *> early;
};

} // namespace

/// What `op` is computed from, in its loop.
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

/// Every iteration takes the same branch of `ifOp`, whatever memory holds.
bool LoopLoads::isUniform(scf::IfOp ifOp) {
  Value condition = ifOp.getCondition();
  if (auto argument = dyn_cast<BlockArgument>(condition))
    return argument.getOwner() != loop.getBody();
  return llvm::all_of(getSlice(loop, condition), [&](Operation *op) {
    return isMemoryEffectFree(op) &&
           llvm::none_of(op->getOperands(), [&](Value operand) {
             auto argument = dyn_cast<BlockArgument>(operand);
             return argument && argument.getOwner() == loop.getBody();
           });
  });
}

/// Whether `load` may be executed wherever its loop is; what it needs for that.
bool LoopLoads::canMove(memref::LoadOp load,
                        llvm::SetVector<Operation *> &needed) {
  for (Operation *parent = load->getParentOp(); parent != loop;
       parent = parent->getParentOp()) {
    auto ifOp = dyn_cast<scf::IfOp>(parent);
    if (!ifOp || !isUniform(ifOp))
      return false;
  }
  for (Value operand : load->getOperands())
    needed.insert_range(getSlice(loop, operand));
  return llvm::all_of(needed, [&](Operation *op) {
    if (!isMemoryEffectFree(op) || op->getNumRegions() != 0)
      return false;
    // What is carried from one iteration to the next is not known ahead.
    return llvm::none_of(op->getOperands(), [&](Value operand) {
      return llvm::is_contained(loop.getRegionIterArgs(), operand);
    });
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
  loop.walk([&](memref::LoadOp load) {
    llvm::SetVector<Operation *> needed;
    if (found.contains(load) && isRepeatable(load, launch) &&
        canMove(load, needed))
      loads.push_back(load);
  });
}

void LoopLoads::hoist(RewriterBase &b) {
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  IRMapping map;
  for (memref::LoadOp load : loads) {
    llvm::SetVector<Operation *> needed;
    (void)canMove(load, needed);
    for (Operation *op : topologicalSort(needed))
      if (!map.contains(op))
        early.insert(b.clone(*op, map));
    Operation *moved = b.clone(*load, map);
    early.insert(moved);
    b.replaceOp(load, moved->getResults());
  }
}

/// A load where `predicate` holds; what it is otherwise, nothing uses.
static Operation *predicateLoad(RewriterBase &b, Operation *op,
                                Value predicate) {
  if (isMemoryEffectFree(op))
    return op;
  auto load = dyn_cast<memref::LoadOp>(op);
  if (!load)
    return nullptr;
  Location loc = load.getLoc();
  auto ifOp = scf::IfOp::create(b, loc, load.getType(), predicate,
                                /*withElseRegion=*/true);
  b.replaceAllUsesWith(load, ifOp.getResult(0));
  b.moveOpBefore(load, ifOp.thenBlock(), ifOp.thenBlock()->end());
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToEnd(ifOp.thenBlock());
  scf::YieldOp::create(b, loc, load.getResult());
  b.setInsertionPointToEnd(ifOp.elseBlock());
  Value none = arith::ConstantOp::create(b, loc, b.getZeroAttr(load.getType()));
  scf::YieldOp::create(b, loc, none);
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
