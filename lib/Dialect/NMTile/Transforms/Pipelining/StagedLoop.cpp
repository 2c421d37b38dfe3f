//===- StagedLoop.cpp - K loops after --nm-sparse-assign-stages -----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Pipelining/StagedLoop.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"

using namespace mlir;
using namespace mlir::nm_sparse;

TileMatmulOp nm_sparse::findStagedProduct(KLoopOp loop) {
  return loop.getStages() && loop->getParentOfType<gpu::LaunchOp>()
             ? loop.getProduct()
             : TileMatmulOp();
}

scf::ForOp nm_sparse::lowerToFor(RewriterBase &rewriter, KLoopOp loop) {
  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPoint(loop);
  auto result = scf::ForOp::create(rewriter, loop.getLoc(),
                                   loop.getLowerBound(), loop.getUpperBound(),
                                   loop.getStep(), loop.getInitArgs());
  // The builder ends a body that carries nothing.
  if (result.getInitArgs().empty())
    rewriter.eraseOp(result.getBody()->getTerminator());
  Block *body = &loop.getBody().front();
  rewriter.setInsertionPoint(body->getTerminator());
  rewriter.replaceOpWithNewOp<scf::YieldOp>(body->getTerminator(),
                                            loop.getYieldedValues());
  rewriter.inlineBlockBefore(body, result.getBody(), result.getBody()->end(),
                             result.getBody()->getArguments());
  rewriter.replaceOp(loop, result.getResults());
  return result;
}

/// True when `alloc` is filled by a copy that transposes.
static bool isFilledTransposed(memref::AllocOp alloc) {
  return llvm::any_of(alloc->getUsers(), [](Operation *user) {
    if (auto copy = dyn_cast<AsyncCopyOp>(user))
      return copy.isTransposed();
    auto gather = dyn_cast<AsyncGatherOp>(user);
    return gather && gather.isTransposed();
  });
}

FailureOr<SmallVector<memref::AllocOp>>
nm_sparse::findStagedTiles(KLoopOp loop) {
  SmallVector<memref::AllocOp> tiles;
  for (Operation &op : loop.getBody().front()) {
    auto copy = dyn_cast<DestinationStyleOpInterface>(op);
    if (!copy)
      continue;
    auto alloc = copy.getDpsInits()[0].getDefiningOp<memref::AllocOp>();
    if (!alloc)
      return op.emitError("must write to an allocation of its own to be "
                          "multi-buffered");
    for (Operation *user : alloc->getUsers()) {
      if (isa<memref::DeallocOp>(user)) // Its memory is used again.
        continue;
      if ((!isTileCopy(user) && !isa<TileMatmulOp>(user)) ||
          user->getParentOp() != loop)
        return user->emitError("use of a tile that is multi-buffered; only "
                               "copies and products of its loop may use it");
    }
    if (!llvm::is_contained(tiles, alloc))
      tiles.push_back(alloc);
  }
  return tiles;
}

Value nm_sparse::createTileRing(OpBuilder &b, memref::AllocOp tile,
                                int64_t stages, ScheduleAttr schedule) {
  MemRefType type = tile.getType();
  auto ring = memref::AllocOp::create(b, tile.getLoc(),
                                      getRingType(type, stages,
                                                  isFilledTransposed(tile),
                                                  schedule.hasBulkBits()));
  TileLayout layout = getTileLayout(type);
  if (layout == TileLayout::SwizzledBlocks ||
      layout == TileLayout::SegmentLines)
    ring.setAlignment(kSwizzledBlockAlignment);
  return ring;
}

Value nm_sparse::emitRingTile(OpBuilder &b, Location loc, Value ring,
                              Value slot, MemRefType tile) {
  SmallVector<OpFoldResult> offsets(tile.getRank() + 1, b.getIndexAttr(0));
  SmallVector<OpFoldResult> strides(tile.getRank() + 1, b.getIndexAttr(1));
  SmallVector<OpFoldResult> sizes = {b.getIndexAttr(1)};
  offsets.front() = slot;
  for (int64_t extent : tile.getShape())
    sizes.push_back(b.getIndexAttr(extent));
  MemRefType type = memref::SubViewOp::inferRankReducedResultType(
      tile.getShape(), cast<MemRefType>(ring.getType()), offsets, sizes,
      strides);
  return memref::SubViewOp::create(b, loc, type, ring, offsets, sizes, strides);
}
