//===- TileCopy.cpp - async_copy and async_gather per thread --------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Which width is possible depends on the address and strides of the source,
// known only at run time when the source is dynamic, so the wide and the narrow
// copy are the two branches of a uniform `scf.if`. Rows may have any stride
// between their elements; those that are not contiguous are copied one element
// at a time.
//
//===----------------------------------------------------------------------===//

#include "TileCopier.h"
#include "nm_sparse/Conversion/TileToThreads/Patterns.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::nm_sparse;

namespace {

/// Emits the fast copy where `condition` holds at run time and the slow one
/// otherwise.
void emitPaths(OpBuilder &b, Location loc, TileCopier &copier, Value condition,
               function_ref<void()> fast, function_ref<void()> slow) {
  auto ifOp = scf::IfOp::create(b, loc, condition, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(ifOp.thenBlock());
  copier.enterFastPath();
  fast();
  b.setInsertionPointToStart(ifOp.elseBlock());
  copier.enterSlowPath();
  slow();
}

/// Emits the wide copy under an alignment test and the narrow one otherwise.
void emitBothWidths(OpBuilder &b, Location loc, TileCopier &copier,
                    function_ref<void(int64_t width)> copy) {
  int64_t width = copier.getMaxWidth();
  if (width == 1) {
    copy(1);
    return;
  }
  emitPaths(
      b, loc, copier, copier.isAligned(width), [&] { copy(width); },
      [&] { copy(1); });
}

/// Emits a transposing copy of single elements: without a test of each token
/// where the tile has all of them.
void emitTransposed(OpBuilder &b, Location loc, TileCopier &copier,
                    Value tokens, int64_t tileTokens,
                    function_ref<void(bool allTokens)> copy) {
  if (copier.getElementBytes() < 4 || !copier.mayBeContiguous()) {
    copy(false);
    return;
  }
  Value whole =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::uge, tokens,
                            arith::ConstantIndexOp::create(b, loc, tileTokens));
  Value condition =
      arith::AndIOp::create(b, loc, whole, copier.isAligned(/*width=*/1));
  emitPaths(
      b, loc, copier, condition, [&] { copy(true); }, [&] { copy(false); });
}

/// `width` where the chunk at `position` lies inside `extent`, else 0.
Value countInside(OpBuilder &b, Location loc, Value extent, Value position,
                  int64_t width) {
  Value inside = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult,
                                       position, extent);
  return arith::SelectOp::create(b, loc, inside,
                                 arith::ConstantIndexOp::create(b, loc, width),
                                 arith::ConstantIndexOp::create(b, loc, 0));
}

Value lessThan(OpBuilder &b, Location loc, Value a, Value c) {
  return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, a, c);
}

Value conjunction(OpBuilder &b, Location loc, Value a, Value c) {
  if (!a || !c)
    return a ? a : c;
  return arith::AndIOp::create(b, loc, a, c);
}

struct AsyncCopyLowering : public OpConversionPattern<AsyncCopyOp> {
  AsyncCopyLowering(const TypeConverter &converter, MLIRContext *context,
                    const ThreadLayout &layout)
      : OpConversionPattern(converter, context), layout(layout) {}

  LogicalResult
  matchAndRewrite(AsyncCopyOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    auto srcType = dyn_cast<MemRefType>(op.getSrc().getType());
    auto dstType = dyn_cast<MemRefType>(op.getDst().getType());
    if (!srcType || !dstType)
      return rewriter.notifyMatchFailure(op,
                                         "tensors must be bufferized first");
    Location loc = op.getLoc();
    bool transposed = op.getTransposed();
    Value src = op.getSrc();
    TileCopier copier(rewriter, loc, layout, src, op.getDst(), op.getThreads());
    Value rows = memref::DimOp::create(rewriter, loc, src, 0);
    Value columns = memref::DimOp::create(rewriter, loc, src, 1);
    // Extents that fill the destination need no test.
    int64_t rowDim = transposed ? 1 : 0;
    bool allRows = srcType.getDimSize(0) == dstType.getDimSize(rowDim);
    bool allColumns = srcType.getDimSize(1) == dstType.getDimSize(1 - rowDim);

    auto emit = [&](int64_t width, bool allRows) {
      copier.copy(
          width, /*rowFastest=*/transposed, /*isPlain=*/true,
          [&](OpBuilder &b, Value row, Value column) {
            if (transposed)
              std::swap(row, column);
            Value inRows = allRows ? Value() : lessThan(b, loc, row, rows);
            Value count = allColumns
                              ? Value()
                              : countInside(b, loc, columns, column, width);
            return ChunkSource{{row, column},
                               selectCount(b, loc, inRows, count, width),
                               inRows,
                               count};
          });
    };
    if (transposed)
      emitTransposed(rewriter, loc, copier, rows, dstType.getDimSize(1),
                     [&](bool whole) { emit(1, allRows || whole); });
    else
      emitBothWidths(rewriter, loc, copier,
                     [&](int64_t width) { emit(width, allRows); });
    rewriter.eraseOp(op);
    return success();
  }

