//===- TileElementwise.cpp - arithmetic on tiles becomes scalar -----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A value of type `vector<tokens x outputs x T>` is, in each thread, the
// scalars that its ThreadLayout names. Elementwise operations act on each.
//
//===----------------------------------------------------------------------===//

#include "Patterns.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::nm_sparse;

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
    if (!splat || getTypeConverter()->isLegal(op.getType()))
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

} // namespace

void nm_sparse::populateTileElementwisePatterns(const TypeConverter &converter,
                                                const ThreadLayout &layout,
                                                TileEpilogue &epilogue,
                                                RewritePatternSet &patterns) {
  MLIRContext *context = patterns.getContext();
  patterns.add<BroadcastLowering, ConstantLowering>(converter, context, layout);
  patterns.add<ElementwiseLowering>(converter, context, layout, epilogue);
}
