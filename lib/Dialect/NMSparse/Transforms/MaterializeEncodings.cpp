//===- MaterializeEncodings.cpp - encoded weights become packed tensors ---===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A 1:N dialect conversion: a value of encoded type becomes its components.
// Constants are pruned and packed beforehand, so that a weight that breaks its
// pattern is reported before anything is changed by the conversion.
//
//===----------------------------------------------------------------------===//

#include "MaterializeConstants.h"
#include "nm_sparse/Dialect/NMSparse/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Func/Transforms/FuncConversions.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Transforms/DialectConversion.h"
#include "nm_sparse/Dialect/NMSparse/IR/NMSparse.h"

namespace mlir::nm_sparse {
#define GEN_PASS_DEF_NMSPARSEMATERIALIZEENCODINGSPASS
#include "nm_sparse/Dialect/NMSparse/Transforms/Passes.h.inc"
} // namespace mlir::nm_sparse

using namespace mlir;
using namespace mlir::nm_sparse;

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

/// The dense form of a converted weight of type `type`.
static Value buildUnpack(OpBuilder &builder, Location loc,
                         RankedTensorType type, ValueRange packed) {
  return UnpackOp::create(builder, loc, stripEncoding(type), packed,
                          getEncoding(type));
}

/// A converted operand as one dense value.
static Value getDense(OpBuilder &builder, Location loc, Type type,
                      ValueRange converted) {
  return getEncoding(type)
             ? buildUnpack(builder, loc, cast<RankedTensorType>(type),
                           converted)
             : converted.front();
}

namespace {

struct ConvertConstant : public OpConversionPattern<arith::ConstantOp> {
  ConvertConstant(const TypeConverter &converter, MLIRContext *context,
                  const PackedConstants &packed)
      : OpConversionPattern(converter, context), packed(packed) {}

  LogicalResult
  matchAndRewrite(arith::ConstantOp op, OpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    auto it = packed.find(op);
    if (it == packed.end())
      return rewriter.notifyMatchFailure(op, "data is not elements");
    Location loc = op.getLoc();
    SmallVector<Type> types;
    if (failed(getTypeConverter()->convertType(op.getType(), types)))
      return rewriter.notifyMatchFailure(op, "its type cannot be converted");
    SmallVector<Value> components =
        buildConstants(rewriter, loc, it->second, types);
    rewriter.replaceOpWithMultiple(op, {ValueRange(components)});
    return success();
  }

  const PackedConstants &packed;
};

/// `pack` of an encoded weight is what the weight was converted to.
struct ConvertPack : public OpConversionPattern<PackOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(PackOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    rewriter.replaceOp(op, adaptor.getWeight());
    return success();
  }
};

struct ConvertUnpack : public OpConversionPattern<UnpackOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(UnpackOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    SmallVector<Value> packed;
    for (ValueRange component : adaptor.getComponents())
      packed.push_back(component.front());
    rewriter.replaceOpWithMultiple(op, {ValueRange(packed)});
    return success();
  }
};

/// A weight that has the pattern already is not changed by pruning. Otherwise
/// the dense weight is pruned, and packed when the result is encoded.
struct ConvertPrune : public OpConversionPattern<PruneOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(PruneOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    auto resultType = cast<RankedTensorType>(op.getType());
    Type weightType = op.getWeight().getType();
    if (getEncoding(weightType)) {
      if (getEncoding(resultType))
        rewriter.replaceOpWithMultiple(op, {adaptor.getWeight()});
      else
        rewriter.replaceOp(op, getDense(rewriter, op.getLoc(), weightType,
                                        adaptor.getWeight()));
      return success();
    }
    Value pruned = PruneOp::create(
        rewriter, op.getLoc(), stripEncoding(resultType),
        adaptor.getWeight().front(), op.getEncoding(), op.getDensityAttr());
    auto pack = PackOp::create(rewriter, op.getLoc(), pruned, op.getEncoding());
    rewriter.replaceOpWithMultiple(op, {ValueRange(pack.getResults())});
    return success();
  }
};

