//===- NarrowActivations.cpp - x as it was before it was extended ---------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Importers extend the activations by an operation in front of a product whose
// sums are wider than its factors, and leave the weight as it is. An extension
// is exact, so it may as well be a part of the product, which extends both
// factors itself.
//
//===----------------------------------------------------------------------===//

#include "Plan.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/PatternMatch.h"
#include "nm_sparse/Dialect/NMSparse/Utils/WeightView.h"

using namespace mlir;
using namespace mlir::nm_sparse;

static bool isExtension(Operation *op) {
  return isa_and_nonnull<arith::ExtFOp, arith::ExtSIOp>(op);
}

/// Returns true if `op` extends the elements of its one input, in any order.
static bool isElementwiseExtension(linalg::GenericOp op) {
  if (!op.hasPureTensorSemantics() || op.getNumDpsInputs() != 1 ||
      op.getNumDpsInits() != 1 || op.getNumReductionLoops() != 0 ||
      !op.getIndexingMapsArray()[1].isIdentity())
    return false;
  Block *body = op.getBody();
  Operation *extension = body->getTerminator()->getOperand(0).getDefiningOp();
  return isExtension(extension) &&
         llvm::hasSingleElement(body->without_terminator()) &&
         extension->getOperand(0) == body->getArgument(0);
}

/// The operation before `value`, an extension or one that only moves elements,
/// and the operand that it extends or moves.
static Value getSource(Value value) {
  Operation *op = value.getDefiningOp();
  if (auto generic = dyn_cast_or_null<linalg::GenericOp>(op))
    return isElementwiseExtension(generic) ? op->getOperand(0) : Value();
  if (auto pad = dyn_cast_or_null<tensor::PadOp>(op)) {
    Value zero = pad.getConstantPaddingValue();
    bool isZero = zero && (matchPattern(zero, m_AnyZeroFloat()) ||
                           matchPattern(zero, m_Zero()));
    return isZero ? pad.getSource() : Value();
  }
  bool isKnown = isExtension(op) ||
                 isa_and_nonnull<tensor::CollapseShapeOp, tensor::ExpandShapeOp,
                                 tensor::CastOp>(op);
  return isKnown ? op->getOperand(0) : Value();
}

/// Returns true if `value` is made of elements of `type` by extensions and by
/// operations that only move elements.
static bool isExtended(Value value, Type type) {
  while (value && getElementTypeOrSelf(value.getType()) != type)
    value = getSource(value);
  return static_cast<bool>(value);
}

/// A zero of `type`.
static Value createZero(OpBuilder &b, Location loc, Type type) {
  return arith::ConstantOp::create(b, loc, b.getZeroAttr(type));
}

/// `value`, for which `isExtended` holds, before its extensions.
static Value narrow(RewriterBase &b, Value value, Type type) {
  auto wide = cast<RankedTensorType>(value.getType());
  if (wide.getElementType() == type)
    return value;
  Operation *op = value.getDefiningOp();
  Location loc = op->getLoc();
  Value source = narrow(b, getSource(value), type);
  RankedTensorType result = wide.clone(type);
  if (isExtension(op))
    return source;
  if (auto generic = dyn_cast<linalg::GenericOp>(op)) {
    if (generic.getIndexingMapsArray()[0].isIdentity())
      return source;
    Value empty = tensor::EmptyOp::create(
        b, loc, tensor::getMixedSizes(b, loc, generic.getDpsInits()[0]), type);
    return linalg::GenericOp::create(
               b, loc, result, source, empty, generic.getIndexingMapsArray(),
               generic.getIteratorTypesArray(),
               [](OpBuilder &inner, Location at, ValueRange args) {
                 linalg::YieldOp::create(inner, at, args.front());
               })
        .getResult(0);
  }
  if (auto pad = dyn_cast<tensor::PadOp>(op))
    return tensor::PadOp::create(b, loc, result, source, pad.getMixedLowPad(),
                                 pad.getMixedHighPad(),
                                 createZero(b, loc, type), pad.getNofold());
  Operation *moved = b.clone(*op);
  moved->setOperand(0, source);
  moved->getResult(0).setType(result);
  return moved->getResult(0);
}

/// The operand of a product that is extended although its weight is not.
static OpOperand *findExtended(linalg::LinalgOp op) {
  if (!op.hasPureTensorSemantics() || op.getNumDpsInputs() != 2 ||
      op.getNumDpsInits() != 1 || !hasEncodedWeight(op))
    return nullptr;
  OpOperand *x = op.getDpsInputOperand(0), *weight = op.getDpsInputOperand(1);
  if (findWeight(x->get()))
    std::swap(x, weight);
  Type type = getElementTypeOrSelf(weight->get().getType());
  bool isOther = getElementTypeOrSelf(x->get().getType()) != type;
  return isOther && !findWeight(x->get()) && isExtended(x->get(), type)
             ? x
             : nullptr;
}

/// The same product of what `operand` was before, which its body extends.
static void rewrite(IRRewriter &b, linalg::LinalgOp op, OpOperand *operand) {
  b.setInsertionPoint(op);
  OpOperand *weight = op.getDpsInputOperand(1 - operand->getOperandNumber());
  Type type = getElementTypeOrSelf(weight->get().getType());
  Type wide = getElementTypeOrSelf(operand->get().getType());
  SmallVector<Value> inputs = op.getDpsInputs();
  inputs[operand->getOperandNumber()] = narrow(b, operand->get(), type);
  auto product = linalg::GenericOp::create(
      b, op.getLoc(), op->getResultTypes(), inputs, op.getDpsInits(),
      op.getIndexingMapsArray(), op.getIteratorTypesArray(),
      [&](OpBuilder &inner, Location loc, ValueRange args) {
        SmallVector<Value> values(args);
        Value &x = values[operand->getOperandNumber()];
        x = isa<FloatType>(wide)
                ? Value(arith::ExtFOp::create(inner, loc, wide, x))
                : Value(arith::ExtSIOp::create(inner, loc, wide, x));
        IRMapping mapping;
        mapping.map(op.getBlock()->getArguments(), values);
        for (Operation &each : *op.getBlock())
          inner.clone(each, mapping);
      });
  product->setDiscardableAttrs(op->getDiscardableAttrDictionary());
  Value before = operand->get();
  b.replaceOp(op, product);
  // The extension may be for this product alone.
  while (Operation *dead = before.getDefiningOp()) {
    if (!isOpTriviallyDead(dead))
      break;
    before = dead->getOperand(0);
    b.eraseOp(dead);
  }
}

void nm_sparse::narrowActivations(Operation *root) {
  SmallVector<std::pair<linalg::LinalgOp, OpOperand *>> products;
  root->walk([&](linalg::LinalgOp op) {
    if (OpOperand *operand = findExtended(op))
      products.emplace_back(op, operand);
  });
  IRRewriter rewriter(root->getContext());
  for (auto [op, operand] : products)
    rewrite(rewriter, op, operand);
}
