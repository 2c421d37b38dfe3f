//===- TileRead.cpp - reads of CTA tiles by threads -----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A transfer from global memory tests bounds element by element, unless the
// whole tile lies inside and its address allows wide accesses. Of a buffer that
// is broadcast a thread has few elements: it reads the last one instead of any
// behind it, and needs no branches.
//
//===----------------------------------------------------------------------===//

#include "FragmentStore.h"
#include "TransposedAccess.h"
#include "nm_sparse/Conversion/TileToThreads/Patterns.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::nm_sparse;

/// Elements that an epilogue of little room reads at once.
static constexpr size_t kReadTogether = 8;

namespace {

struct ReadLowering : EpiloguePattern<vector::TransferReadOp> {
  using EpiloguePattern::EpiloguePattern;

  /// The elements of `group`, all of which exist or none does, or the padding.
  SmallVector<Value> readElements(TileAccess &access, ArrayRef<int64_t> group,
                                  Value padding) const {
    OpBuilder &b = access.b;
    SmallVector<SmallVector<Value>> at;
    for (int64_t e : group)
      at.push_back(access.getIndices(layout.getOffset(e)));
    auto load = [&] {
      return llvm::map_to_vector(
          llvm::zip_equal(group, at), [&](auto element) -> Value {
            auto [e, indices] = element;
            return memref::LoadOp::create(
                b, access.loc, access.getRoot(),
                access.getPlace(indices, layout.getOffset(e)));
          });
    };
    Value exists = access.exists(at.front());
    if (!exists)
      return load();
    SmallVector<Type> types(group.size(), access.type.getElementType());
    auto ifOp = scf::IfOp::create(b, access.loc, types, exists,
                                  /*withElseRegion=*/true);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(&ifOp.getThenRegion().front());
    scf::YieldOp::create(b, access.loc, load());
    b.setInsertionPointToStart(&ifOp.getElseRegion().front());
    scf::YieldOp::create(b, access.loc,
                         SmallVector<Value>(group.size(), padding));
    return SmallVector<Value>(ifOp.getResults());
  }

  /// The elements of `runs`, in order, `most` of them with one test.
  SmallVector<Value>
  readNarrow(TileAccess &access, ArrayRef<TileRun> runs, Value padding,
             size_t most = std::numeric_limits<size_t>::max()) const {
    llvm::DenseMap<int64_t, Value> values;
    for (ArrayRef<int64_t> group : access.groupByBounds(runs, most))
      for (auto [e, value] :
           llvm::zip_equal(group, readElements(access, group, padding)))
        values[e] = value;
    SmallVector<Value> ordered;
    for (ArrayRef<int64_t> run : runs)
      for (int64_t e : run)
        ordered.push_back(values[e]);
    return ordered;
  }

  /// As readNarrow, without branches.
  SmallVector<Value> readClamped(TileAccess &access, ArrayRef<TileRun> runs,
                                 Value padding) const {
    OpBuilder &b = access.b;
    SmallVector<Value> values;
    for (ArrayRef<int64_t> run : runs)
      for (int64_t e : run) {
        TileOffset offset = layout.getOffset(e);
        SmallVector<Value> at = access.getIndices(offset);
        Value exists = access.exists(at);
        Value read =
            memref::LoadOp::create(b, access.loc, access.getRoot(),
                                   access.getPlace(access.clamp(at), offset));
        values.push_back(exists ? arith::SelectOp::create(b, access.loc, exists,
                                                          read, padding)
                                      .getResult()
                                : read);
      }
    return values;
  }

  /// The elements of `run`, which all exist: a vector, or the only one.
  Value readRun(TileAccess &access, ArrayRef<int64_t> run) const {
    OpBuilder &b = access.b;
    SmallVector<Value> at = access.getPlace(run);
    Type element = access.type.getElementType();
    int64_t width = run.size();
    if (width == 1)
      return memref::LoadOp::create(b, access.loc, access.getRoot(), at);
    return vector::LoadOp::create(
        b, access.loc, VectorType::get({width}, element), access.getRoot(), at,
        /*nontemporal=*/false,
        llvm::Align(width * element.getIntOrFloatBitWidth() / 8));
  }

  /// Appends the elements of `run`, which is what readRun returns.
  static void appendElements(TileAccess &access, Value run,
                             SmallVectorImpl<Value> &values) {
    auto type = dyn_cast<VectorType>(run.getType());
    if (!type)
      return values.push_back(run);
    for (int64_t i = 0; i < type.getNumElements(); ++i)
      values.push_back(vector::ExtractOp::create(access.b, access.loc, run, i));
  }

  /// The elements of `runs`, which all exist, in order.
  SmallVector<Value> readRuns(TileAccess &access,
                              ArrayRef<TileRun> runs) const {
    SmallVector<Value> values;
    for (ArrayRef<int64_t> run : runs)
      appendElements(access, readRun(access, run), values);
    return values;
  }

  /// As readRuns, of a whole tile if `runs` are all of it.
  SmallVector<Value> readWhole(TileAccess &access,
                               ArrayRef<TileRun> runs) const {
    bool isAll = static_cast<int64_t>(runs.size()) == layout.getNumElements();
    if (isAll && readsTransposed(access))
      return TransposedAccess(access).load();
    return readRuns(access, runs);
  }

