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

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/SCF/Transforms/TileUsingInterface.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/Dominance.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Transforms/CSE.h"
#include "nm_sparse/Dialect/NMSparse/IR/NMSparse.h"
#include "nm_sparse/Dialect/NMSparse/Transforms/Passes.h"
#include "nm_sparse/Dialect/NMSparse/Transforms/Transforms.h"
#include "llvm/ADT/SetVector.h"

namespace mlir::nm_sparse {
#define GEN_PASS_DEF_NMSPARSETILEPASS
#include "nm_sparse/Dialect/NMSparse/Transforms/Passes.h.inc"
} // namespace mlir::nm_sparse

using namespace mlir;
using namespace mlir::nm_sparse;

//===----------------------------------------------------------------------===//
// Legality
//===----------------------------------------------------------------------===//

bool nm_sparse::isFusableElementwise(linalg::LinalgOp op) {
  if (!op.hasPureTensorSemantics() || op->getNumResults() != 1 ||
      op.getNumLoops() != op.getNumParallelLoops() || op.hasIndexSemantics() ||
      !op.getIndexingMapMatchingResult(op->getResult(0)).isPermutation())
    return false;
  if (llvm::any_of(op.getIndexingMapsArray(), [](AffineMap map) {
        return !map.isProjectedPermutation(/*allowZeroInResults=*/true);
      }))
    return false;
  return llvm::all_of(op.getBlock()->without_terminator(),
                      [](Operation &inner) {
                        return inner.hasTrait<OpTrait::ConstantLike>() ||
                               OpTrait::hasElementwiseMappableTraits(&inner);
                      });
}

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
  if (schedule.getKind() == ScheduleKind::Mma &&
      !isa<Float16Type, BFloat16Type>(element))
    return op.emitOpError("has a schedule of kind mma, which multiplies f16 or "
                          "bf16, but operands of ")
           << element << "; use kind simt";
  if (schedule.getKind() == ScheduleKind::Mma &&
      !schedule.isPanelAligned(encoding))
    return op.emitOpError("has a schedule of kind mma with tiles of ")
           << schedule.getTileOutputs() << " outputs, which do not align with "
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

namespace {
/// Ops that one scf.forall will compute, and what the loops of the last range
/// over, as positions of the matmul's loops.
struct Fusion {
  Operation *root;
  SmallVector<unsigned> loops;
  llvm::SmallSetVector<Operation *, 4> producers;
};
} // namespace

/// The one op that consumes `value`, when it is elementwise, reads all of it
/// through one map, and has no other use for it than as the shape of its
/// result.
static linalg::LinalgOp getElementwiseConsumer(Value value, AffineMap &map) {
  auto op = value.use_empty() ? linalg::LinalgOp()
                              : dyn_cast<linalg::LinalgOp>(*value.user_begin());
  if (!op || op->getBlock() != value.getParentBlock() ||
      !isFusableElementwise(op))
    return {};
  map = AffineMap();
  for (OpOperand &use : value.getUses()) {
    if (use.getOwner() != op)
      return {};
    if (op.isDpsInit(&use)) {
      if (op.payloadUsesValueFromOperand(&use))
        return {};
      continue;
    }
    AffineMap useMap = op.getMatchingIndexingMap(&use);
    if (!useMap.isPermutation() || (map && map != useMap))
      return {};
    map = useMap;
  }
  return map ? op : linalg::LinalgOp();
}

/// `outs(%product)` of an op that does not read it -> `outs(%init)`, where init
/// is the destination of the product.
static void detachDestination(RewriterBase &rewriter, linalg::LinalgOp op) {
  OpOperand &init = op.getDpsInitsMutable()[0];
  if (op.payloadUsesValueFromOperand(&init))
    return;
  Value dest = init.get();
  while (auto producer = dest.getDefiningOp<DestinationStyleOpInterface>())
    dest = producer.getTiedOpOperand(cast<OpResult>(dest))->get();
  rewriter.modifyOpInPlace(op, [&] { init.set(dest); });
}

/// Follows the product through elementwise ops as long as each is its only
/// consumer and reads all of it. An elementwise op that makes the initial
/// accumulator alone, such as the broadcast of a bias, belongs to the tile too.
static Fusion collectEpilogue(RewriterBase &rewriter, MatmulOp matmul) {
  Fusion fusion;
  auto init = matmul.getInit().getDefiningOp<linalg::LinalgOp>();
  if (init && !isa<linalg::FillOp>(init) && init->hasOneUse() &&
      isFusableElementwise(init))
    fusion.producers.insert(init);
  fusion.root = matmul;
  fusion.loops =
      llvm::to_vector(llvm::seq<unsigned>(0, matmul.getReductionLoop() + 1));
  SmallVector<unsigned> dims;
  for (AffineExpr expr : matmul.getResultMap().getResults())
    dims.push_back(cast<AffineDimExpr>(expr).getPosition());

  AffineMap map;
  while (linalg::LinalgOp op =
             getElementwiseConsumer(fusion.root->getResult(0), map)) {
    detachDestination(rewriter, op);
    fusion.producers.insert(fusion.root);
    fusion.root = op;
    fusion.loops.assign(map.getNumDims(), 0);
    for (auto [dim, expr] : llvm::enumerate(map.getResults()))
      fusion.loops[cast<AffineDimExpr>(expr).getPosition()] = dims[dim];
    AffineMap resultMap = op.getIndexingMapMatchingResult(op->getResult(0));
    for (auto [dim, expr] : llvm::enumerate(resultMap.getResults()))
      dims[dim] = fusion.loops[cast<AffineDimExpr>(expr).getPosition()];
  }
  return fusion;
}

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

/// Replaces `dim` by a size that does not need its source: that of the tensor
/// which a destination-style op writes, or that of a tensor.empty.
static void resolveDim(RewriterBase &rewriter, tensor::DimOp dim) {
  Value source = dim.getSource();
  while (auto producer = source.getDefiningOp<DestinationStyleOpInterface>())
    source = producer.getTiedOpOperand(cast<OpResult>(source))->get();
  std::optional<int64_t> index = dim.getConstantIndex();
  rewriter.setInsertionPoint(dim);
  if (auto empty = source.getDefiningOp<tensor::EmptyOp>();
      empty && index && empty.getType().isDynamicDim(*index))
    rewriter.replaceOp(dim, empty.getDynamicSize(*index));
  else if (source != dim.getSource())
    rewriter.replaceOp(dim, rewriter.createOrFold<tensor::DimOp>(
                                dim.getLoc(), source, dim.getIndex()));
}

/// Erases `op`, which was fused, unless something still needs its result.
static void eraseFused(RewriterBase &rewriter, Operation *op) {
  for (Operation *user : llvm::make_early_inc_range(op->getUsers())) {
    if (auto dim = dyn_cast<tensor::DimOp>(user))
      resolveDim(rewriter, dim);
    else if (isOpTriviallyDead(user))
      rewriter.eraseOp(user);
  }
  if (op->use_empty())
    rewriter.eraseOp(op);
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
    for (MatmulOp op : matmuls)
      if (failed(tileMatmul(rewriter, op)))
        return signalPassFailure();
    getOperation().walk([&](tensor::DimOp dim) { resolveDim(rewriter, dim); });
    DominanceInfo dominance(getOperation());
    eliminateCommonSubExpressions(rewriter, dominance, getOperation());
  }
};
} // namespace
