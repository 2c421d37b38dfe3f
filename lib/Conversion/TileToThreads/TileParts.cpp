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

namespace {

/// The accesses of one thread to its part of a tile.
class PartAccess {
public:
  /// Fails, with an error at `op`, where an access of all threads is not whole
  /// rows of `parts`. `indices` say which part it is.
  static FailureOr<PartAccess> create(OpBuilder &b, Operation *op,
                                      const ThreadLayout &layout, Value parts,
                                      ValueRange indices);

  /// Elements of one access, as a vector.
  VectorType getVectorType() const {
    return VectorType::get({width}, type.getElementType());
  }
  /// Calls `access` with the first element and the indices of each.
  void
  forEach(function_ref<void(int64_t first, ArrayRef<Value> at)> access) const;

private:
  PartAccess(OpBuilder &b, Location loc, const ThreadLayout &layout,
             MemRefType type, ValueRange indices)
      : b(b), loc(loc), layout(layout), type(type), indices(indices),
        width(kAccessBytes * 8 / type.getElementTypeBitWidth()) {}

  OpBuilder &b;
  Location loc;
  const ThreadLayout &layout;
  MemRefType type;
  ValueRange indices;
  int64_t width;
};

FailureOr<PartAccess> PartAccess::create(OpBuilder &b, Operation *op,
                                         const ThreadLayout &layout,
                                         Value parts, ValueRange indices) {
  auto type = cast<MemRefType>(parts.getType());
  PartAccess access(b, op->getLoc(), layout, type, indices);
  int64_t columns = type.getShape().back(), width = access.width;
  if (columns % width == 0 && layout.numThreads * width % columns == 0 &&
      layout.getNumElements() % width == 0)
    return access;
  op->emitOpError("needs rows that divide the ")
      << layout.numThreads * width << " elements which the "
      << layout.numThreads << " threads access at a time, in pieces of "
      << kAccessBytes << " bytes; got " << type;
  return failure();
}

void PartAccess::forEach(
    function_ref<void(int64_t first, ArrayRef<Value> at)> access) const {
  int64_t columns = type.getShape().back();
  auto constant = [&](int64_t v) -> Value {
    return arith::ConstantIndexOp::create(b, loc, v);
  };
  for (int64_t first = 0; first < layout.getNumElements(); first += width) {
    Value place =
        b.createOrFold<arith::MulIOp>(loc, layout.threadId, constant(width));
    Value row = b.createOrFold<arith::DivUIOp>(loc, place, constant(columns));
    SmallVector<Value> at(indices);
    at.push_back(b.createOrFold<arith::AddIOp>(
        loc, row, constant(first * layout.numThreads / columns)));
    at.push_back(b.createOrFold<arith::RemUIOp>(loc, place, constant(columns)));
    access(first, at);
  }
}

struct StorePartLowering : EpiloguePattern<StorePartOp> {
  using EpiloguePattern::EpiloguePattern;

  LogicalResult
  matchAndRewrite(StorePartOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    FailureOr<PartAccess> accesses = PartAccess::create(
        rewriter, op, layout, op.getParts(), op.getIndices());
    if (failed(accesses))
      return failure();
    Location loc = op.getLoc();
    VectorType type = accesses->getVectorType();
    ++epilogue.numWrites;
    bool untie = mustUntie(layout, type.getElementType(), epilogue);
    accesses->forEach([&](int64_t first, ArrayRef<Value> at) {
      SmallVector<Value> elements;
      for (Value scalar :
           adaptor.getValue().slice(first, type.getNumElements()))
        elements.push_back(untie ? copyToAnyRegister(rewriter, loc, scalar)
                                 : scalar);
      Value stored =
          vector::FromElementsOp::create(rewriter, loc, type, elements);
      vector::StoreOp::create(rewriter, loc, stored, op.getParts(), at,
                              /*nontemporal=*/false, llvm::Align(kAccessBytes));
    });
    rewriter.eraseOp(op);
    return success();
  }
};

struct LoadPartLowering : TilePattern<LoadPartOp> {
  using TilePattern::TilePattern;

  LogicalResult
  matchAndRewrite(LoadPartOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    FailureOr<PartAccess> accesses = PartAccess::create(
        rewriter, op, layout, op.getParts(), op.getIndices());
    if (failed(accesses))
      return failure();
    Location loc = op.getLoc();
    VectorType type = accesses->getVectorType();
    SmallVector<Value> scalars;
    accesses->forEach([&](int64_t, ArrayRef<Value> at) {
      Value loaded = vector::LoadOp::create(rewriter, loc, type, op.getParts(),
                                            at, /*nontemporal=*/false,
                                            llvm::Align(kAccessBytes));
      for (int64_t i = 0; i < type.getNumElements(); ++i)
        scalars.push_back(vector::ExtractOp::create(rewriter, loc, loaded, i));
    });
    rewriter.replaceOpWithMultiple(op, {ValueRange(scalars)});
    return success();
  }
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
