//===- TileVectors.cpp - CTA-tile vectors become scalars of threads -------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A value of type `vector<tokens x outputs x T>` is, in each thread, the
// scalars that its ThreadLayout names. Elementwise operations act on each;
// transfers to and from global memory test bounds element by element, unless
// the whole tile lies inside and its address allows wide accesses.
//
//===----------------------------------------------------------------------===//

#include "FragmentStore.h"
#include "Patterns.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::nm_sparse;

namespace {

bool isTileVector(const TypeConverter &converter, Type type) {
  return isa<VectorType>(type) && !converter.isLegal(type);
}

/// Accumulators and elements beside them that registers may hold.
constexpr int64_t kLiveElements = 112;

struct ElementwiseLowering : public ConversionPattern {
  ElementwiseLowering(const TypeConverter &converter, MLIRContext *context,
                      const ThreadLayout &layout, TileEpilogue &epilogue)
      : ConversionPattern(converter, MatchAnyOpTypeTag(), /*benefit=*/1,
                          context),
        layout(layout), epilogue(epilogue) {}

  LogicalResult
  matchAndRewrite(Operation *op, ArrayRef<ValueRange> operands,
                  ConversionPatternRewriter &rewriter) const override {
    if (!OpTrait::hasElementwiseMappableTraits(op) || op->getNumResults() != 1)
      return rewriter.notifyMatchFailure(op, "not elementwise");
    auto type = cast<VectorType>(op->getResult(0).getType());
    SmallVector<Value> results;
    for (int64_t e = 0; e < layout.getNumElements(); ++e) {
      SmallVector<Value> scalars;
      for (ValueRange operand : operands)
        scalars.push_back(operand.size() == 1 ? operand[0] : operand[e]);
      Operation *scalar =
          rewriter.create(op->getLoc(), op->getName().getIdentifier(), scalars,
                          {type.getElementType()}, op->getAttrs());
      results.push_back(scalar->getResult(0));
      epilogue.elementwise.push_back(scalar);
    }
    rewriter.replaceOpWithMultiple(op, {ValueRange(results)});
    return success();
  }

  const ThreadLayout &layout;
  TileEpilogue &epilogue;
};

struct ConstantLowering : public OpConversionPattern<arith::ConstantOp> {
  ConstantLowering(const TypeConverter &converter, MLIRContext *context,
                   const ThreadLayout &layout)
      : OpConversionPattern(converter, context), layout(layout) {}

  LogicalResult
  matchAndRewrite(arith::ConstantOp op, OpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    auto splat = dyn_cast<SplatElementsAttr>(op.getValue());
    if (!isTileVector(*getTypeConverter(), op.getType()) || !splat)
      return rewriter.notifyMatchFailure(op, "not a splat of a tile");
    Value scalar = arith::ConstantOp::create(
        rewriter, op.getLoc(),
        cast<TypedAttr>(splat.getSplatValue<Attribute>()));
    SmallVector<Value> results(layout.getNumElements(), scalar);
    rewriter.replaceOpWithMultiple(op, {ValueRange(results)});
    return success();
  }

  const ThreadLayout &layout;
};

struct BroadcastLowering : public OpConversionPattern<vector::BroadcastOp> {
  BroadcastLowering(const TypeConverter &converter, MLIRContext *context,
                    const ThreadLayout &layout)
      : OpConversionPattern(converter, context), layout(layout) {}

  LogicalResult
  matchAndRewrite(vector::BroadcastOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    if (isa<VectorType>(op.getSourceType()))
      return rewriter.notifyMatchFailure(op, "source is not a scalar");
    SmallVector<Value> results(layout.getNumElements(), adaptor.getSource());
    rewriter.replaceOpWithMultiple(op, {ValueRange(results)});
    return success();
  }