/// The weight of a convolution has the components of the matrix that it is.
struct ConvertFlatten : public OpConversionPattern<tensor::CollapseShapeOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(tensor::CollapseShapeOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    if (!getEncoding(op.getType()) ||
        flattenWeight(op.getSrcType()) != op.getType())
      return rewriter.notifyMatchFailure(op, "yields no weight as a matrix");
    rewriter.replaceOpWithMultiple(op, {adaptor.getSrc()});
    return success();
  }
};

/// A cast to an encoded type claims that the data has the pattern, which `pack`
/// checks; a cast from one gives the dense weight.
struct ConvertCast : public OpConversionPattern<tensor::CastOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(tensor::CastOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Type from = op.getSource().getType(), to = op.getType();
    if (from == to) {
      rewriter.replaceOpWithMultiple(op, {adaptor.getSource()});
      return success();
    }
    Location loc = op.getLoc();
    Value dense = getDense(rewriter, loc, from, adaptor.getSource());
    EncodingAttr encoding = getEncoding(to);
    Type plain = stripEncoding(cast<RankedTensorType>(to));
    if (dense.getType() != plain)
      dense = tensor::CastOp::create(rewriter, loc, plain, dense);
    if (!encoding) {
      rewriter.replaceOp(op, dense);
      return success();
    }
    auto pack = PackOp::create(rewriter, loc, dense, encoding);
    rewriter.replaceOpWithMultiple(op, {ValueRange(pack.getResults())});
    return success();
  }
};

/// Any other operation without regions or encoded results gets the weight
/// dense.
struct ConvertOther : public ConversionPattern {
  ConvertOther(const TypeConverter &converter, MLIRContext *context)
      : ConversionPattern(converter, MatchAnyOpTypeTag(), /*benefit=*/0,
                          context) {}

  LogicalResult
  matchAndRewrite(Operation *op, ArrayRef<ValueRange> operands,
                  ConversionPatternRewriter &rewriter) const override {
    if (llvm::any_of(op->getResultTypes(), getEncoding))
      return rewriter.notifyMatchFailure(op, "yields an encoded weight");
    if (op->getNumSuccessors() != 0 || op->hasTrait<OpTrait::IsTerminator>())
      return rewriter.notifyMatchFailure(op, "passes an encoded weight on");
    SmallVector<Value> dense;
    for (auto [operand, converted] : llvm::zip(op->getOperands(), operands))
      dense.push_back(
          getDense(rewriter, op->getLoc(), operand.getType(), converted));
    rewriter.modifyOpInPlace(op, [&] { op->setOperands(dense); });
    return success();
  }
};

//===----------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------===//

/// Types and attributes of arguments or results after conversion.
struct Signature {
  SmallVector<Type> types;
  SmallVector<Attribute> attributes;
};

} // namespace

/// The first number that no component in `attributes` has as its weight.
static int64_t getFirstWeight(ArrayAttr attributes) {
  int64_t first = 0;
  if (attributes)
    for (auto own : attributes.getAsRange<DictionaryAttr>())
      if (auto component = own.getAs<ComponentAttr>(
              NMSparseDialect::ComponentAttrHelper::getNameStr()))
        first = std::max(first, component.getWeight() + 1);
  return first;
}

static Signature convertSignature(ArrayRef<Type> types, ArrayAttr attributes,
                                  MLIRContext *context) {
  Signature result;
  Builder builder(context);
  int64_t weight = getFirstWeight(attributes);
  for (auto [number, type] : llvm::enumerate(types)) {
    auto own = attributes ? cast<DictionaryAttr>(attributes[number])
                          : builder.getDictionaryAttr({});
    if (!getEncoding(type)) {
      result.types.push_back(type);
      result.attributes.push_back(own);
      continue;
    }
    auto packed = PackedAttr::get(cast<RankedTensorType>(type));
    for (const WeightComponent &component : packed.getComponents()) {
      NamedAttrList all;
      if (component.role == ComponentRole::Values)
        all = own;
      all.set(NMSparseDialect::ComponentAttrHelper::getNameStr(),
              ComponentAttr::get(context, component.name, weight, packed));
      result.types.push_back(component.type);
      result.attributes.push_back(all.getDictionary(context));
    }
    ++weight;
  }
  return result;
}

