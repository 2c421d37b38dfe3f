//===- Tile.cpp - tile matmuls over CTAs and K steps ----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The last elementwise consumer of a product is tiled with scf.forall, and its
// producers, up to the product and the fill of its accumulator, are fused into
// the loop. The product of a CTA tile is then put into a nm_tile.k_loop over
// windows, or over kept rows. That loop is built here rather than by
// tileUsingSCF: its accumulator is the whole CTA tile, so it needs no slice,
// and it is a K loop to the passes that follow however many iterations it has.
//
//===----------------------------------------------------------------------===//

#include "Tiling/Fusion.h"
#include "Tiling/RaggedPanels.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/SCF/Transforms/TileUsingInterface.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/Dominance.h"
#include "mlir/Transforms/CSE.h"
#include "nm_sparse/Dialect/NMTile/IR/NMTile.h"
#include "nm_sparse/Dialect/NMTile/Transforms/Passes.h"
#include "nm_sparse/Dialect/NMTile/Transforms/Transforms.h"

namespace mlir::nm_sparse {
#define GEN_PASS_DEF_NMSPARSETILEPASS
#include "nm_sparse/Dialect/NMTile/Transforms/Passes.h.inc"
} // namespace mlir::nm_sparse

using namespace mlir;
using namespace mlir::nm_sparse;

//===----------------------------------------------------------------------===//
// CTA tiles
//===----------------------------------------------------------------------===//

/// Tile sizes of the root's loops and the grid dimension of each.
static scf::SCFTilingOptions getTilingOptions(MatmulOp matmul,
                                              ArrayRef<unsigned> loops) {
  Builder builder(matmul.getContext());
  ScheduleAttr schedule = getSchedule(matmul);
  SmallVector<OpFoldResult> sizes;
  SmallVector<Attribute> mapping;
  for (unsigned loop : loops) {
    if (loop == matmul.getReductionLoop()) {
      sizes.push_back(builder.getIndexAttr(0));
      continue;
    }
    // Tokens lie on x: their number may be large and dynamic, and y and z are
    // limited to 65535 CTAs.
    int64_t size = 1;
    gpu::MappingId id = gpu::MappingId::DimZ;
    if (loop == matmul.getTokenLoop()) {
      size = schedule.getTileTokens();
      id = gpu::MappingId::DimX;
    } else if (loop == matmul.getOutputLoop()) {
      size = schedule.getTileOutputs();
      id = gpu::MappingId::DimY;
    }
    sizes.push_back(builder.getIndexAttr(size));
    mapping.push_back(gpu::GPUBlockMappingAttr::get(builder.getContext(), id));
  }
  return scf::SCFTilingOptions()
      .setLoopType(scf::SCFTilingOptions::LoopType::ForallOp)
      .setTileSizes(sizes)
      .setMapping(mapping);
}

//===----------------------------------------------------------------------===//
// K steps
//===----------------------------------------------------------------------===//

namespace {
/// A loop over steps of the contraction that carries the sum.
struct StepLoop {
  KLoopOp loop;
  /// The size of a step, which may be less for the last one.
  OpFoldResult size;
};
} // namespace

/// Creates the loop in steps of `step` of `total`, whose insertion point is in
/// its body then.
static StepLoop createStepLoop(RewriterBase &rewriter, MatmulOp op,
                               int64_t total, int64_t step) {
  Location loc = op.getLoc();
  auto constant = [&](int64_t value) {
    return arith::ConstantIndexOp::create(rewriter, loc, value);
  };
  auto loop = KLoopOp::create(rewriter, loc, constant(0), constant(total),
                              constant(step), ValueRange{op.getInit()});
  rewriter.setInsertionPointToStart(&loop.getBody().front());
  StepLoop steps{loop, rewriter.getIndexAttr(std::min(total, step))};
  if (total > step && total % step != 0) {
    AffineExpr d0 = rewriter.getAffineDimExpr(0);
    steps.size = affine::makeComposedFoldedAffineMin(
        rewriter, loc,
        AffineMap::get(1, 0, {rewriter.getAffineConstantExpr(step), total - d0},
                       rewriter.getContext()),
        {Value(loop.getInductionVar())});
  }
  return steps;
}