  const ThreadLayout &layout;
};

/// Where the elements of a tile lie in a buffer, for reads and writes alike.
class TileAccess {
public:
  /// `map` takes the buffer's dimensions to (token, output), with constant 0
  /// for a dimension over which the buffer is broadcast.
  TileAccess(OpBuilder &b, Location loc, const ThreadLayout &layout,
             Value buffer, ValueRange indices, AffineMap map,
             ArrayRef<bool> inBounds)
      : b(b), loc(loc), layout(layout), buffer(buffer),
        type(cast<MemRefType>(buffer.getType())), indices(indices),
        inBounds(inBounds) {
    for (unsigned side = 0; side < 2; ++side)
      if (auto dim = dyn_cast<AffineDimExpr>(map.getResult(side)))
        dims[side] = dim.getPosition();
  }

  Value constant(int64_t v) {
    return arith::ConstantIndexOp::create(b, loc, v);
  }
  bool isBroadcast(unsigned side) const { return dims[side] < 0; }

  /// True when neighbours along `side` (0 tokens, 1 outputs) are neighbours in
  /// memory.
  bool isContiguous(unsigned side) {
    return dims[side] == type.getRank() - 1 && type.getRank() > 0 &&
           type.isLastDimUnitStride();
  }

  /// Indices in the buffer of the element at `offset` from the thread's base.
  SmallVector<Value> getIndices(TileOffset offset) {
    SmallVector<Value> result(indices);
    for (unsigned side = 0; side < 2; ++side) {
      if (isBroadcast(side))
        continue;
      Value &index = result[dims[side]];
      index = b.createOrFold<arith::AddIOp>(
          loc, index, side ? layout.output : layout.token);
      index = b.createOrFold<arith::AddIOp>(
          loc, index, constant(side ? offset.output : offset.token));
    }
    return result;
  }

  /// i1: the element at `at` exists; null when it is known to.
  Value exists(ArrayRef<Value> at) {
    Value result;
    for (unsigned side = 0; side < 2; ++side) {
      if (isBroadcast(side) || inBounds[side])
        continue;
      Value extent = memref::DimOp::create(b, loc, buffer, dims[side]);
      Value inside = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt,
                                           at[dims[side]], extent);
      result = result
                   ? arith::AndIOp::create(b, loc, result, inside).getResult()
                   : inside;
    }
    return result;
  }

  /// i1: the whole CTA tile exists and runs of `width` elements along the last
  /// dimension are aligned; null when both are known.
  Value allowsWide(int64_t width) {
    Value result = width > 1 ? isAligned(width) : Value();
    for (unsigned side = 0; side < 2; ++side) {
      if (isBroadcast(side) || inBounds[side])
        continue;
      Value extent = memref::DimOp::create(b, loc, buffer, dims[side]);
      Value end = arith::AddIOp::create(
          b, loc, indices[dims[side]],
          constant(side ? layout.tileOutputs : layout.tileTokens));
      Value inside =
          arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sle, end, extent);
      result = result
                   ? arith::AndIOp::create(b, loc, result, inside).getResult()
                   : inside;
    }
    return result;
  }

  /// i1: each row, and the tile's place in it, are multiples of `width`
  /// elements.
  Value isAligned(int64_t width) {
    auto metadata = memref::ExtractStridedMetadataOp::create(b, loc, buffer);
    int64_t bytes = type.getElementTypeBitWidth() / 8;
    Value address = arith::AddIOp::create(
        b, loc, memref::ExtractAlignedPointerAsIndexOp::create(b, loc, buffer),
        arith::MulIOp::create(b, loc, metadata.getOffset(), constant(bytes)));
    for (int64_t d = 0; d + 1 < type.getRank(); ++d)
      address = arith::OrIOp::create(
          b, loc, address,
          arith::MulIOp::create(b, loc, metadata.getStrides()[d],
                                constant(bytes)));
    address = arith::OrIOp::create(
        b, loc, address,
        arith::MulIOp::create(b, loc, indices.back(), constant(bytes)));
    return arith::CmpIOp::create(
        b, loc, arith::CmpIPredicate::eq,
        arith::RemUIOp::create(b, loc, address, constant(width * bytes)),
        constant(0));
  }

  /// Runs to access together: along the side that is contiguous in memory, up
  /// to 16 bytes wide; single elements when neither is.
  SmallVector<SmallVector<int64_t>> getRuns() {
    int64_t width = 128 / type.getElementTypeBitWidth();
    if (isContiguous(0))
      return layout.getRuns(/*alongTokens=*/true, width);
    if (isContiguous(1))
      return layout.getRuns(/*alongTokens=*/false, width);
    return layout.getRuns(/*alongTokens=*/false, 1);
  }

  OpBuilder &b;
  Location loc;
  const ThreadLayout &layout;
  Value buffer;
  MemRefType type;
  SmallVector<Value> indices;
  SmallVector<bool> inBounds;
  int64_t dims[2] = {-1, -1};
};

