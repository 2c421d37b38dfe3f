//===- CopyLowering.cpp - async_copy per thread ---------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TileCopy.h"
#include "Transfers/TransferAttrs.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace mlir::nm_sparse;

/// A CTA that has but one tile waits for its table: with 8 positions at a time
/// 256 x 5120 x 13824 takes 12 % longer. Persistent CTAs make the next table
/// while they multiply, and take 2 % longer with 16 than with 8.
static int64_t getTableBatch(ScheduleAttr schedule) {
  return schedule.isPersistent() ? 8 : 16;
}

/// The slice of a matrix of patches: its extents that fill the destination need
/// no test.
static void emitPatches(OpBuilder &b, AsyncCopyOp op, TileCopy &copy) {
  auto tile = cast<MemRefType>(op.getDst().getType());
  PatchesAttr patches = *op.getPatches();
  ValueRange slice = op.getSlice();
  bool tokensFirst = patches.isTokenMajor();
  copy.takePatches(PatchSource(b, op.getLoc(), patches, op.getSrc(),
                               /*firstRow=*/slice[tokensFirst ? 1 : 0],
                               /*firstToken=*/slice[tokensFirst ? 0 : 1]));
  auto getDim = [&](int64_t dim) {
    bool isWhole = getConstantIntValue(slice[2 + dim]) == tile.getDimSize(dim);
    return PlainDim(isWhole ? Value() : slice[2 + dim]);
  };
  copy.emit(getDim(0), getDim(1), slice[3]);
}

namespace {
struct AsyncCopyLowering : CopyPattern<AsyncCopyOp> {
  using CopyPattern::CopyPattern;

  LogicalResult
  matchAndRewrite(AsyncCopyOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    if (failed(checkBuffers(op)))
      return failure();
    auto srcType = cast<MemRefType>(op.getSrc().getType());
    auto dstType = cast<MemRefType>(op.getDst().getType());
    Location loc = op.getLoc();
    TileCopy copy(rewriter, loc, threads, op.getSrc(), op.getDst(),
                  op.isTransposed(), op.getThreads());
    TileLayout layout = getTileLayout(dstType);
    if (layout == TileLayout::SegmentLines ||
        layout == TileLayout::CoreMatrices)
      return op.emitOpError("fills tiles row by row, swizzled, or in "
                            "column_blocks; other layouts are written by the "
                            "tensor memory accelerator, got ")
             << dstType;
    if (layout == TileLayout::ColumnBlocks) {
      copy.emitStored(StoredDim(rewriter, op));
      rewriter.eraseOp(op);
      return success();
    }
    if (op.getPatches()) {
      emitPatches(rewriter, op, copy);
      rewriter.eraseOp(op);
      return success();
    }
    // Extents that fill the destination need no test.
    Value extents[2];
    SmallVector<PlainDim> dims;
    for (int64_t dim : {0, 1})
      extents[dim] = memref::DimOp::create(rewriter, loc, op.getSrc(), dim);
    for (int64_t dim : {0, 1}) {
      int64_t from = op.isTransposed() ? 1 - dim : dim;
      bool isWhole = srcType.getDimSize(from) == dstType.getDimSize(dim);
      dims.push_back(PlainDim(isWhole ? Value() : extents[from]));
    }
    if (std::optional<EncodingAttr> encoding = op.getRowsOf())
      copy.emitRowsOf(*encoding, dims[0], dims[1],
                      getTableBatch(threads.schedule));
    else
      copy.emit(dims[0], dims[1], extents[op.isTransposed() ? 0 : 1]);
    rewriter.eraseOp(op);
    return success();
  }
};
} // namespace

void CopyAttr::populatePatterns(const TypeConverter &converter,
                                const CopyThreads &threads,
                                RewritePatternSet &patterns) const {
  patterns.add<AsyncCopyLowering>(converter, patterns.getContext(), threads);
}