  /// The elements of `runs`, of each of which all exist or none does, in order.
  SmallVector<Value> readWholeRuns(TileAccess &access, ArrayRef<TileRun> runs,
                                   Value padding) const {
    OpBuilder &b = access.b;
    SmallVector<Value> values;
    for (ArrayRef<int64_t> run : runs) {
      SmallVector<Value> at = access.getIndices(run);
      auto read = [&](OpBuilder &, Location loc) {
        scf::YieldOp::create(b, loc, readRun(access, run));
      };
      auto pad = [&](OpBuilder &, Location loc) {
        Value none = padding;
        if (int64_t width = run.size(); width > 1)
          none = vector::BroadcastOp::create(
              b, loc, VectorType::get({width}, access.type.getElementType()),
              padding);
        scf::YieldOp::create(b, loc, none);
      };
      Value exists = access.exists(at);
      Value loaded =
          exists
              ? scf::IfOp::create(b, access.loc, exists, read, pad).getResult(0)
              : readRun(access, run);
      appendElements(access, loaded, values);
    }
    return values;
  }

  /// The elements of `runs`, in order, wide where `allowsWide` holds.
  SmallVector<Value> readGroup(TileAccess &access, ArrayRef<TileRun> runs,
                               Value allowsWide, Value padding) const {
    if (!allowsWide)
      return readWhole(access, runs);
    bool isFew = access.isBroadcast(0) || access.isBroadcast(1);
    if (isFew && runs.front().size() == 1)
      return readClamped(access, runs, padding);
    OpBuilder &b = access.b;
    SmallVector<Type> types(runs.size() * runs.front().size(),
                            access.type.getElementType());
    auto ifOp = scf::IfOp::create(b, access.loc, types, allowsWide,
                                  /*withElseRegion=*/true);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(&ifOp.getThenRegion().front());
    scf::YieldOp::create(b, access.loc, readWhole(access, runs));
    b.setInsertionPointToStart(&ifOp.getElseRegion().front());
    scf::YieldOp::create(b, access.loc,
                         isFew ? readClamped(access, runs, padding)
                               : readNarrow(access, runs, padding));
    return SmallVector<Value>(ifOp.getResults());
  }

  /// As readGroup, in a version of an epilogue.
  SmallVector<Value> readVersion(TileAccess &access, ArrayRef<TileRun> runs,
                                 TileVersion version, Value padding) const {
    if (version == TileVersion::Whole)
      return readWhole(access, runs);
    if (access.isBroadcast(0) || access.isBroadcast(1))
      return readClamped(access, runs, padding);
    if (version != TileVersion::Elements && readsTransposed(access))
      return TransposedAccess(access).loadExisting(padding);
    if (version != TileVersion::Elements)
      return readWholeRuns(access, runs, padding);
    // Runs of one element: tiles that are not full come here, however large the
    // buffer is, and behind a branch each read would wait for the one before.
    if (runs.front().size() == 1)
      return readClamped(access, runs, padding);
    return readNarrow(access, runs, padding, kReadTogether);
  }

  LogicalResult
  matchAndRewrite(vector::TransferReadOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    if (!isa<MemRefType>(op.getBase().getType()) || op.getMask())
      return rewriter.notifyMatchFailure(op,
                                         "not an unmasked read of a buffer");
    scf::IfOp ownerIf;
    OpBuilder::InsertionGuard guard(rewriter);
    if (layout.isOwner) {
      SmallVector<Type> types(layout.getNumElements(),
                              op.getVectorType().getElementType());
      ownerIf = scf::IfOp::create(rewriter, op.getLoc(), types, layout.isOwner,
                                  /*withElseRegion=*/true);
      rewriter.setInsertionPointToStart(ownerIf.elseBlock());
      scf::YieldOp::create(
          rewriter, op.getLoc(),
          SmallVector<Value>(layout.getNumElements(), op.getPadding()));
      rewriter.setInsertionPointToStart(ownerIf.thenBlock());
    }
    TileAccess access(rewriter, layout, op);
    access.usePlaces(epilogue.places);
    // Elements over which the buffer is broadcast are read once.
    llvm::DenseMap<std::pair<int64_t, int64_t>, int64_t> firstValue;
    SmallVector<TileRun> distinct = access.getDistinctRuns(firstValue);
    int64_t width = distinct.front().size();

    int64_t live = layout.getNumElements() + distinct.size() * width;
    TileVersion version = epilogue.versions.lookup(op);
    bool small = live > kLiveElements && version == TileVersion::Unknown;
    SmallVector<Value> values;
    Value allowsWide =
        version == TileVersion::Unknown
            ? access.allowsWide(readsTransposed(access) && !small ? 2 : width)
            : Value();
    for (ArrayRef<TileRun> group : groupRuns(distinct, small)) {
      if (version != TileVersion::Unknown) {
        llvm::append_range(
            values, readVersion(access, group, version, op.getPadding()));
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
    if (ownerIf) {
      scf::YieldOp::create(rewriter, op.getLoc(), results);
      results.assign(ownerIf.getResults().begin(), ownerIf.getResults().end());
    }
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
