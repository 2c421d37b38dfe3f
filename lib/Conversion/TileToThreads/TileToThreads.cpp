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
    if (!op.getStoredTile() && op.getRhsOrder() != MajorOrder::MN)
      return op.emitOpError("multiplies an rhs of (k, n), got ")
             << *op.getIndexingMaps();
    auto product = cast<ProductLoweringInterface>(
        Attribute(op.getSchedule().getProduct()));
    SmallVector<Value> accumulators(adaptor.getAcc());
    if (failed(product.emit(rewriter, op, layout, accumulators)))
      return failure();
    rewriter.replaceOpWithMultiple(op, {ValueRange(accumulators)});
    return success();
  }
};

/// Converts the body of one launch, whose only layout is that of its product.
LogicalResult convertLaunch(gpu::LaunchOp launch) {
  SmallVector<TileMatmulOp> products;
  launch.walk([&](TileMatmulOp op) { products.push_back(op); });
  if (products.empty())
    return success();
  TileMatmulOp first = products.front();
  for (TileMatmulOp op : products)
    if (op.getSchedule() != first.getSchedule() ||
        op.getTokensContiguous() != first.getTokensContiguous())
      return op.emitOpError("must have the schedule of the other products of "
                            "its launch: they share one thread layout");

  FailureOr<TileValues> tiles = TileValues::collect(launch);
  if (failed(tiles))
    return failure();
  MLIRContext *context = launch.getContext();
  OpBuilder builder = OpBuilder::atBlockBegin(&launch.getBody().front());
  FailureOr<ThreadLayout> layout = ThreadLayout::create(builder, first);
  if (failed(layout))
    return failure();

  TypeConverter converter;
  converter.addConversion([](Type type) { return type; });
  converter.addConversion(
      [&](Value value,
          SmallVectorImpl<Type> &types) -> std::optional<LogicalResult> {
        if (!tiles->contains(value))
          return std::nullopt;
        types.append(layout->getNumElements(),
                     getElementTypeOrSelf(value.getType()));
        return success();
      });

  KernelHints hints(launch, *layout, first);
  prepareEpilogueReads(launch, *tiles, *layout);
  TileEpilogue epilogue;
  lookUpPlaces(launch, *tiles, *layout, epilogue);
  splitEpilogues(launch, *tiles, *layout, epilogue);
  RewritePatternSet patterns(context);
  CopyThreads threads{layout->schedule, layout->numThreads, layout->threadId};
  for (TransferAttrInterface transfer :
       layout->schedule.getTransfers().getAll())
    transfer.populatePatterns(converter, threads, patterns);
  patterns.add<MatmulLowering>(converter, context, *layout);
  // A CTA that shares a tile writes its part of the sum before the result.
  // (Asked here, for the conversion erases the products.)
  bool sharesTiles = first.getSchedule().sharesTiles();
  epilogue.maxWrites = sharesTiles ? 2 : 1;
  epilogue.isCrowded = layout->getNumElements() > kLiveElements;
  populateTileElementwisePatterns(converter, *layout, epilogue, patterns);
  populateTileReadPatterns(converter, *layout, epilogue, patterns);
  populateTileWritePatterns(converter, *layout, epilogue, patterns);
  populateTilePartPatterns(converter, *layout, epilogue, patterns);
  populateSumWarpsPatterns(converter, *layout, patterns);

  ConversionTarget target(*context);
  // Whatever holds no tile stays as it is.
  target.markUnknownOpDynamicallyLegal([&](Operation *op) {
    return converter.isLegal(op->getOperands()) &&
           converter.isLegal(op->getResults());
  });
  target.addIllegalDialect<NMSparseDialect, NMTileDialect>();
  // Operations that are left to a later conversion are a thread's.
  target.addLegalOp<PinnedLoadOp, ReadOnlyLoadOp, ProductWaitOp>();
  scf::populateSCFStructuralTypeConversionsAndLegality(converter, patterns,
                                                       target);
  if (failed(applyPartialConversion(launch, target, std::move(patterns))))
    return failure();
  epilogue.sinkOperations();
  epilogue.orderVersions(*layout, sharesTiles);
  hints.emit();
  return success();
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
    WalkResult left = getOperation()->walk([](PermutedViewOp view) {
      if (!isAccessed(view))
        return WalkResult::advance();
      view.emitOpError("is read or written by more than tiles of a product");
      return WalkResult::interrupt();
    });
    if (left.wasInterrupted())
      return signalPassFailure();
  }
};

} // namespace
