//===- MapToGPU.cpp - from scf.forall over CTA tiles to gpu.launch --------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "nm_sparse/Dialect/NMTile/IR/NMTile.h"
#include "nm_sparse/Dialect/NMTile/Transforms/Passes.h"
#include "nm_sparse/Dialect/NMTile/Transforms/Transforms.h"

namespace mlir::nm_sparse {
#define GEN_PASS_DEF_NMSPARSEMAPTOGPUPASS
#include "nm_sparse/Dialect/NMTile/Transforms/Passes.h.inc"
} // namespace mlir::nm_sparse

using namespace mlir;
using namespace mlir::nm_sparse;

/// Largest grid in dimensions x, y, z.
static constexpr int64_t kMaxGrid[3] = {(int64_t(1) << 31) - 1, 65535, 65535};

/// The tile_matmul of a CTA tile, or null.
static TileMatmulOp findProduct(scf::ForallOp forall) {
  TileMatmulOp product;
  forall.walk([&](TileMatmulOp op) { product = op; });
  return product;
}

/// Grid dimension of each loop, from the #gpu.block mapping.
static FailureOr<SmallVector<unsigned>> getGridDims(scf::ForallOp forall) {
  SmallVector<unsigned> dims;
  llvm::SmallDenseSet<unsigned> seen;
  for (Attribute attr : forall.getDeviceMappingAttrs()) {
    auto block = dyn_cast<gpu::GPUBlockMappingAttr>(attr);
    unsigned dim =
        block ? static_cast<unsigned>(block.getBlock()) : unsigned(3);
    if (dim > 2 || !seen.insert(dim).second)
      return forall.emitOpError("over CTA tiles has mapping ")
             << attr << "; legal are #gpu.block<x>, <y> and <z>, once each";
    dims.push_back(dim);
  }
  if (dims.size() != static_cast<size_t>(forall.getRank()))
    return forall.emitOpError("over CTA tiles must map each of its ")
           << forall.getRank() << " loops to #gpu.block, got " << dims.size();
  return dims;
}

/// Checks the numbers of CTA tiles that are static against the limits.
static LogicalResult checkGrid(scf::ForallOp forall, ArrayRef<unsigned> dims) {
  for (auto [lb, ub, step, dim] : llvm::zip_equal(
           forall.getStaticLowerBound(), forall.getStaticUpperBound(),
           forall.getStaticStep(), dims)) {
    if (ShapedType::isDynamic(lb) || ShapedType::isDynamic(ub) ||
        ShapedType::isDynamic(step))
      continue;
    int64_t count = llvm::divideCeilSigned(ub - lb, step);
    if (count > kMaxGrid[dim])
      return forall.emitOpError("needs ")
             << count << " CTA tiles in grid dimension " << "xyz"[dim]
             << ", at most " << kMaxGrid[dim] << " can be launched; "
             << (dim == 2 ? "split the batch over several products"
                          : "use a larger tile in the schedule");
  }
  return success();
}

/// Number of iterations of each loop, in SSA or constant form. Where there are
/// no tokens or no batches it is 0: nothing may run, and the runtime launches
/// no empty grid.
static SmallVector<Value> getCounts(RewriterBase &b, scf::ForallOp forall) {
  Location loc = forall.getLoc();
  AffineExpr s0, s1, s2;
  bindSymbols(b.getContext(), s0, s1, s2);
  SmallVector<Value> counts;
  for (auto [lb, ub, step] :
       llvm::zip_equal(forall.getMixedLowerBound(), forall.getMixedUpperBound(),
                       forall.getMixedStep())) {
    OpFoldResult count = affine::makeComposedFoldedAffineApply(
        b, loc, (s1 - s0).ceilDiv(s2), {lb, ub, step});
    counts.push_back(getValueOrCreateConstantIndexOp(b, loc, count));
  }
  return counts;
}

