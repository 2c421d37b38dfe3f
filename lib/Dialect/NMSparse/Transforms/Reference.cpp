//===- Reference.cpp - a module as a dense float64 computation ------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Results are checked against the same program without sparsity and without
// narrow types. It is made from the module as a person wrote it, by code that
// shares nothing with the compiler's own path.
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Dialect/NMSparse/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StructuredOpsUtils.h"
#include "mlir/IR/AttrTypeSubElements.h"
#include "nm_sparse/Dialect/NMSparse/IR/NMSparse.h"
#include "nm_sparse/Dialect/NMSparse/Utils/Contraction.h"
#include "nm_sparse/Dialect/NMSparse/Utils/Elements.h"
#include "nm_sparse/Dialect/NMSparse/Utils/Packing.h"

namespace mlir::nm_sparse {
#define GEN_PASS_DEF_NMSPARSETOREFERENCEPASS
#include "nm_sparse/Dialect/NMSparse/Transforms/Passes.h.inc"
} // namespace mlir::nm_sparse

using namespace mlir;
using namespace mlir::nm_sparse;

/// Refuses what has no meaning in f64 or must be lowered first.
static LogicalResult checkOps(ModuleOp module) {
  WalkResult result = module.walk([](Operation *op) -> WalkResult {
    if (isa<MatmulOp, UnpackOp>(op))
      return op->emitOpError("must be lowered by --convert-nm-sparse-to-linalg "
                             "before a reference is made");
    bool castsFloat =
        isa<arith::BitcastOp>(op) &&
        (isa<FloatType>(getElementTypeOrSelf(op->getOperand(0).getType())) ||
         isa<FloatType>(getElementTypeOrSelf(op->getResult(0).getType())));
    if (castsFloat)
      return op->emitOpError("looks at the bits of a float, which has no "
                             "counterpart in a float64 reference");
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

/// Drops the attributes that describe packed arguments and results.
static void dropPackedAttributes(func::FuncOp function) {
  auto id = StringAttr::get(function.getContext(),
                            NMSparseDialect::ComponentAttrHelper::getNameStr());
  for (unsigned i = 0; i < function.getNumArguments(); ++i)
    function.removeArgAttr(i, id);
  for (unsigned i = 0; i < function.getNumResults(); ++i)
    function.removeResultAttr(i, id);
}

/// Makes every float f64 and every weight dense, in types and constants.
static LogicalResult replaceTypes(ModuleOp module) {
  bool bad = false;
  auto refuse = [&](RankedTensorType type) {
    bad = true;
    module.emitError("has a tensor of type ")
        << type
        << ", whose encoding is not #nm_sparse.encoding; run "
           "--convert-sparse-tensor-to-nm-sparse first";
  };
  Type f64 = Float64Type::get(module.getContext());
  AttrTypeReplacer replacer;
  auto plain = [&](ShapedType type) -> ShapedType {
    Type element =
        isa<FloatType>(type.getElementType()) ? f64 : type.getElementType();
    auto ranked = dyn_cast<RankedTensorType>(type);
    if (!ranked)
      return type.clone(element);
    if (ranked.getEncoding() && !getEncoding(ranked))
      refuse(ranked);
    return RankedTensorType::get(ranked.getShape(), element);
  };
  replacer.addReplacement([f64](FloatType) -> Type { return f64; });
  replacer.addReplacement(
      [&](RankedTensorType type) -> std::optional<std::pair<Type, WalkResult>> {
        return std::make_pair(Type(plain(type)), WalkResult::skip());
      });
  replacer.addReplacement(
      [&](ElementsAttr data)
          -> std::optional<std::pair<Attribute, WalkResult>> {
        ShapedType type = data.getShapedType();
        ShapedType newType = plain(type);
        if (type == newType)
          return std::make_pair(Attribute(data), WalkResult::skip());
        Attribute converted;
        auto dense = dyn_cast<DenseElementsAttr>(data);
        if (!isa<FloatType>(type.getElementType()) && dense) {
          converted =
              DenseElementsAttr::getFromRawBuffer(newType, dense.getRawData());
        } else {
          FailureOr<DenseElementsAttr> result = convertToDouble(
              data, newType, [&] { return module.emitError(); });
          bad |= failed(result);
          converted = succeeded(result) ? Attribute(*result) : Attribute(data);
        }
        return std::make_pair(converted, WalkResult::skip());
      });
  replacer.addReplacement(
      [f64](
          FloatAttr value) -> std::optional<std::pair<Attribute, WalkResult>> {
        APFloat number = value.getValue();
        bool losesInfo;
        number.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven,
                       &losesInfo);
        return std::make_pair(Attribute(FloatAttr::get(f64, number)),
                              WalkResult::skip());
      });
  replacer.recursivelyReplaceElementsIn(module, /*replaceAttrs=*/true,
                                        /*replaceLocs=*/false,
                                        /*replaceTypes=*/true);
  return failure(bad);
}

/// Lets `op`, a prune or pack, work on `elementType` as it was written: its
/// operand and its float results are f64 by now.
static void keepElementType(IRRewriter &rewriter, Operation *op,
                            Type elementType) {
  Location loc = op->getLoc();
  rewriter.setInsertionPoint(op);
  Value weight = convertElements(rewriter, loc, op->getOperand(0), elementType);
  op->setOperand(0, weight);
  rewriter.setInsertionPointAfter(op);
  OpResult result = op->getResult(0);
  Type wide = getElementTypeOrSelf(result.getType());
  result.setType(cast<RankedTensorType>(result.getType()).clone(elementType));
  Value widened = convertElements(rewriter, loc, result, wide);
  if (widened != result)
    rewriter.replaceAllUsesExcept(result, widened, widened.getDefiningOp());
}

/// Computes an integer contraction in f64, which holds its sums exactly.
static void widenIntegers(IRRewriter &rewriter, linalg::LinalgOp op) {
  Location loc = op.getLoc();
  rewriter.setInsertionPoint(op);
  Type f64 = rewriter.getF64Type();
  SmallVector<Value> operands;
  for (Value operand : op->getOperands())
    operands.push_back(convertElements(rewriter, loc, operand, f64));
  auto product = linalg::GenericOp::create(
      rewriter, loc, operands[2].getType(), {operands[0], operands[1]},
      operands[2], op.getIndexingMapsArray(), op.getIteratorTypesArray(),
      [](OpBuilder &b, Location l, ValueRange args) {
        Value term = arith::MulFOp::create(b, l, args[0], args[1]);
        linalg::YieldOp::create(
            b, l, arith::AddFOp::create(b, l, args[2], term).getResult());
      });
  Type original = getElementTypeOrSelf(op->getResult(0).getType());
  rewriter.replaceOp(
      op, convertElements(rewriter, loc, product.getResult(0), original));
}

static bool isIntegerContraction(linalg::LinalgOp op) {
  std::string reason;
  return op.hasPureTensorSemantics() &&
         succeeded(matchContraction(op, reason)) &&
         llvm::all_of(op->getOperandTypes(), [](Type type) {
           Type element = getElementTypeOrSelf(type);
           return element.isSignlessInteger(8) || element.isSignlessInteger(32);
         });
}

/// Says which operand of a product is a pruned weight, which its type will not
/// say for long: dropped weights do not meet NaN and infinity in x.
static void markWeight(linalg::LinalgOp op) {
  for (OpOperand *operand : op.getDpsInputOperands())
    if (getEncoding(operand->get().getType()))
      op->setAttr(kPrunedOperand,
                  Builder(op.getContext())
                      .getI64IntegerAttr(operand->getOperandNumber()));
}

namespace {
struct ToReference
    : public nm_sparse::impl::NMSparseToReferencePassBase<ToReference> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (failed(checkOps(module)))
      return signalPassFailure();
    module.walk(dropPackedAttributes);
    SmallVector<std::pair<Operation *, Type>> bitOps;
    module.walk([&](Operation *op) {
      if (isa<PruneOp, PackOp>(op))
        bitOps.push_back({op, getElementTypeOrSelf(op->getOperand(0))});
      if (auto linalgOp = dyn_cast<linalg::LinalgOp>(op))
        markWeight(linalgOp);
    });
    if (failed(replaceTypes(module)))
      return signalPassFailure();

    IRRewriter rewriter(&getContext());
    SmallVector<linalg::LinalgOp> integers;
    module.walk([&](Operation *op) {
      // Between f64 and f64 these, and a cast that set an encoding, do nothing.
      if (isa<arith::ExtFOp, arith::TruncFOp>(op) ||
          (isa<tensor::CastOp>(op) &&
           op->getOperand(0).getType() == op->getResult(0).getType()))
        rewriter.replaceOp(op, op->getOperand(0));
      else if (auto linalgOp = dyn_cast<linalg::LinalgOp>(op);
               linalgOp && isIntegerContraction(linalgOp))
        integers.push_back(linalgOp);
    });
    for (auto [op, elementType] : bitOps)
      keepElementType(rewriter, op, elementType);
    for (linalg::LinalgOp op : integers)
      widenIntegers(rewriter, op);
  }
};
} // namespace