/// `y = matmul(x, v, i, init)` -> `y = k_loop w iter_args(acc = init) {
///   yield matmul(x[w], v[w], i[w], acc) }`
static LogicalResult tileWindows(RewriterBase &rewriter, MatmulOp op) {
  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPoint(op);
  SmallVector<Range> domain = op.getIterationDomain(rewriter);
  auto [loop, size] =
      createStepLoop(rewriter, op, op.getNumWindows(),
                     getSchedule(op).getTileWindows(op.getEncoding()));
  SmallVector<OpFoldResult> offsets, sizes;
  for (Range &range : domain) {
    offsets.push_back(range.offset);
    sizes.push_back(range.size);
  }
  offsets.back() = Value(loop.getInductionVar());
  sizes.back() = size;
  FailureOr<TilingResult> tiled =
      op.getTiledImplementation(rewriter, offsets, sizes);
  if (failed(tiled))
    return op.emitOpError("cannot be tiled over its windows");
  auto inner = cast<MatmulOp>(tiled->tiledOps.front());
  Operation *initSlice = inner.getInit().getDefiningOp();
  WeightSlice step = inner.getWeight();
  step.places = op.getWeight().places;
  auto product = MatmulOp::create(
      rewriter, op.getLoc(), op.getType(), inner.getX(), step,
      loop.getRegionIterArgs()[0], op.getEncodingAttr(),
      op.getIndexingMapsAttr(), getSchedule(op), op.getStorageAttr());
  rewriter.eraseOp(inner);
  rewriter.eraseOp(initSlice);
  YieldOp::create(rewriter, op.getLoc(), product.getResult());
  rewriter.replaceOp(op, loop.getResults());
  return success();
}

/// `y = matmul(x, v, i, init)` -> `y = k_loop r iter_args(acc = init) {
///   yield matmul(x, v[r], i, acc) at(first_row = r) }`
/// for steps that need not begin with windows.
static void tileRows(RewriterBase &rewriter, MatmulOp op) {
  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPoint(op);
  Location loc = op.getLoc();
  auto [loop, size] = createStepLoop(
      rewriter, op, op.getNumWindows() * op.getEncoding().getKeptRows(),
      getSchedule(op).getTileRows());
  Value row = loop.getInductionVar();
  SmallVector<OpFoldResult> sizes =
      tensor::getMixedSizes(rewriter, loc, op.getValues());
  SmallVector<OpFoldResult> offsets(sizes.size(), rewriter.getIndexAttr(0));
  SmallVector<OpFoldResult> strides(sizes.size(), rewriter.getIndexAttr(1));
  size_t rows = sizes.size() - (op.getForm().isKMajor() ? 1 : 2);
  sizes[rows] = size;
  offsets[rows] = row;
  Value values = tensor::ExtractSliceOp::create(rewriter, loc, op.getValues(),
                                                offsets, sizes, strides);
  WeightSlice step = op.getWeight();
  step.components.front() = values;
  step.places.push_back({kFirstRowPlace, row});
  auto product = MatmulOp::create(
      rewriter, loc, op.getType(), op.getX(), step, loop.getRegionIterArgs()[0],
      op.getEncodingAttr(), op.getIndexingMapsAttr(), getSchedule(op),
      op.getStorageAttr());
  YieldOp::create(rewriter, loc, product.getResult());
  rewriter.replaceOp(op, loop.getResults());
}

/// `y = matmul(x, v, b, init)` -> `y = k_loop r iter_args(acc = init) {
///   yield matmul(x, v, b, acc) at(first_row = r) }`
/// for a weight of free elements, which says itself where those of a step are.
static void tileValues(RewriterBase &rewriter, MatmulOp op) {
  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPoint(op);
  KLoopOp loop = createStepLoop(rewriter, op, op.getNumWindows(),
                                getSchedule(op).getTileRows())
                     .loop;
  WeightSlice step = op.getWeight();
  step.places = {{kFirstRowPlace, loop.getInductionVar()}};
  auto product = MatmulOp::create(
      rewriter, op.getLoc(), op.getType(), op.getX(), step,
      loop.getRegionIterArgs()[0], op.getEncodingAttr(),
      op.getIndexingMapsAttr(), getSchedule(op), op.getStorageAttr());
  YieldOp::create(rewriter, op.getLoc(), product.getResult());
  rewriter.replaceOp(op, loop.getResults());
}