  const ThreadLayout &layout;
};

struct AsyncGatherLowering : public OpConversionPattern<AsyncGatherOp> {
  AsyncGatherLowering(const TypeConverter &converter, MLIRContext *context,
                      const ThreadLayout &layout)
      : OpConversionPattern(converter, context), layout(layout) {}

  LogicalResult
  matchAndRewrite(AsyncGatherOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    auto srcType = dyn_cast<MemRefType>(op.getSrc().getType());
    auto indexType = dyn_cast<MemRefType>(op.getIndex().getType());
    auto dstType = dyn_cast<MemRefType>(op.getDst().getType());
    if (!srcType || !dstType || !indexType)
      return rewriter.notifyMatchFailure(op,
                                         "tensors must be bufferized first");
    int64_t panels = op.getDstPanels();
    if (ShapedType::isDynamic(panels))
      return op.emitOpError("needs `panels` when its index has a dynamic "
                            "number of them, got ")
             << indexType;
    Location loc = op.getLoc();
    EncodingAttr encoding = op.getEncoding();
    bool transposed = op.getTransposed();
    Value src = op.getSrc(), index = op.getIndex();
    TileCopier copier(rewriter, loc, layout, src, op.getDst(), op.getThreads());
    int64_t panelRows = dstType.getDimSize(0) / panels;
    int64_t kDim = transposed ? 1 : 0;
    Value kExtent = memref::DimOp::create(rewriter, loc, src, kDim);
    Value tokens = memref::DimOp::create(rewriter, loc, src, 1 - kDim);
    Value indexRows = memref::DimOp::create(rewriter, loc, index, 0);
    bool allTokens = srcType.getDimSize(1 - kDim) == dstType.getDimSize(1);
    Value indexPanels = memref::DimOp::create(rewriter, loc, index, 1);
    bool allRows = indexType.getDimSize(0) == panelRows;
    bool allPanels = indexType.getDimSize(1) == panels;
    bool allK = srcType.getDimSize(kDim) ==
                    panelRows / encoding.getN() * encoding.getM() &&
                allRows;

    auto emit = [&](int64_t width, bool allTokens) {
      auto source = [&](OpBuilder &b, Value row, Value column) {
        auto constant = [&](int64_t v) -> Value {
          return arith::ConstantIndexOp::create(b, loc, v);
        };
        Value panel = constant(0), slot = row;
        if (panels > 1) {
          panel = arith::DivUIOp::create(b, loc, row, constant(panelRows));
          slot = arith::RemUIOp::create(b, loc, row, constant(panelRows));
        }
        // What the index does not have is read from its first element.
        Value exists;
        if (!allRows)
          exists = lessThan(b, loc, slot, indexRows);
        if (!allPanels)
          exists =
              conjunction(b, loc, exists, lessThan(b, loc, panel, indexPanels));
        Value safeSlot = slot, safePanel = panel;
        if (exists) {
          safeSlot = arith::SelectOp::create(b, loc, exists, slot, constant(0));
          safePanel =
              arith::SelectOp::create(b, loc, exists, panel, constant(0));
        }
        Value position = memref::LoadOp::create(
            b, loc, index, ValueRange{safeSlot, safePanel});
        position =
            arith::IndexCastUIOp::create(b, loc, b.getIndexType(), position);
        Value window =
            arith::DivUIOp::create(b, loc, slot, constant(encoding.getN()));
        Value k = arith::AddIOp::create(
            b, loc,
            arith::MulIOp::create(b, loc, window, constant(encoding.getM())),
            position);
        if (!allK)
          exists = conjunction(b, loc, exists, lessThan(b, loc, k, kExtent));
        Value count =
            allTokens ? Value() : countInside(b, loc, tokens, column, width);
        ChunkSource from;
        from.indices = {k, column};
        if (transposed)
          std::swap(from.indices[0], from.indices[1]);
        from.valid = selectCount(b, loc, exists, count, width);
        from.rowExists = exists;
        from.count = count;
        return from;
      };
      copier.copy(width, /*rowFastest=*/transposed, /*isPlain=*/false, source);
    };
    if (transposed)
      emitTransposed(rewriter, loc, copier, tokens, dstType.getDimSize(1),
                     [&](bool whole) { emit(1, allTokens || whole); });
    else
      emitBothWidths(rewriter, loc, copier,
                     [&](int64_t width) { emit(width, allTokens); });
    rewriter.eraseOp(op);
    return success();
  }

  const ThreadLayout &layout;
};

} // namespace

void nm_sparse::populateTileCopyPatterns(const TypeConverter &converter,
                                         const ThreadLayout &layout,
                                         RewritePatternSet &patterns) {
  patterns.add<AsyncCopyLowering, AsyncGatherLowering>(
      converter, patterns.getContext(), layout);
}
