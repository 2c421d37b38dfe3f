//===- Tile.cpp - tile matmuls over CTAs and K steps ----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The last elementwise consumer of a product is tiled with scf.forall, and its
// producers, up to the product and the fill of its accumulator, are fused into
// the loop. The product of a CTA tile is then tiled with scf.for over windows.
// That loop is built here rather than by tileUsingSCF: its accumulator is the
// whole CTA tile, so it needs no slice, and it must stay a loop when it has one
// iteration, because the passes that follow look for it.
//
//===----------------------------------------------------------------------===//

#include "Fusion.h"

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
#include "nm_sparse/Dialect/NMSparse/Transforms/Passes.h"
#include "nm_sparse/Dialect/NMSparse/Transforms/Transforms.h"

namespace mlir::nm_sparse {
#define GEN_PASS_DEF_NMSPARSETILEPASS
#include "nm_sparse/Dialect/NMSparse/Transforms/Passes.h.inc"
} // namespace mlir::nm_sparse

using namespace mlir;
using namespace mlir::nm_sparse;

//===----------------------------------------------------------------------===//
// Legality
//===----------------------------------------------------------------------===//

/// Checks that the later stages can lower `op` under its schedule.
static LogicalResult checkSchedule(MatmulOp op) {
  ScheduleAttr schedule = op.getScheduleAttr();
  EncodingAttr encoding = op.getEncoding();
  if (!schedule)
    return op.emitOpError(
        "has no schedule; run --nm-sparse-select-schedule first");
  if (encoding.getBlockK() != 1)
    return op.emitOpError("cannot be tiled for the GPU yet with a block of ")
           << encoding.getBlockK()
           << " contraction steps in its encoding; legal is block = [1, bn]";
  Type element = getElementTypeOrSelf(op.getX());
  StringRef kind = stringifyScheduleKind(schedule.getKind());
  if (schedule.isTensorCores() && !isa<Float16Type, BFloat16Type>(element))
    return op.emitOpError("has a schedule of kind ")
           << kind << ", which multiplies f16 or bf16, but operands of "
           << element << "; use kind simt";
  if (schedule.getKind() == ScheduleKind::Wgmma &&
      encoding.getBlockN() % 64 != 0)
    return op.emitOpError("has a schedule of kind wgmma, whose 64 outputs of a "
                          "product share their rows, but panels of ")
           << encoding.getBlockN()
           << " outputs; legal are multiples of 64 (or use kind mma)";
  if (schedule.isTensorCores() && !schedule.isPanelAligned(encoding))
    return op.emitOpError("has a schedule of kind ")
           << kind << " with tiles of " << schedule.getTileOutputs()
           << " outputs, which do not align with "
           << "panels of " << encoding.getBlockN()
           << "; one must be a multiple of the other (or use kind simt)";
  Type result = getElementTypeOrSelf(op.getInit());
  if (isa<FloatType>(element) != isa<FloatType>(result) ||
      result.getIntOrFloatBitWidth() > 32)
    return op.emitOpError("cannot be tiled with a result of ")
           << result << "; legal are "
           << (isa<FloatType>(element) ? "floats" : "integers")
           << " of at most 32 bits";
  auto index = cast<RankedTensorType>(op.getIndex().getType());
  if (index.isDynamicDim(index.getRank() - 2))
    return op.emitOpError("needs an index with a static number of rows, got ")
           << index;
  return success();
}

//===----------------------------------------------------------------------===//
// CTA tiles
//===----------------------------------------------------------------------===//

/// Tile sizes of the root's loops and the grid dimension of each.
static scf::SCFTilingOptions getTilingOptions(MatmulOp matmul,
                                              ArrayRef<unsigned> loops) {
  Builder builder(matmul.getContext());
  ScheduleAttr schedule = matmul.getScheduleAttr();
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

/// `y = matmul(x, v, i, init)` -> `y = scf.for w iter_args(acc = init) {
///   yield matmul(x[w], v[w], i[w], acc) }`
static LogicalResult tileWindows(RewriterBase &rewriter, MatmulOp op) {
  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPoint(op);
  Location loc = op.getLoc();
  int64_t step = op.getScheduleAttr().getTileWindows();
  int64_t windows = op.getNumWindows();
  SmallVector<Range> domain = op.getIterationDomain(rewriter);
  auto constant = [&](int64_t value) {
    return arith::ConstantIndexOp::create(rewriter, loc, value);
  };
  auto loop = scf::ForOp::create(rewriter, loc, constant(0), constant(windows),
                                 constant(step), ValueRange{op.getInit()});
  rewriter.setInsertionPointToStart(loop.getBody());

  SmallVector<OpFoldResult> offsets, sizes;
  for (Range &range : domain) {
    offsets.push_back(range.offset);
    sizes.push_back(range.size);
  }
  Value iv = loop.getInductionVar();
  offsets.back() = iv;
  if (windows <= step) {
    sizes.back() = rewriter.getIndexAttr(windows);
  } else if (windows % step == 0) {
    sizes.back() = rewriter.getIndexAttr(step);
  } else {
    AffineExpr d0 = rewriter.getAffineDimExpr(0);
    sizes.back() = affine::makeComposedFoldedAffineMin(
        rewriter, loc,
        AffineMap::get(1, 0,
                       {rewriter.getAffineConstantExpr(step), windows - d0},
                       rewriter.getContext()),
        {iv});
  }
  FailureOr<TilingResult> tiled =
      op.getTiledImplementation(rewriter, offsets, sizes);
  if (failed(tiled))
    return op.emitOpError("cannot be tiled over its windows");
  auto inner = cast<MatmulOp>(tiled->tiledOps.front());
  Operation *initSlice = inner.getInit().getDefiningOp();
  auto product = MatmulOp::create(
      rewriter, loc, op.getType(), inner.getX(), inner.getValues(),
      inner.getIndex(), loop.getRegionIterArg(0), op.getPanelOffset(),
      op.getEncodingAttr(), op.getIndexingMapsAttr(), op.getScheduleAttr());
  rewriter.eraseOp(inner);
  rewriter.eraseOp(initSlice);
  scf::YieldOp::create(rewriter, loc, product.getResult());
  rewriter.replaceOp(op, loop.getResults());
  return success();
}

//===----------------------------------------------------------------------===//
// Entry points
//===----------------------------------------------------------------------===//

FailureOr<scf::ForallOp> nm_sparse::tileMatmul(RewriterBase &rewriter,
                                               MatmulOp op) {
  if (failed(checkSchedule(op)))
    return failure();
  Fusion fusion = collectEpilogue(rewriter, op);
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
  rewriter.replaceOp(fusion.root,
                     result->replacements.lookup(fusion.root->getResult(0)));
  for (Operation *op : llvm::reverse(fusion.producers))
    eraseFused(rewriter, op);
  for (Operation *fill : fills)
    eraseFused(rewriter, fill);
  for (MatmulOp product : products)
    if (failed(tileWindows(rewriter, product)))
      return failure();
  return forall;
}

namespace {
struct Tile : public nm_sparse::impl::NMSparseTilePassBase<Tile> {
  void runOnOperation() override {
    SmallVector<MatmulOp> matmuls;
    getOperation().walk([&](MatmulOp op) {
      if (op.getScheduleAttr() && !op->getParentOfType<scf::ForallOp>())
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
