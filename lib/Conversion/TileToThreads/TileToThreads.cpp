//===- TileToThreads.cpp - from CTA tiles to the code of one thread -----===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TileAccess.h"
#include "TileValues.h"
#include "nm_sparse/Conversion/Passes.h"
#include "nm_sparse/Conversion/TileToThreads/Patterns.h"
#include "nm_sparse/Conversion/TileToThreads/ProductLowering.h"
#include "nm_sparse/GPU/Support/Buffers.h"
#include "nm_sparse/Transfers/Patterns.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/NVGPU/IR/NVGPUDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/SCF/Transforms/Patterns.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/AttrTypeSubElements.h"

namespace mlir::nm_sparse {
#define GEN_PASS_DEF_CONVERTTILETOTHREADSPASS
#include "nm_sparse/Conversion/Passes.h.inc"
} // namespace mlir::nm_sparse

using namespace mlir;
using namespace mlir::nm_sparse;

namespace {

/// Leaves the product of a K step to its attribute.
struct MatmulLowering : TilePattern<TileMatmulOp> {
  using TilePattern::TilePattern;

  LogicalResult
  matchAndRewrite(TileMatmulOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    bool isKMajor = op.getSchedule().getOperandTiles().valuesKMajor;
    if (!op.getStoredTile() && (op.getRhsOrder() == MajorOrder::K) != isKMajor)
      return op.emitOpError("multiplies an rhs of ")
             << (isKMajor ? "(n, k)" : "(k, n)") << ", got "
             << op.getIndexingMaps().value_or(ArrayAttr());
    auto product = cast<ProductLoweringInterface>(
        Attribute(op.getSchedule().getProduct()));
    SmallVector<Value> accumulators(adaptor.getAcc());
    if (failed(product.emit(rewriter, op, layout, accumulators)))
      return failure();
    rewriter.replaceOpWithMultiple(op, {ValueRange(accumulators)});
    return success();
  }
};

/// The operations on tiles that belong to sums in other layouts than those of
/// `tiles`.
class OtherSums {
public:
  OtherSums(gpu::LaunchOp launch, const TileValues &tiles) : tiles(tiles) {
    launch.walk([&](TileMatmulOp op) {
      addBuffers(op, tiles.contains(op.getResult()) ? own : others);
    });
  }

  bool contains(Operation *op) const {
    if (auto copy = dyn_cast<AsyncCopyOp>(op))
      return isOthers(copy.getDst());
    if (auto copy = dyn_cast<AsyncGatherOp>(op))
      return isOthers(copy.getDst());
    if (auto copy = dyn_cast<BulkCopyOp>(op))
      return isOthers(copy.getDst());
    return isa<TileMatmulOp, SumWarpsOp, SumCtasOp, LoadPartOp, StorePartOp>(
               op) &&
           !tiles.areOf(op);
  }

private:
  bool isOthers(Value tile) const {
    Value buffer = getBufferOf(tile);
    return others.contains(buffer) && !own.contains(buffer);
  }
  /// The tiles of `op`, and of the positions by which they are gathered.
  static void addBuffers(TileMatmulOp op, llvm::DenseSet<Value> &buffers) {
    for (Value operand : op->getOperands())
      if (isa<MemRefType>(operand.getType()))
        buffers.insert(getBufferOf(operand));
    op->getParentOfType<gpu::LaunchOp>().walk([&](AsyncGatherOp gather) {
      if (buffers.contains(getBufferOf(gather.getDst())))
        buffers.insert(getBufferOf(gather.getIndex()));
    });
  }

