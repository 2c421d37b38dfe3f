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
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::nm_sparse;

namespace {

bool isTileVector(const TypeConverter &converter, Type type) {
  return isa<VectorType>(type) && !converter.isLegal(type);
}

struct ElementwiseLowering : public ConversionPattern {
  ElementwiseLowering(const TypeConverter &converter, MLIRContext *context,
                      const ThreadLayout &layout)
      : ConversionPattern(converter, MatchAnyOpTypeTag(), /*benefit=*/1,
                          context),
        layout(layout) {}

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
    }
    rewriter.replaceOpWithMultiple(op, {ValueRange(results)});
    return success();
  }

  const ThreadLayout &layout;
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
  /// dimension are aligned.
  Value allowsWide(int64_t width) {
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
    Value result = arith::CmpIOp::create(
        b, loc, arith::CmpIPredicate::eq,
        arith::RemUIOp::create(b, loc, address, constant(width * bytes)),
        constant(0));
    for (unsigned side = 0; side < 2; ++side) {
      if (isBroadcast(side) || inBounds[side])
        continue;
      Value extent = memref::DimOp::create(b, loc, buffer, dims[side]);
      Value end = arith::AddIOp::create(
          b, loc, indices[dims[side]],
          constant(side ? layout.tileOutputs : layout.tileTokens));
      Value inside =
          arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sle, end, extent);
      result = arith::AndIOp::create(b, loc, result, inside);
    }
    return result;
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

struct ReadLowering : public OpConversionPattern<vector::TransferReadOp> {
  ReadLowering(const TypeConverter &converter, MLIRContext *context,
               const ThreadLayout &layout)
      : OpConversionPattern(converter, context), layout(layout) {}

  /// Element by element, each coordinate of the buffer once.
  SmallVector<Value> readNarrow(TileAccess &access, Value padding) const {
    OpBuilder &b = access.b;
    SmallVector<Value> results;
    llvm::DenseMap<std::pair<int64_t, int64_t>, Value> seen;
    for (int64_t e = 0; e < layout.getNumElements(); ++e) {
      TileOffset offset = layout.getOffset(e);
      Value &value = seen[{access.isBroadcast(0) ? 0 : offset.token,
                           access.isBroadcast(1) ? 0 : offset.output}];
      if (!value) {
        SmallVector<Value> at = access.getIndices(offset);
        if (Value exists = access.exists(at)) {
          auto ifOp =
              scf::IfOp::create(b, access.loc, access.type.getElementType(),
                                exists, /*withElseRegion=*/true);
          OpBuilder::InsertionGuard guard(b);
          b.setInsertionPointToStart(ifOp.thenBlock());
          scf::YieldOp::create(b, access.loc,
                               ValueRange{memref::LoadOp::create(
                                   b, access.loc, access.buffer, at)});
          b.setInsertionPointToStart(ifOp.elseBlock());
          scf::YieldOp::create(b, access.loc, padding);
          value = ifOp.getResult(0);
        } else {
          value = memref::LoadOp::create(b, access.loc, access.buffer, at);
        }
      }
      results.push_back(value);
    }
    return results;
  }

  SmallVector<Value> readWide(TileAccess &access,
                              ArrayRef<SmallVector<int64_t>> runs) const {
    OpBuilder &b = access.b;
    SmallVector<Value> results(layout.getNumElements());
    llvm::DenseMap<std::pair<int64_t, int64_t>, Value> seen;
    int64_t width = runs.front().size();
    auto vectorType = VectorType::get({width}, access.type.getElementType());
    for (ArrayRef<int64_t> run : runs) {
      TileOffset offset = layout.getOffset(run.front());
      Value &loaded = seen[{access.isBroadcast(0) ? 0 : offset.token,
                            access.isBroadcast(1) ? 0 : offset.output}];
      if (!loaded)
        loaded = vector::LoadOp::create(
            b, access.loc, vectorType, access.buffer, access.getIndices(offset),
            /*nontemporal=*/false,
            llvm::Align(width * access.type.getElementTypeBitWidth() / 8));
      for (int64_t i = 0; i < width; ++i)
        results[run[i]] = vector::ExtractOp::create(b, access.loc, loaded, i);
    }
    return results;
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
    auto runs = access.getRuns();
    int64_t width = runs.front().size();
    if (width == 1) {
      rewriter.replaceOpWithMultiple(
          op, {ValueRange(readNarrow(access, op.getPadding()))});
      return success();
    }
    SmallVector<Type> types(layout.getNumElements(),
                            access.type.getElementType());
    auto ifOp = scf::IfOp::create(rewriter, op.getLoc(), types,
                                  access.allowsWide(width),
                                  /*withElseRegion=*/true);
    {
      OpBuilder::InsertionGuard guard(rewriter);
      rewriter.setInsertionPointToStart(&ifOp.getThenRegion().front());
      scf::YieldOp::create(rewriter, op.getLoc(), readWide(access, runs));
      rewriter.setInsertionPointToStart(&ifOp.getElseRegion().front());
      scf::YieldOp::create(rewriter, op.getLoc(),
                           readNarrow(access, op.getPadding()));
    }
    rewriter.replaceOpWithMultiple(op, {ValueRange(ifOp.getResults())});
    return success();
  }

