//===- ExpandStages.cpp - multi-buffer and pipeline a staged K loop -------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Consumes the stages written by --nm-sparse-assign-stages. With S stages a
// loop
//
//   for w { copies(w) -> tile; product(tile) }
//
// becomes (ring = S tiles)
//
//   for s in 0..S-2 { copies(s) -> ring[s]; commit }
//   for w {
//     wait until at most S-2 groups are pending; barrier
//     if (w + S-1 exists) copies(w + S-1) -> ring[(w + S-1) % S]; commit
//     product(ring[w % S])
//   }
//
// One barrier a step suffices: it tells both that the tile has arrived for all
// threads and that all have left the tile which is about to be overwritten.
// Loops whose schedule has producers are --nm-sparse-specialize-warps'
// business.
//
//===----------------------------------------------------------------------===//

#include "Pipelining/StagedLoop.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/SCF/Transforms/Transforms.h"
#include "nm_sparse/Dialect/NMTile/IR/NMTile.h"
#include "nm_sparse/Dialect/NMTile/Transforms/Passes.h"

namespace mlir::nm_sparse {
#define GEN_PASS_DEF_NMSPARSEEXPANDSTAGESPASS
#include "nm_sparse/Dialect/NMTile/Transforms/Passes.h.inc"
} // namespace mlir::nm_sparse

using namespace mlir;
using namespace mlir::nm_sparse;