/// Runs in groups whose accesses share one `scf.if`: all in one group, or, when
/// registers are short, 32 elements in each.
SmallVector<ArrayRef<SmallVector<int64_t>>>
groupRuns(ArrayRef<SmallVector<int64_t>> runs, bool small) {
  size_t size = small ? std::max<size_t>(1, 32 / runs.front().size())
                      : std::max<size_t>(1, runs.size());
  SmallVector<ArrayRef<SmallVector<int64_t>>> groups;
  for (; runs.size() > size; runs = runs.drop_front(size))
    groups.push_back(runs.take_front(size));
  groups.push_back(runs);
  return groups;
}

struct ReadLowering : public OpConversionPattern<vector::TransferReadOp> {
  ReadLowering(const TypeConverter &converter, MLIRContext *context,
               const ThreadLayout &layout, TileEpilogue &epilogue)
      : OpConversionPattern(converter, context), layout(layout),
        epilogue(epilogue) {}

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

  /// The elements of `runs`, which all exist, in order.
  SmallVector<Value> readRuns(TileAccess &access,
                              ArrayRef<SmallVector<int64_t>> runs) const {
    OpBuilder &b = access.b;
    SmallVector<Value> values;
    int64_t width = runs.front().size();
    auto vectorType = VectorType::get({width}, access.type.getElementType());
    for (ArrayRef<int64_t> run : runs) {
      SmallVector<Value> at = access.getIndices(layout.getOffset(run.front()));
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
  SmallVector<Value> readGroup(TileAccess &access,
                               ArrayRef<SmallVector<int64_t>> runs,
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
    for (ArrayRef<int64_t> run : runs)
      for (int64_t e : run)
        narrow.push_back(readElement(access, e, padding));
    scf::YieldOp::create(b, access.loc, narrow);
    return SmallVector<Value>(ifOp.getResults());
  }

  LogicalResult
  matchAndRewrite(vector::TransferReadOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    if (!isa<MemRefType>(op.getBase().getType()) || op.getMask())
      return rewriter.notifyMatchFailure(op,
                                         "not an unmasked read of a buffer");
    TileAccess access(rewriter, op.getLoc(), layout, op.getBase(),
                      op.getIndices(), op.getPermutationMap(),
                      op.getInBoundsValues());
    // Elements over which the buffer is broadcast are read once.
    auto keyOf = [&](ArrayRef<int64_t> run) {
      TileOffset offset = layout.getOffset(run.front());
      return std::make_pair(access.isBroadcast(0) ? 0 : offset.token,
                            access.isBroadcast(1) ? 0 : offset.output);
    };
    auto runs = access.getRuns();
    int64_t width = runs.front().size();
    llvm::DenseMap<std::pair<int64_t, int64_t>, int64_t> firstValue;
    SmallVector<SmallVector<int64_t>> distinct;
    for (ArrayRef<int64_t> run : runs)
      if (firstValue.try_emplace(keyOf(run), distinct.size() * width).second)
        distinct.emplace_back(run);

    int64_t live = layout.getNumElements() + distinct.size() * width;
    bool small = live > kLiveElements;
    Value allowsWide = access.allowsWide(width);
    SmallVector<Value> values;
    for (ArrayRef<SmallVector<int64_t>> group : groupRuns(distinct, small)) {
      llvm::append_range(values,
                         readGroup(access, group, allowsWide, op.getPadding()));
      if (Operation *read = values.back().getDefiningOp();
          small && isa<scf::IfOp>(read))
        epilogue.reads.push_back(read);
    }
    SmallVector<Value> results(layout.getNumElements());
    for (ArrayRef<int64_t> run : runs)
      for (int64_t i = 0; i < width; ++i)
        results[run[i]] = values[firstValue[keyOf(run)] + i];
    rewriter.replaceOpWithMultiple(op, {ValueRange(results)});
    return success();
  }

  const ThreadLayout &layout;
  TileEpilogue &epilogue;
};

struct WriteLowering : public OpConversionPattern<vector::TransferWriteOp> {
  WriteLowering(const TypeConverter &converter, MLIRContext *context,
                const ThreadLayout &layout, TileEpilogue &epilogue)
      : OpConversionPattern(converter, context), layout(layout),
        epilogue(epilogue) {}

  void writeElement(TileAccess &access, int64_t e, Value scalar) const {
    OpBuilder &b = access.b;
    SmallVector<Value> at = access.getIndices(layout.getOffset(e));
    OpBuilder::InsertionGuard guard(b);
    if (Value exists = access.exists(at)) {
      auto ifOp =
          scf::IfOp::create(b, access.loc, exists, /*withElseRegion=*/false);
      b.setInsertionPointToStart(ifOp.thenBlock());
    }
    memref::StoreOp::create(b, access.loc, scalar, access.buffer, at);
  }

  /// A copy of `value` that ptxas cannot do without. Four registers that are
  /// stored together are neighbours, as are the four outputs of the weight that
  /// one read fetched, so each accumulator of a simt thread would share the
  /// register bank of its weight, and the FFMA that reads both takes two
  /// cycles. A sum with -0.0 has the bits of `value`.
  static Value copyToAnyRegister(OpBuilder &b, Location loc, Value value) {
    return LLVM::InlineAsmOp::create(
               b, loc, value.getType(), value, "add.rn.f32 $0, $1, 0f80000000;",
               "=f,f",
               /*has_side_effects=*/false, /*is_align_stack=*/false,
               LLVM::TailCallKind::None, LLVM::AsmDialectAttr(), ArrayAttr())
        .getResult(0);
  }

  /// Writes `runs`, all of whose elements exist.
  void writeRuns(TileAccess &access, ArrayRef<SmallVector<int64_t>> runs,
                 ValueRange scalars) const {
    OpBuilder &b = access.b;
    int64_t width = runs.front().size();
    auto vectorType = VectorType::get({width}, access.type.getElementType());
    // What was computed from accumulators is in registers of its own.
    bool untie = layout.kind == ScheduleKind::Simt &&
                 access.type.getElementType().isF32() &&
                 epilogue.elementwise.empty();
    for (ArrayRef<int64_t> run : runs) {
      SmallVector<Value> at = access.getIndices(layout.getOffset(run.front()));
      if (width == 1) {
        memref::StoreOp::create(b, access.loc, scalars[run.front()],
                                access.buffer, at);
        continue;
      }
      SmallVector<Value> elements;
      for (int64_t e : run)
        elements.push_back(untie ? copyToAnyRegister(b, access.loc, scalars[e])
                                 : scalars[e]);
      Value packed =
          vector::FromElementsOp::create(b, access.loc, vectorType, elements);
      vector::StoreOp::create(
          b, access.loc, packed, access.buffer, at, /*nontemporal=*/false,
          llvm::Align(width * access.type.getElementTypeBitWidth() / 8));
    }
  }

  /// As writeRuns, for pairs of neighbours that make up whole fragment rows.
  /// Each lane's position along the contiguous dimension moves by `shift`.
  void writeFragments(TileAccess &access, ArrayRef<SmallVector<int64_t>> runs,
                      ValueRange scalars) const {
    OpBuilder &b = access.b;
    unsigned dim = access.dims[layout.outputsAreRows ? 0 : 1];
    storeFragments(
        b, access.loc, layout, scalars, runs.front().front(), runs.size() * 2,
        [&](Value vector, TileOffset offset, Value shift) {
          SmallVector<Value> at = access.getIndices(offset);
          at[dim] = arith::AddIOp::create(b, access.loc, at[dim], shift);
          vector::StoreOp::create(b, access.loc, vector, access.buffer, at,
                                  /*nontemporal=*/false, llvm::Align(16));
        });
  }

  LogicalResult
  matchAndRewrite(vector::TransferWriteOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    if (!isa<MemRefType>(op.getBase().getType()) || op.getMask())
      return rewriter.notifyMatchFailure(op,
                                         "not an unmasked write to a buffer");
    Location loc = op.getLoc();
    ValueRange scalars = adaptor.getValueToStore();
    TileAccess access(rewriter, loc, layout, op.getBase(), op.getIndices(),
                      op.getPermutationMap(), op.getInBoundsValues());
    auto runs = access.getRuns();
    ++epilogue.numWrites;
    int64_t width = runs.front().size();
    bool fragments =
        width > 1 && canStoreFragments(layout, access.type.getElementType(),
                                       access.isContiguous(0));
    Value allowsWide = access.allowsWide(fragments ? 8 : width);
    // Elements that are combined with others are written a few at a time, for
    // want of registers. The rest in one piece: the tests of each element that
    // the narrow path needs would be shared by the pieces, and be made by all.
    for (ArrayRef<SmallVector<int64_t>> group :
         groupRuns(runs, /*small=*/!epilogue.reads.empty())) {
      if (!allowsWide) {
        writeRuns(access, group, scalars);
        continue;
      }
      auto ifOp =
          scf::IfOp::create(rewriter, loc, allowsWide, /*withElseRegion=*/true);
      OpBuilder::InsertionGuard guard(rewriter);
      rewriter.setInsertionPointToStart(ifOp.thenBlock());
      if (fragments)
        writeFragments(access, group, scalars);
      else
        writeRuns(access, group, scalars);
      rewriter.setInsertionPointToStart(ifOp.elseBlock());
      for (ArrayRef<int64_t> run : group)
        for (int64_t e : run)
          writeElement(access, e, scalars[e]);
    }
    rewriter.eraseOp(op);
    return success();
  }

  const ThreadLayout &layout;
  TileEpilogue &epilogue;
};

} // namespace

void TileEpilogue::sinkOperations() {
  auto sink = [](Operation *op) {
    Operation *first = nullptr;
    for (Operation *user : op->getUsers()) {
      Operation *ancestor = op->getBlock()->findAncestorOpInBlock(*user);
      if (!first || ancestor->isBeforeInBlock(first))
        first = ancestor;
    }
    if (first)
      op->moveBefore(first);
  };
  // The result may share its buffer with an operand of the same tile; with
  // several results an operand must be read before the first is written.
  bool sinksReads = !reads.empty() && numWrites <= maxWrites;
  if (sinksReads || isCrowded)
    for (Operation *op : llvm::reverse(elementwise))
      sink(op);
  if (sinksReads)
    for (Operation *op : llvm::reverse(reads))
      sink(op);
}

void nm_sparse::populateTileVectorPatterns(const TypeConverter &converter,
                                           const ThreadLayout &layout,
                                           TileEpilogue &epilogue,
                                           RewritePatternSet &patterns) {
  MLIRContext *context = patterns.getContext();
  epilogue.isCrowded = layout.getNumElements() > kLiveElements;
  patterns.add<BroadcastLowering, ConstantLowering>(converter, context, layout);
  patterns.add<ElementwiseLowering, ReadLowering, WriteLowering>(
      converter, context, layout, epilogue);
}