  const ThreadLayout &layout;
};

struct WriteLowering : public OpConversionPattern<vector::TransferWriteOp> {
  WriteLowering(const TypeConverter &converter, MLIRContext *context,
                const ThreadLayout &layout)
      : OpConversionPattern(converter, context), layout(layout) {}

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
    int64_t width = runs.front().size();
    auto writeNarrow = [&] {
      for (int64_t e = 0; e < layout.getNumElements(); ++e) {
        SmallVector<Value> at = access.getIndices(layout.getOffset(e));
        OpBuilder::InsertionGuard guard(rewriter);
        if (Value exists = access.exists(at)) {
          auto ifOp = scf::IfOp::create(rewriter, loc, exists,
                                        /*withElseRegion=*/false);
          rewriter.setInsertionPointToStart(ifOp.thenBlock());
        }
        memref::StoreOp::create(rewriter, loc, scalars[e], access.buffer, at);
      }
    };
    auto writeWide = [&] {
      auto vectorType = VectorType::get({width}, access.type.getElementType());
      for (ArrayRef<int64_t> run : runs) {
        SmallVector<Value> elements;
        for (int64_t e : run)
          elements.push_back(scalars[e]);
        Value packed =
            vector::FromElementsOp::create(rewriter, loc, vectorType, elements);
        vector::StoreOp::create(
            rewriter, loc, packed, access.buffer,
            access.getIndices(layout.getOffset(run.front())),
            /*nontemporal=*/false,
            llvm::Align(width * access.type.getElementTypeBitWidth() / 8));
      }
    };
    // Each lane's position along the contiguous dimension moves by `shift`.
    auto writeFragments = [&] {
      unsigned dim = access.dims[layout.outputsAreRows ? 0 : 1];
      storeFragments(
          rewriter, loc, layout, scalars,
          [&](Value vector, TileOffset offset, Value shift) {
            SmallVector<Value> at = access.getIndices(offset);
            at[dim] = arith::AddIOp::create(rewriter, loc, at[dim], shift);
            vector::StoreOp::create(rewriter, loc, vector, access.buffer, at,
                                    /*nontemporal=*/false, llvm::Align(16));
          });
    };
    bool fragments =
        width > 1 && canStoreFragments(layout, access.type.getElementType(),
                                       access.isContiguous(0));
    if (width == 1) {
      writeNarrow();
    } else {
      auto ifOp = scf::IfOp::create(rewriter, loc,
                                    access.allowsWide(fragments ? 8 : width),
                                    /*withElseRegion=*/true);
      OpBuilder::InsertionGuard guard(rewriter);
      rewriter.setInsertionPointToStart(ifOp.thenBlock());
      if (fragments)
        writeFragments();
      else
        writeWide();
      rewriter.setInsertionPointToStart(ifOp.elseBlock());
      writeNarrow();
    }
    rewriter.eraseOp(op);
    return success();
  }

  const ThreadLayout &layout;
};

} // namespace

void nm_sparse::populateTileVectorPatterns(const TypeConverter &converter,
                                           const ThreadLayout &layout,
                                           RewritePatternSet &patterns) {
  patterns.add<BroadcastLowering, ConstantLowering, ElementwiseLowering,
               ReadLowering, WriteLowering>(converter, patterns.getContext(),
                                            layout);
}