namespace {

/// Slot `((iv - lower) / step) % stages` of the ring, in 32 bits: the division
/// of a 64-bit index is a chain that the first load of each step waits for.
Value emitSlot(OpBuilder &b, Location loc, scf::ForOp loop, int64_t stages) {
  Type i32 = b.getI32Type();
  auto narrow = [&](Value v) -> Value {
    return arith::IndexCastUIOp::create(b, loc, i32, v);
  };
  Value distance = arith::SubIOp::create(b, loc, loop.getInductionVar(),
                                         loop.getLowerBound());
  Value trip =
      arith::DivUIOp::create(b, loc, narrow(distance), narrow(loop.getStep()));
  Value slot = arith::RemUIOp::create(
      b, loc, trip, arith::ConstantIntOp::create(b, loc, i32, stages));
  return arith::IndexCastUIOp::create(b, loc, b.getIndexType(), slot);
}

/// Replaces each of `tiles`, which the loop's copies fill, by a ring of
/// `stages` tiles.
void multiBuffer(scf::ForOp loop, ArrayRef<memref::AllocOp> tiles,
                 ScheduleAttr schedule, int64_t stages) {
  OpBuilder b(loop);
  for (memref::AllocOp tile : tiles) {
    b.setInsertionPoint(tile);
    Value ring = createTileRing(b, tile, stages, schedule);
    // A view of its own for each user: a stage must not wait for another's.
    for (OpOperand &use : llvm::make_early_inc_range(tile->getUses())) {
      if (isa<memref::DeallocOp>(use.getOwner())) {
        use.set(ring);
        continue;
      }
      b.setInsertionPoint(use.getOwner());
      Value slot = emitSlot(b, tile.getLoc(), loop, stages);
      use.set(emitRingTile(b, tile.getLoc(), ring, slot, tile.getType()));
    }
    tile.erase();
  }
}

/// Gives the product its own copy of the address computations that it shares
/// with the copies, and collects them: they belong to its stage.
llvm::SetVector<Operation *> isolateProduct(scf::ForOp loop,
                                            TileMatmulOp product) {
  llvm::SetVector<Operation *> slice;
  SmallVector<OpOperand *> worklist;
  for (OpOperand &operand : product->getOpOperands())
    worklist.push_back(&operand);
  llvm::DenseMap<Operation *, Operation *> cloned;
  while (!worklist.empty()) {
    OpOperand *use = worklist.pop_back_val();
    Operation *def = use->get().getDefiningOp();
    if (!def || def->getParentOp() != loop)
      continue;
    Operation *&copy = cloned[def];
    if (!copy) {
      OpBuilder b(product);
      if (!slice.empty())
        b.setInsertionPoint(slice.back());
      copy = b.clone(*def);
      slice.insert(copy);
      for (OpOperand &operand : copy->getOpOperands())
        worklist.push_back(&operand);
    } else {
      copy->moveBefore(slice.back());
      slice.remove(copy);
      slice.insert(copy);
      for (OpOperand &operand : copy->getOpOperands())
        worklist.push_back(&operand);
    }
    use->set(copy->getResult(cast<OpResult>(use->get()).getResultNumber()));
  }
  return slice;
}

/// Runs `op` only where `predicate` holds. Groups are committed regardless:
/// waits count them.
Operation *predicateOp(RewriterBase &rewriter, Operation *op, Value predicate) {
  if (isMemoryEffectFree(op) || isa<NVVM::CpAsyncCommitGroupOp>(op))
    return op;
  if (!isa<AsyncCopyOp, AsyncGatherOp>(op))
    return nullptr;
  auto ifOp = scf::IfOp::create(rewriter, op->getLoc(), predicate,
                                /*withElseRegion=*/false);
  op->moveBefore(ifOp.thenBlock()->getTerminator());
  return ifOp;
}

LogicalResult expandLoop(RewriterBase &rewriter, scf::ForOp loop,
                         TileMatmulOp product, int64_t stages) {
  int64_t last = stages - 1;
  OpBuilder b(product);
  Location loc = product.getLoc();
  Operation *commit = NVVM::CpAsyncCommitGroupOp::create(b, loc);
  Operation *wait =
      NVVM::CpAsyncWaitGroupOp::create(b, loc, b.getI32IntegerAttr(stages - 2));
  Operation *barrier = gpu::BarrierOp::create(b, loc);
  llvm::SetVector<Operation *> slice = isolateProduct(loop, product);
  // Originals that only the product used.
  SmallVector<Operation *> body;
  for (Operation &op : loop.getBody()->without_terminator())
    body.push_back(&op);
  for (Operation *op : llvm::reverse(body))
    if (isOpTriviallyDead(op) && !slice.contains(op))
      rewriter.eraseOp(op);

  std::vector<std::pair<Operation *, unsigned>> order;
  order.emplace_back(wait, last);
  order.emplace_back(barrier, last);
  for (Operation &op : loop.getBody()->without_terminator())
    if (&op != wait && &op != barrier && &op != commit && &op != product &&
        !slice.contains(&op))
      order.emplace_back(&op, 0);
  order.emplace_back(commit, 0);
  for (Operation &op : loop.getBody()->without_terminator())
    if (slice.contains(&op))
      order.emplace_back(&op, last);
  order.emplace_back(product, last);

  scf::PipeliningOption options;
  options.getScheduleFn =
      [&](scf::ForOp, std::vector<std::pair<Operation *, unsigned>> &result) {
        result = order;
      };
  options.peelEpilogue = false;
  options.supportDynamicLoops = true;
  options.predicateFn = predicateOp;
  rewriter.setInsertionPoint(loop);
  if (failed(scf::pipelineForLoop(rewriter, loop, options)))
    return product.emitOpError("is in a loop that could not be pipelined");
  return success();
}

/// Returns true if a copy in `loop` reads `buffer`, say a gather its index.
bool isReadByCopies(KLoopOp loop, Value buffer) {
  WalkResult result = loop->walk([&](Operation *op) {
    if (!isa<AsyncCopyOp, AsyncGatherOp>(op))
      return WalkResult::advance();
    for (Value operand : op->getOperands()) {
      while (auto view = operand.getDefiningOp<ViewLikeOpInterface>())
        operand = view.getViewSource();
      if (operand == buffer)
        return WalkResult::interrupt();
    }
    return WalkResult::advance();
  });
  return result.wasInterrupted();
}

/// Tiles that copies of the loop read must have arrived when it starts. Tiles
/// that only the product reads join the first group, for which the loop waits.
void waitForResidentCopies(KLoopOp loop) {
  Operation *lastCopy = nullptr;
  for (Operation &op : *loop->getBlock()) {
    if (&op == loop)
      break;
    auto copy = dyn_cast<AsyncCopyOp>(op);
    if (copy && isReadByCopies(loop, copy.getDst()))
      lastCopy = &op;
  }
  if (!lastCopy)
    return;
  OpBuilder b(lastCopy->getContext());
  b.setInsertionPointAfter(lastCopy);
  Location loc = lastCopy->getLoc();
  NVVM::CpAsyncCommitGroupOp::create(b, loc);
  NVVM::CpAsyncWaitGroupOp::create(b, loc, b.getI32IntegerAttr(0));
  gpu::BarrierOp::create(b, loc);
}

struct ExpandStages
    : public nm_sparse::impl::NMSparseExpandStagesPassBase<ExpandStages> {
  void runOnOperation() override {
    SmallVector<KLoopOp> loops;
    getOperation()->walk([&](KLoopOp loop) {
      TileMatmulOp product = findStagedProduct(loop);
      if (product && product.getSchedule().getProducers() == 0)
        loops.push_back(loop);
    });
    IRRewriter rewriter(&getContext());
    for (KLoopOp loop : loops) {
      FailureOr<SmallVector<memref::AllocOp>> tiles = findStagedTiles(loop);
      if (failed(tiles))
        return signalPassFailure();
      auto stages = static_cast<int64_t>(*loop.getStages());
      TileMatmulOp product = loop.getProduct();
      waitForResidentCopies(loop);
      scf::ForOp expanded = lowerToFor(rewriter, loop);
      multiBuffer(expanded, *tiles, product.getSchedule(), stages);
      if (failed(expandLoop(rewriter, expanded, product, stages)))
        return signalPassFailure();
    }
  }
};

} // namespace
