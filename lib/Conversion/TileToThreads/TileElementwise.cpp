//===- TileElementwise.cpp - arithmetic on tiles becomes scalar -----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A value of type `vector<tokens x outputs x T>` is, in each thread, the
// scalars that its ThreadLayout names. Elementwise operations act on each, and
// those of f16 on pairs, for which a GPU has instructions.
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Conversion/TileToThreads/Patterns.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::nm_sparse;

Value nm_sparse::makePair(OpBuilder &b, Location loc, Value low, Value high) {
  auto type = VectorType::get({2}, low.getType());
  auto lowElement = low.getDefiningOp<vector::ExtractOp>();
  auto highElement = high.getDefiningOp<vector::ExtractOp>();
  if (lowElement && highElement &&
      lowElement.getSource() == highElement.getSource() &&
      lowElement.getSource().getType() == type &&
      lowElement.getStaticPosition() == ArrayRef<int64_t>(0) &&
      highElement.getStaticPosition() == ArrayRef<int64_t>(1))
    return lowElement.getSource();
  auto lowTrunc = low.getDefiningOp<arith::TruncFOp>();
  auto highTrunc = high.getDefiningOp<arith::TruncFOp>();
  if (!lowTrunc || !highTrunc || !lowTrunc.getIn().getType().isF32() ||
      !highTrunc.getIn().getType().isF32())
    return vector::FromElementsOp::create(b, loc, type, ValueRange{low, high});
  Value wide = vector::FromElementsOp::create(
      b, loc, VectorType::get({2}, b.getF32Type()),
      ValueRange{lowTrunc.getIn(), highTrunc.getIn()});
  return arith::TruncFOp::create(b, loc, type, wide);
}

namespace {

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
    Operation *last = op->getPrevNode();
    SmallVector<Value> results = allowsPairs(op, operands)
                                     ? emitPairs(op, operands, rewriter)
                                     : emitScalars(op, operands, rewriter);
    Operation *created = last ? last->getNextNode() : &op->getBlock()->front();
    for (; created != op; created = created->getNextNode())
      epilogue.elementwise.push_back(created);
    rewriter.replaceOpWithMultiple(op, {ValueRange(results)});
    return success();
  }

private:
  /// Arithmetic of f16 alone.
  bool allowsPairs(Operation *op, ArrayRef<ValueRange> operands) const {
    return isa<arith::AddFOp, arith::SubFOp, arith::MulFOp, arith::NegFOp,
               arith::MaximumFOp, arith::MinimumFOp, arith::MaxNumFOp,
               arith::MinNumFOp, math::AbsFOp, math::FmaOp>(op) &&
           layout.getNumElements() % 2 == 0 &&
           getElementTypeOrSelf(op->getResult(0).getType()).isF16() &&
           llvm::all_of(operands, [&](ValueRange operand) {
             return static_cast<int64_t>(operand.size()) ==
                        layout.getNumElements() &&
                    operand.front().getType().isF16();
           });
  }

  SmallVector<Value> emitScalars(Operation *op, ArrayRef<ValueRange> operands,
                                 OpBuilder &b) const {
    auto type = cast<VectorType>(op->getResult(0).getType());
    SmallVector<Value> results;
    for (int64_t e = 0; e < layout.getNumElements(); ++e) {
      SmallVector<Value> scalars;
      for (ValueRange operand : operands)
        scalars.push_back(operand.size() == 1 ? operand[0] : operand[e]);
      results.push_back(b.create(op->getLoc(), op->getName().getIdentifier(),
                                 scalars, {type.getElementType()},
                                 op->getAttrs())
                            ->getResult(0));
    }
    return results;
  }

  /// Neighbours are pairs also where a fragment is stored.
  SmallVector<Value> emitPairs(Operation *op, ArrayRef<ValueRange> operands,
                               OpBuilder &b) const {
    Location loc = op->getLoc();
    auto type = VectorType::get({2}, b.getF16Type());
    SmallVector<Value> results;
    for (int64_t e = 0; e < layout.getNumElements(); e += 2) {
      SmallVector<Value> pairs;
      for (ValueRange operand : operands)
        pairs.push_back(makePair(b, loc, operand[e], operand[e + 1]));
      Value pair = b.create(loc, op->getName().getIdentifier(), pairs, {type},
                            op->getAttrs())
                       ->getResult(0);
      results.push_back(vector::ExtractOp::create(b, loc, pair, 0));
      results.push_back(vector::ExtractOp::create(b, loc, pair, 1));
    }
    return results;
  }

  const ThreadLayout &layout;
  TileEpilogue &epilogue;
};

struct ConstantLowering : TilePattern<arith::ConstantOp> {
  using TilePattern::TilePattern;

  LogicalResult
  matchAndRewrite(arith::ConstantOp op, OpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    auto splat = dyn_cast<SplatElementsAttr>(op.getValue());
    if (!splat || getTypeConverter()->isLegal(op.getResult()))
      return rewriter.notifyMatchFailure(op, "not a splat of a tile");
    Value scalar = arith::ConstantOp::create(
        rewriter, op.getLoc(),
        cast<TypedAttr>(splat.getSplatValue<Attribute>()));
    SmallVector<Value> results(layout.getNumElements(), scalar);
    rewriter.replaceOpWithMultiple(op, {ValueRange(results)});
    return success();
  }
};

struct BroadcastLowering : TilePattern<vector::BroadcastOp> {
  using TilePattern::TilePattern;

  LogicalResult
  matchAndRewrite(vector::BroadcastOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    if (isa<VectorType>(op.getSourceType()))
      return rewriter.notifyMatchFailure(op, "source is not a scalar");
    SmallVector<Value> results(layout.getNumElements(), adaptor.getSource());
    rewriter.replaceOpWithMultiple(op, {ValueRange(results)});
    return success();
  }
};

} // namespace

void nm_sparse::populateTileElementwisePatterns(const TypeConverter &converter,
                                                const ThreadLayout &layout,
                                                TileEpilogue &epilogue,
                                                RewritePatternSet &patterns) {
  MLIRContext *context = patterns.getContext();
  patterns.add<BroadcastLowering, ConstantLowering>(converter, context, layout);
  patterns.add<ElementwiseLowering>(converter, context, layout, epilogue);
}
