//===- TileRead.cpp - reads of CTA tiles by threads -----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A transfer from global memory tests bounds element by element, unless the
// whole tile lies inside and its address allows wide accesses.
//
//===----------------------------------------------------------------------===//

#include "TileAccess.h"
#include "nm_sparse/Conversion/TileToThreads/Patterns.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::nm_sparse;

namespace {

struct ReadLowering : EpiloguePattern<vector::TransferReadOp> {
  using EpiloguePattern::EpiloguePattern;

  /// Element `e`, or the padding where it does not exist.
  Value readElement(TileAccess &access, int64_t e, Value padding) const {
    OpBuilder &b = access.b;
    SmallVector<Value> at = access.getIndices(layout.getOffset(e));
    Value exists = access.exists(at);
    if (!exists)
      return memref::LoadOp::create(b, access.loc, access.buffer, at);
    auto ifOp = scf::IfOp::create(b, access.loc, access.type.getElementType(),
                                  exists, /*withElseRegion=*/true);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(ifOp.thenBlock());
    scf::YieldOp::create(
        b, access.loc,
        ValueRange{memref::LoadOp::create(b, access.loc, access.buffer, at)});
    b.setInsertionPointToStart(ifOp.elseBlock());
    scf::YieldOp::create(b, access.loc, padding);
    return ifOp.getResult(0);
  }

  void readElements(TileAccess &access, ArrayRef<TileRun> runs, Value padding,
                    SmallVectorImpl<Value> &values) const {
    for (ArrayRef<int64_t> run : runs)
      for (int64_t e : run)
        values.push_back(readElement(access, e, padding));
  }

  /// The elements of `runs`, which all exist, in order.
  SmallVector<Value> readRuns(TileAccess &access,
                              ArrayRef<TileRun> runs) const {
    OpBuilder &b = access.b;
    SmallVector<Value> values;
    int64_t width = runs.front().size();
    auto vectorType = VectorType::get({width}, access.type.getElementType());
    for (ArrayRef<int64_t> run : runs) {
      SmallVector<Value> at = access.getIndices(run);
      if (width == 1) {
        values.push_back(
            memref::LoadOp::create(b, access.loc, access.buffer, at));
        continue;
      }
      Value loaded = vector::LoadOp::create(
          b, access.loc, vectorType, access.buffer, at, /*nontemporal=*/false,
          llvm::Align(width * access.type.getElementTypeBitWidth() / 8));
      for (int64_t i = 0; i < width; ++i)
        values.push_back(vector::ExtractOp::create(b, access.loc, loaded, i));
    }
    return values;
  }

  /// The elements of `runs`, in order, wide where `allowsWide` holds.
  SmallVector<Value> readGroup(TileAccess &access, ArrayRef<TileRun> runs,
                               Value allowsWide, Value padding) const {
    if (!allowsWide)
      return readRuns(access, runs);
    OpBuilder &b = access.b;
    SmallVector<Type> types(runs.size() * runs.front().size(),
                            access.type.getElementType());
    auto ifOp = scf::IfOp::create(b, access.loc, types, allowsWide,
                                  /*withElseRegion=*/true);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(&ifOp.getThenRegion().front());
    scf::YieldOp::create(b, access.loc, readRuns(access, runs));
    b.setInsertionPointToStart(&ifOp.getElseRegion().front());
    SmallVector<Value> narrow;
    readElements(access, runs, padding, narrow);
    scf::YieldOp::create(b, access.loc, narrow);
    return SmallVector<Value>(ifOp.getResults());
  }

  LogicalResult
  matchAndRewrite(vector::TransferReadOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    if (!isa<MemRefType>(op.getBase().getType()) || op.getMask())
      return rewriter.notifyMatchFailure(op,
                                         "not an unmasked read of a buffer");
    TileAccess access(rewriter, layout, op);
    // Elements over which the buffer is broadcast are read once.
    llvm::DenseMap<std::pair<int64_t, int64_t>, int64_t> firstValue;
    SmallVector<TileRun> distinct = access.getDistinctRuns(firstValue);
    int64_t width = distinct.front().size();

    int64_t live = layout.getNumElements() + distinct.size() * width;
    TileVersion version = epilogue.versions.lookup(op);
    bool small = live > kLiveElements && version == TileVersion::Unknown;
    SmallVector<Value> values;
    Value allowsWide =
        version == TileVersion::Unknown ? access.allowsWide(width) : Value();
    for (ArrayRef<TileRun> group : groupRuns(distinct, small)) {
      if (version == TileVersion::Edge) {
        readElements(access, group, op.getPadding(), values);
        continue;
      }
      llvm::append_range(values,
                         readGroup(access, group, allowsWide, op.getPadding()));
      if (Operation *read = values.back().getDefiningOp();
          small && isa<scf::IfOp>(read))
        epilogue.reads.push_back(read);
    }
    SmallVector<Value> results(layout.getNumElements());
    for (ArrayRef<int64_t> run : access.getRuns())
      for (int64_t i = 0; i < width; ++i)
        results[run[i]] = values[firstValue[access.getKey(run)] + i];
    rewriter.replaceOpWithMultiple(op, {ValueRange(results)});
    return success();
  }
};

} // namespace

void nm_sparse::populateTileReadPatterns(const TypeConverter &converter,
                                         const ThreadLayout &layout,
                                         TileEpilogue &epilogue,
                                         RewritePatternSet &patterns) {
  patterns.add<ReadLowering>(converter, patterns.getContext(), layout,
                             epilogue);
}