/// Clones into the launch the constants that it uses, so that they are not
/// kernel arguments.
static void sinkConstants(RewriterBase &b, gpu::LaunchOp launch) {
  DenseMap<Value, Value> copies;
  b.setInsertionPointToStart(&launch.getBody().front());
  launch.getBody().walk([&](Operation *op) {
    for (OpOperand &operand : op->getOpOperands()) {
      Operation *def = operand.get().getDefiningOp();
      if (!def || !def->hasTrait<OpTrait::ConstantLike>() ||
          launch->isAncestor(def))
        continue;
      Value &copy = copies[operand.get()];
      if (!copy)
        copy = b.clone(*def)->getResult(0);
      b.modifyOpInPlace(op, [&] { operand.set(copy); });
    }
  });
}

FailureOr<gpu::LaunchOp> nm_sparse::mapForallToGPU(RewriterBase &b,
                                                   scf::ForallOp forall) {
  TileMatmulOp product = findProduct(forall);
  if (!product)
    return forall.emitOpError("has no nm_tile.matmul, whose schedule "
                              "says how many threads to launch");
  if (forall.getNumResults() != 0)
    return forall.emitOpError("has tensor results; run --nm-sparse-bufferize "
                              "before --nm-sparse-map-to-gpu");
  FailureOr<SmallVector<unsigned>> dims = getGridDims(forall);
  if (failed(dims) || failed(checkGrid(forall, *dims)))
    return failure();

  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(forall);
  Location loc = forall.getLoc();
  Value one = arith::ConstantIndexOp::create(b, loc, 1);
  Value grid[3] = {one, one, one};
  for (auto [count, dim] : llvm::zip_equal(getCounts(b, forall), *dims))
    grid[dim] = count;
  Value threads = arith::ConstantIndexOp::create(
      b, loc, product.getSchedule().getBlockThreads());
  // The CTAs of a cluster are on neighbouring tiles.
  int64_t ctas = product.getSchedule().getClusterCTAs();
  Value cluster[3];
  if (ctas > 1) {
    llvm::fill(cluster, one);
    cluster[product.getSchedule().getClusterDim()] =
        arith::ConstantIndexOp::create(b, loc, ctas);
  }
  auto launch = gpu::LaunchOp::create(
      b, loc, grid[0], grid[1], grid[2], threads, one, one,
      /*dynamicSharedMemorySize=*/Value(), /*asyncTokenType=*/Type(),
      /*asyncDependencies=*/ValueRange(), /*workgroupAttributions=*/TypeRange(),
      /*privateAttributions=*/TypeRange(), cluster[0], cluster[1], cluster[2]);

  Block *body = &launch.getBody().front();
  // The builder forgets the arguments for places in a cluster.
  while (body->getNumArguments() < launch.getNumConfigRegionAttributes())
    body->addArgument(b.getIndexType(), loc);
  b.setInsertionPointToStart(body);
  gpu::KernelDim3 ids = launch.getBlockIds();
  Value blocks[3] = {ids.x, ids.y, ids.z};
  AffineExpr d0, s0, s1;
  bindDims(b.getContext(), d0);
  bindSymbols(b.getContext(), s0, s1);
  SmallVector<Value> ivs;
  for (auto [lb, step, dim] : llvm::zip_equal(forall.getMixedLowerBound(),
                                              forall.getMixedStep(), *dims)) {
    OpFoldResult iv = affine::makeComposedFoldedAffineApply(
        b, loc, d0 * s0 + s1, {blocks[dim], step, lb});
    ivs.push_back(getValueOrCreateConstantIndexOp(b, loc, iv));
  }
  b.eraseOp(forall.getTerminator());
  b.inlineBlockBefore(forall.getBody(), body, body->end(), ivs);
  b.setInsertionPointToEnd(body);
  gpu::TerminatorOp::create(b, loc);
  b.eraseOp(forall);
  sinkConstants(b, launch);
  return launch;
}

namespace {
struct MapToGPU : public nm_sparse::impl::NMSparseMapToGPUPassBase<MapToGPU> {
  void runOnOperation() override {
    SmallVector<scf::ForallOp> foralls;
    getOperation().walk([&](scf::ForallOp forall) {
      if (findProduct(forall))
        foralls.push_back(forall);
    });
    IRRewriter rewriter(&getContext());
    for (scf::ForallOp forall : foralls)
      if (failed(mapForallToGPU(rewriter, forall)))
        return signalPassFailure();
  }
};
} // namespace
