//===- GatherLowering.cpp - async_gather per thread -----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../Copy/TileCopy.h"
#include "GatheredDim.h"
#include "Transfers/TransferAttrs.h"

#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace mlir::nm_sparse;

namespace {
struct AsyncGatherLowering : CopyPattern<AsyncGatherOp> {
  using CopyPattern::CopyPattern;

  LogicalResult
  matchAndRewrite(AsyncGatherOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    if (failed(checkBuffers(op)))
      return failure();
    auto dstType = cast<MemRefType>(op.getDst().getType());
    if (ShapedType::isDynamic(op.getDstPanels()))
      return op.emitOpError("needs `panels` when its index has a dynamic "
                            "number of them, got ")
             << op.getIndex().getType();
    Location loc = op.getLoc();
    TileCopy copy(rewriter, loc, threads, op.getSrc(), op.getDst(),
                  op.isTransposed(), op.getThreads());
    int64_t plain = 1 - op.getSrcDim();
    std::unique_ptr<SourceDim> gathered;
    if (op.getByRow())
      gathered = std::make_unique<ListedDim>(rewriter, op);
    else
      gathered = std::make_unique<GatheredDim>(rewriter, op);
    OpFoldResult size = getSourceExtent(rewriter, op, plain);
    Value extent = getValueOrCreateConstantIndexOp(rewriter, loc, size);
    bool isWhole =
        isConstantIntValue(size, dstType.getDimSize(1 - op.getDstDim()));
    PlainDim other(isWhole ? Value() : extent);
    if (std::optional<PatchesAttr> patches = op.getPatches())
      copy.takePatches(PatchSource(rewriter, loc, *patches, op.getSrc(),
                                   op.getSlice()[op.getSrcDim()],
                                   op.getSlice()[plain]));
    if (op.getDstDim() == 0)
      copy.emit(*gathered, other, extent);
    else
      copy.emit(other, *gathered, Value());
    rewriter.eraseOp(op);
    return success();
  }
};
} // namespace

void GatherAttr::populatePatterns(const TypeConverter &converter,
                                  const CopyThreads &threads,
                                  RewritePatternSet &patterns) const {
  patterns.add<AsyncGatherLowering>(converter, patterns.getContext(), threads);
}