/// Puts the product of a CTA tile into a loop over its K steps.
static LogicalResult tileContraction(RewriterBase &rewriter, MatmulOp op) {
  if (op.getListedPanels()) {
    tileRaggedRows(rewriter, op);
    return success();
  }
  if (op.getEncoding().isFree()) {
    tileValues(rewriter, op);
    return success();
  }
  if (!getSchedule(op).hasRowTable())
    return tileWindows(rewriter, op);
  tileRows(rewriter, op);
  return success();
}

//===----------------------------------------------------------------------===//
// Entry points
//===----------------------------------------------------------------------===//

FailureOr<scf::ForallOp> nm_sparse::tileMatmul(RewriterBase &rewriter,
                                               MatmulOp op) {
  if (failed(checkSchedule(op)))
    return failure();
  if (getSchedule(op).getOperandTiles().isInCode() &&
      !op.getForm().getConstant())
    return op.emitOpError("has a schedule with product = ")
           << getSchedule(op).getProduct().getProductName()
           << ", whose weight is code; run --nm-sparse-weights-to-code before";
  Fusion fusion = collectEpilogue(rewriter, op);
  detachReadDestination(rewriter, op, fusion);
  scf::SCFTileAndFuseOptions options;
  options.setTilingOptions(getTilingOptions(op, fusion.loops));
  llvm::SmallSetVector<Operation *, 4> fills;
  options.setFusionControlFn(
      [&](tensor::ExtractSliceOp, OpResult producer,
          bool) -> std::optional<scf::SCFTileAndFuseOptions::ControlFnResult> {
        Operation *owner = producer.getOwner();
        if (isa<linalg::FillOp>(owner))
          fills.insert(owner);
        else if (!fusion.producers.contains(owner))
          return std::nullopt;
        return scf::SCFTileAndFuseOptions::ControlFnResult{};
      });

  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPoint(fusion.root);
  FailureOr<scf::SCFTileAndFuseResult> result =
      scf::tileConsumerAndFuseProducersUsingSCF(
          rewriter, cast<TilingInterface>(fusion.root), options);
  if (failed(result))
    return op.emitOpError("cannot be tiled together with its consumers");

  SmallVector<MatmulOp> products;
  for (Operation *tiled : result->tiledAndFusedOps)
    if (auto product = dyn_cast<MatmulOp>(tiled))
      products.push_back(product);
  auto forall = cast<scf::ForallOp>(result->loops.front());
  if (op.getListedPanels())
    orderRaggedPanels(rewriter, forall, op);
  rewriter.replaceOp(fusion.root,
                     result->replacements.lookup(fusion.root->getResult(0)));
  for (Operation *op : llvm::reverse(fusion.producers))
    eraseFused(rewriter, op);
  for (Operation *fill : fills)
    eraseFused(rewriter, fill);
  for (MatmulOp product : products)
    if (failed(tileContraction(rewriter, product)))
      return failure();
  return forall;
}

namespace {
struct Tile : public nm_sparse::impl::NMSparseTilePassBase<Tile> {
  void runOnOperation() override {
    SmallVector<MatmulOp> matmuls;
    getOperation().walk([&](MatmulOp op) {
      if (getSchedule(op) && !op->getParentOfType<scf::ForallOp>())
        matmuls.push_back(op);
    });
    if (matmuls.empty())
      return;
    IRRewriter rewriter(&getContext());
    // A size taken of a product would count as a second consumer.
    auto resolveDims = [&](tensor::DimOp dim) { resolveDim(rewriter, dim); };
    getOperation().walk(resolveDims);
    SmallVector<scf::ForallOp> tiles;
    for (MatmulOp op : matmuls) {
      FailureOr<scf::ForallOp> forall = tileMatmul(rewriter, op);
      if (failed(forall))
        return signalPassFailure();
      tiles.push_back(*forall);
    }
    getOperation().walk([&](tensor::DimOp dim) { resolveDim(rewriter, dim); });
    DominanceInfo dominance(getOperation());
    eliminateCommonSubExpressions(rewriter, dominance, getOperation());
    for (scf::ForallOp forall : tiles)
      shareDestinations(rewriter, forall);
  }
};
} // namespace