  const TileValues &tiles;
  llvm::DenseSet<Value> own, others;
};

/// Converts the sums of a launch that have the layout of `sum`. `isOnly`: no
/// products of the launch have another layout.
LogicalResult convertSums(gpu::LaunchOp launch, SumOpInterface sum, bool isOnly,
                          KernelHints &hints) {
  FailureOr<TileValues> tiles = TileValues::collect(launch, sum);
  if (failed(tiles))
    return failure();
  MLIRContext *context = launch.getContext();
  OpBuilder builder = OpBuilder::atBlockBegin(&launch.getBody().front());
  ThreadLayout layout = ThreadLayout::create(builder, sum);

  TypeConverter converter;
  converter.addConversion([](Type type) { return type; });
  converter.addConversion(
      [&](Value value,
          SmallVectorImpl<Type> &types) -> std::optional<LogicalResult> {
        if (!tiles->contains(value))
          return std::nullopt;
        types.append(layout.getNumElements(),
                     getElementTypeOrSelf(value.getType()));
        return success();
      });

  if (auto product = dyn_cast<TileMatmulOp>(*sum))
    hints.addSum(product, layout);
  prepareEpilogueReads(launch, *tiles, layout);
  TileEpilogue epilogue;
  lookUpPlaces(launch, *tiles, layout, epilogue);
  splitEpilogues(launch, *tiles, layout, epilogue);
  RewritePatternSet patterns(context);
  CopyThreads threads{layout.schedule, layout.numThreads, layout.threadId};
  for (TransferAttrInterface transfer : layout.schedule.getTransfers().getAll())
    transfer.populatePatterns(converter, threads, patterns);
  patterns.add<MatmulLowering>(converter, context, layout);
  // A CTA that shares a tile writes its part of the sum before the result.
  // (Asked here, for the conversion erases the products.)
  bool sharesTiles = sum.getSchedule().sharesTiles();
  epilogue.maxWrites = sharesTiles && isa<TileMatmulOp>(*sum) ? 2 : 1;
  // Operands may lie where the sums in other layouts are written.
  if (!isOnly)
    epilogue.maxWrites = 0;
  epilogue.isCrowded = layout.getNumElements() > kLiveElements;
  populateTileElementwisePatterns(converter, layout, epilogue, patterns);
  populateTileReadPatterns(converter, layout, epilogue, patterns);
  populateTileWritePatterns(converter, layout, epilogue, patterns);
  populateTilePartPatterns(converter, layout, epilogue, patterns);
  populateSumWarpsPatterns(converter, layout, patterns);
  populateSumCtasPatterns(converter, layout, patterns);

  ConversionTarget target(*context);
  OtherSums others(launch, *tiles);
  // Whatever holds no tile stays as it is.
  auto holdsNone = [&](Operation *op) {
    return converter.isLegal(op->getOperands()) &&
           converter.isLegal(op->getResults());
  };
  target.markUnknownOpDynamicallyLegal(holdsNone);
  target.addDynamicallyLegalDialect<NMSparseDialect, NMTileDialect>(
      [&](Operation *op) { return holdsNone(op) && others.contains(op); });
  // Operations that are left to a later conversion are a thread's.
  target.addLegalOp<PinnedLoadOp, ReadOnlyLoadOp, ProductWaitOp>();
  scf::populateSCFStructuralTypeConversionsAndLegality(converter, patterns,
                                                       target);
  if (failed(applyPartialConversion(launch, target, std::move(patterns))))
    return failure();
  epilogue.sinkOperations();
  epilogue.orderVersions(layout, sharesTiles);
  return success();
}

/// Checks that `op` has the layout in which its product leaves the sum.
LogicalResult checkLayout(TileMatmulOp op) {
  auto product = dyn_cast<ProductLoweringInterface>(
      Attribute(op.getSchedule().getProduct()));
  if (!product)
    return op.emitOpError("has product = ")
           << op.getSchedule().getProduct().getProductName()
           << ", whose code generation is not registered";
  FailureOr<AccumulatorAttr> own = product.layOut(op);
  if (failed(own))
    return failure();
  if (*own == *op.getLayout())
    return success();
  return op.emitOpError("has a layout in which its product does not leave "
                        "the sum; legal is ")
         << *own << ", got " << *op.getLayout();
}

/// Checks that each sum has a layout, and that as many threads hold each.
LogicalResult checkLayouts(MutableArrayRef<SumOpInterface> sums) {
  for (SumOpInterface op : sums) {
    if (!op.getLayout())
      return op->emitOpError("has no layout of its accumulator: run "
                             "--nm-sparse-lay-out-accumulators first");
    auto product = dyn_cast<TileMatmulOp>(*op);
    if (product && failed(checkLayout(product)))
      return failure();
    int64_t threads = sums.front().getLayout()->getNumThreads();
    if (op.getLayout()->getNumThreads() != threads)
      return op->emitOpError("must have as many threads as the other products "
                             "of its launch, ")
             << threads << ", got " << op.getLayout()->getNumThreads();
  }
  return success();
}

/// Returns true if the products of `sums` have one layout. Pieces of their sums
/// come behind them, and are written alone.
bool haveOneLayout(ArrayRef<SumOpInterface> sums) {
  SmallVector<TileMatmulOp> products;
  for (SumOpInterface op : sums)
    if (auto product = dyn_cast<TileMatmulOp>(*op))
      products.push_back(product);
  return llvm::all_of(products, [&](TileMatmulOp op) {
    return op.getLayout() == products.front().getLayout() &&
           op.getSchedule() == products.front().getSchedule();
  });
}

/// Converts the body of one launch, the sums of one layout at a time.
LogicalResult convertLaunch(gpu::LaunchOp launch) {
  auto getSums = [&] {
    SmallVector<SumOpInterface> sums;
    launch.walk([&](SumOpInterface op) { sums.push_back(op); });
    return sums;
  };
  SmallVector<SumOpInterface> sums = getSums();
  if (sums.empty())
    return success();
  if (failed(checkLayouts(sums)))
    return failure();
  bool isOnly = haveOneLayout(sums);
  KernelHints hints(launch);
  while (!sums.empty()) {
    size_t before = sums.size();
    if (failed(convertSums(launch, sums.front(), isOnly, hints)))
      return failure();
    sums = getSums();
    if (sums.size() == before)
      return sums.front()->emitOpError("is never executed");
  }
  hints.emit();
  WalkResult left = launch.walk([](Operation *op) -> WalkResult {
    if (!isa<SumWarpsOp, SumCtasOp, LoadPartOp, StorePartOp>(op))
      return success();
    return op->emitOpError("belongs to the sum of no product of its launch");
  });
  return failure(left.wasInterrupted());
}

/// The code of threads says itself where elements lie: tiles become plain
/// workgroup memory.
void forgetLayouts(Operation *root) {
  AttrTypeReplacer replacer;
  replacer.addReplacement([](SharedAttr space) {
    return getTileSpace(space.getContext(), TileLayout::Rows);
  });
  replacer.recursivelyReplaceElementsIn(root, /*replaceAttrs=*/true,
                                        /*replaceLocs=*/false,
                                        /*replaceTypes=*/true);
}

/// Returns true if something reads or writes what lies at `view`, or a part of
/// it.
bool isAccessed(Value view) {
  return llvm::any_of(view.getUsers(), [](Operation *user) {
    return !isMemoryEffectFree(user) ||
           (getViewSource(user) && isAccessed(user->getResult(0)));
  });
}

struct ConvertTileToThreads
    : public nm_sparse::impl::ConvertTileToThreadsPassBase<
          ConvertTileToThreads> {
  void runOnOperation() override {
    SmallVector<gpu::LaunchOp> launches;
    getOperation()->walk([&](gpu::LaunchOp op) { launches.push_back(op); });
    for (gpu::LaunchOp launch : launches)
      if (failed(convertLaunch(launch)))
        return signalPassFailure();
    // Tiles of views have become addresses; their sizes are still asked for.
    WalkResult left = getOperation()->walk([](Operation *view) {
      if (!isa<PermutedViewOp, InterleavedViewOp>(view) ||
          !isAccessed(view->getResult(0)))
        return WalkResult::advance();
      view->emitOpError("is read or written by more than tiles of a product");
      return WalkResult::interrupt();
    });
    if (left.wasInterrupted())
      return signalPassFailure();
    forgetLayouts(getOperation());
  }
};

} // namespace
