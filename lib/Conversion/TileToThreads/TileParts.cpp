//===- TileParts.cpp - parts of tiles in the order of threads -------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A part of a sum is only for the same threads of another CTA to read. So it
// lies in memory as they hold it, each thread's next 16 bytes beside those of
// the next thread: each access of a warp is 512 bytes in one piece. By rows and
// columns, a warp would access 8 rows of a warpgroup's fragments at a time, 32
// bytes of each.
//
//===----------------------------------------------------------------------===//

#include "TileAccess.h"
#include "nm_sparse/Conversion/TileToThreads/Patterns.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::nm_sparse;

/// Bytes of one access.
static constexpr int64_t kAccessBytes = 16;

/// Elements of `type` in one access.
static int64_t getWidth(MemRefType type) {
  return kAccessBytes * 8 / type.getElementTypeBitWidth();
}

/// One access of all threads is whole rows of the buffer's last dimension.
static LogicalResult checkOrder(Operation *op, const ThreadLayout &layout,
                                MemRefType type) {
  int64_t columns = type.getShape().back(), width = getWidth(type);
  if (columns % width == 0 && layout.numThreads * width % columns == 0 &&
      layout.getNumElements() % width == 0)
    return success();
  return op->emitOpError("needs rows that divide the ")
         << layout.numThreads * width << " elements which the "
         << layout.numThreads << " threads access at a time, in pieces of "
         << kAccessBytes << " bytes; got " << type;
}

/// Indices of the access that begins with element `first` of each thread.
static SmallVector<Value> getIndices(OpBuilder &b, Location loc,
                                     const ThreadLayout &layout,
                                     MemRefType type, ValueRange tile,
                                     int64_t first) {
  auto constant = [&](int64_t v) -> Value {
    return arith::ConstantIndexOp::create(b, loc, v);
  };
  Value columns = constant(type.getShape().back());
  Value place = b.createOrFold<arith::MulIOp>(loc, layout.threadId,
                                              constant(getWidth(type)));
  SmallVector<Value> indices(tile);
  indices.push_back(b.createOrFold<arith::AddIOp>(
      loc, b.createOrFold<arith::DivUIOp>(loc, place, columns),
      constant(first * layout.numThreads / type.getShape().back())));
  indices.push_back(b.createOrFold<arith::RemUIOp>(loc, place, columns));
  return indices;
}

namespace {

struct StorePartLowering : public OpConversionPattern<StorePartOp> {
  StorePartLowering(const TypeConverter &converter, MLIRContext *context,
                    const ThreadLayout &layout, TileEpilogue &epilogue)
      : OpConversionPattern(converter, context), layout(layout),
        epilogue(epilogue) {}

  LogicalResult
  matchAndRewrite(StorePartOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    auto type = cast<MemRefType>(op.getParts().getType());
    if (failed(checkOrder(op, layout, type)))
      return failure();
    Location loc = op.getLoc();
    ValueRange scalars = adaptor.getValue();
    ++epilogue.numWrites;
    bool untie = mustUntie(layout, type.getElementType(), epilogue);
    int64_t width = getWidth(type);
    auto vectorType = VectorType::get({width}, type.getElementType());
    for (int64_t first = 0; first < layout.getNumElements(); first += width) {
      SmallVector<Value> at =
          getIndices(rewriter, loc, layout, type, op.getIndices(), first);
      SmallVector<Value> elements;
      for (Value scalar : scalars.slice(first, width))
        elements.push_back(untie ? copyToAnyRegister(rewriter, loc, scalar)
                                 : scalar);
      Value packed =
          vector::FromElementsOp::create(rewriter, loc, vectorType, elements);
      vector::StoreOp::create(rewriter, loc, packed, op.getParts(), at,
                              /*nontemporal=*/false, llvm::Align(kAccessBytes));
    }
    rewriter.eraseOp(op);
    return success();
  }

  const ThreadLayout &layout;
  TileEpilogue &epilogue;
};

struct LoadPartLowering : public OpConversionPattern<LoadPartOp> {
  LoadPartLowering(const TypeConverter &converter, MLIRContext *context,
                   const ThreadLayout &layout)
      : OpConversionPattern(converter, context), layout(layout) {}

  LogicalResult
  matchAndRewrite(LoadPartOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    auto type = cast<MemRefType>(op.getParts().getType());
    if (failed(checkOrder(op, layout, type)))
      return failure();
    Location loc = op.getLoc();
    int64_t width = getWidth(type);
    auto vectorType = VectorType::get({width}, type.getElementType());
    SmallVector<Value> scalars;
    for (int64_t first = 0; first < layout.getNumElements(); first += width) {
      SmallVector<Value> at =
          getIndices(rewriter, loc, layout, type, op.getIndices(), first);
      Value loaded = vector::LoadOp::create(
          rewriter, loc, vectorType, op.getParts(), at, /*nontemporal=*/false,
          llvm::Align(kAccessBytes));
      for (int64_t i = 0; i < width; ++i)
        scalars.push_back(vector::ExtractOp::create(rewriter, loc, loaded, i));
    }
    rewriter.replaceOpWithMultiple(op, {ValueRange(scalars)});
    return success();
  }

  const ThreadLayout &layout;
};

} // namespace

void nm_sparse::populateTilePartPatterns(const TypeConverter &converter,
                                         const ThreadLayout &layout,
                                         TileEpilogue &epilogue,
                                         RewritePatternSet &patterns) {
  patterns.add<StorePartLowering>(converter, patterns.getContext(), layout,
                                  epilogue);
  patterns.add<LoadPartLowering>(converter, patterns.getContext(), layout);
}