namespace {
struct ConvertFunc : public OpConversionPattern<func::FuncOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(func::FuncOp op, OpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    FunctionType type = op.getFunctionType();
    Signature arguments =
        convertSignature(type.getInputs(), op.getArgAttrsAttr(), getContext());
    Signature results =
        convertSignature(type.getResults(), op.getResAttrsAttr(), getContext());
    if (!op.isExternal()) {
      TypeConverter::SignatureConversion signature(type.getNumInputs());
      if (failed(getTypeConverter()->convertSignatureArgs(type.getInputs(),
                                                          signature)))
        return rewriter.notifyMatchFailure(op, "arguments cannot be converted");
      rewriter.applySignatureConversion(&op.getBody().front(), signature,
                                        getTypeConverter());
    }
    rewriter.modifyOpInPlace(op, [&] {
      op.setType(rewriter.getFunctionType(arguments.types, results.types));
      function_interface_impl::setAllArgAttrDicts(op, arguments.attributes);
      function_interface_impl::setAllResultAttrDicts(op, results.attributes);
    });
    return success();
  }
};

struct MaterializeEncodings
    : public nm_sparse::impl::NMSparseMaterializeEncodingsPassBase<
          MaterializeEncodings> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    PackedConstants packed;
    if (failed(checkTypes(module)) || failed(foldPrunes(module)) ||
        failed(packConstants(module, packed)))
      return signalPassFailure();
    foldPlainPacks(module, packed);

    TypeConverter converter;
    converter.addConversion([](Type type) { return type; });
    converter.addConversion(
        [](RankedTensorType type,
           SmallVectorImpl<Type> &results) -> std::optional<LogicalResult> {
          EncodingAttr encoding = getEncoding(type);
          if (!encoding)
            return std::nullopt;
          for (const WeightComponent &component :
               encoding.getDefaultStorage().getComponents(flattenWeight(type)))
            results.push_back(component.type);
          return success();
        });

    ConversionTarget target(getContext());
    target.markUnknownOpDynamicallyLegal([&](Operation *op) {
      if (auto function = dyn_cast<func::FuncOp>(op))
        return converter.isSignatureLegal(function.getFunctionType());
      return converter.isLegal(op);
    });
    RewritePatternSet patterns(&getContext());
    patterns.add<ConvertConstant>(converter, &getContext(), packed);
    patterns.add<ConvertPack, ConvertUnpack, ConvertPrune, ConvertFlatten,
                 ConvertCast, ConvertFunc, ConvertOther>(converter,
                                                         &getContext());
    populateCallOpTypeConversionPattern(patterns, converter);
    populateReturnOpTypeConversionPattern(patterns, converter);
    if (failed(applyPartialConversion(module, target, std::move(patterns))))
      return signalPassFailure();
  }

private:
  /// Refuses encoded types that have no packed form.
  static LogicalResult checkTypes(ModuleOp module);
};
} // namespace

LogicalResult MaterializeEncodings::checkTypes(ModuleOp module) {
  auto check = [](Operation *op, Type type) -> LogicalResult {
    EncodingAttr encoding = getEncoding(type);
    if (!encoding)
      return success();
    auto weight = cast<RankedTensorType>(type);
    if (failed(encoding.verifyEncoding(weight.getShape(),
                                       weight.getElementType(),
                                       [&] { return op->emitOpError(); })))
      return failure();
    if (failed(encoding.getDefaultStorage().verifyPackable(
            [&] { return op->emitOpError(); })))
      return failure();
    if (!weight.hasStaticShape())
      return op->emitOpError("has a weight of type ")
             << type << ", whose shape must be static to be packed";
    return success();
  };
  WalkResult result = module.walk([&](Operation *op) -> WalkResult {
    for (Type type : op->getResultTypes())
      if (failed(check(op, type)))
        return WalkResult::interrupt();
    if (auto function = dyn_cast<func::FuncOp>(op))
      for (TypeRange types : {TypeRange(function.getArgumentTypes()),
                              TypeRange(function.getResultTypes())})
        for (Type type : types)
          if (failed(check(op, type)))
            return WalkResult::interrupt();
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}
