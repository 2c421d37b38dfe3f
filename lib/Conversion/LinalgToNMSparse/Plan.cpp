//===- Plan.cpp - what the front door accepts -----------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Every refusal names the operation, the encoding and the reason.
//
//===----------------------------------------------------------------------===//

#include "Plan.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "nm_sparse/Dialect/NMSparse/Utils/Contraction.h"
#include "nm_sparse/Dialect/NMSparse/Utils/WeightView.h"

using namespace mlir;
using namespace mlir::nm_sparse;

static InFlightDiagnostic refuse(Operation *op, EncodingAttr encoding) {
  return op->emitOpError("takes a weight with encoding ")
         << encoding << ": not covered because ";
}

/// Checks the element types of x, weight and init against each other.
static LogicalResult checkElementTypes(const Plan &plan) {
  Type x = getElementTypeOrSelf(plan.getX()->get());
  Type weight = getElementTypeOrSelf(plan.weight);
  Type init = getElementTypeOrSelf(plan.getInit()->get());
  if (x != weight)
    return refuse(plan.op, plan.encoding)
           << "activations and weight must have one element type, got " << x
           << " and " << weight;
  bool legal = isa<FloatType>(x) ? init.isF32() || init == x
                                 : init.isSignlessInteger(32);
  if (!legal)
    return refuse(plan.op, plan.encoding)
           << "a product of " << x << " must be accumulated in "
           << (isa<FloatType>(x) ? "f32 or the same type" : "i32") << ", got "
           << init;
  return success();
}

/// Takes the loops of `contraction` for those of nm_sparse.matmul.
static LogicalResult assignLoops(Plan &plan, const Contraction &contraction) {
  Operation *op = plan.op;
  bool isRight = plan.number == 1;
  ArrayRef<unsigned> tokens = isRight ? contraction.left : contraction.right;
  ArrayRef<unsigned> outputs = isRight ? contraction.right : contraction.left;
  if (contraction.reduction.size() != 1)
    return refuse(op, plan.encoding)
           << "it sums over " << contraction.reduction.size()
           << " loops, supported is one";
  if (outputs.size() != 1)
    return refuse(op, plan.encoding) << "its weight has " << outputs.size()
                                     << " output dimensions, supported is one";
  if (contraction.batch.size() > 1)
    return refuse(op, plan.encoding)
           << "it has " << contraction.batch.size()
           << " batch loops, supported is at most one";
  plan.reduction = contraction.reduction[0];
  plan.outputs = outputs[0];
  if (!contraction.batch.empty())
    plan.batch = contraction.batch[0];

  // A second token loop is a batch that shares the weight.
  SmallVector<unsigned> sorted(tokens);
  AffineMap xMap = plan.op.getMatchingIndexingMap(plan.getX());
  llvm::sort(sorted, [&](unsigned a, unsigned b) {
    return *getLoopPosition(xMap, a) < *getLoopPosition(xMap, b);
  });
  if (sorted.size() == 2 && !plan.batch) {
    plan.batch = sorted[0];
    sorted.erase(sorted.begin());
  }
  if (sorted.size() > 1)
    return refuse(op, plan.encoding)
           << "it has " << tokens.size() << " token loops and "
           << contraction.batch.size()
           << " batch loops, supported are two in all; collapse them";
  if (!sorted.empty())
    plan.tokens = sorted[0];
  return success();
}

/// Checks that the weight's type fits what `plan.op` does with it.
static LogicalResult checkWeight(const Plan &plan) {
  Operation *op = plan.op;
  RankedTensorType type = plan.getWeightType();
  EncodingAttr encoding = plan.encoding;
  // Types that C++ code builds have not met the encoding's own check.
  if (failed(encoding.verifyEncoding(type.getShape(), type.getElementType(),
                                     [&] { return op->emitOpError(); })))
    return failure();
  if (failed(encoding.getDefaultStorage().verifyPackable(
          [&] { return op->emitOpError(); })))
    return failure();
  if (!type.hasStaticShape())
    return refuse(op, encoding) << "the weight has a dynamic shape, " << type
                                << "; the size of the packed form must be "
                                   "known";
  AffineMap map = plan.weightMap;
  int64_t contracted = *getLoopPosition(map, plan.reduction);
  if (contracted != encoding.getDim())
    return op->emitOpError("contracts dimension ")
           << contracted << " of its weight, but encoding " << encoding
           << " says dim = " << encoding.getDim()
           << "; the two must be the same";
  if (type.getRank() == 3 && getLoopPosition(map, *plan.batch) != 0)
    return refuse(op, encoding)
           << "the batch must be the weight's leading dimension, got "
           << AffineMapAttr::get(map);
  return success();
}

/// Checks that no loop is empty: tiles, and the model that chooses them, divide
/// by these sizes. A kernel may be launched for no tokens, so a dynamic number
/// of them may turn out to be 0.
static LogicalResult checkSizes(const Plan &plan) {
  const std::pair<const char *, std::optional<unsigned>> loops[] = {
      {"the contraction (K)", plan.reduction},
      {"outputs (N)", plan.outputs},
      {"the batch", plan.batch},
      {"tokens (M)", plan.tokens}};
  for (auto [name, loop] : loops)
    for (OpOperand &operand : plan.op->getOpOperands()) {
      if (!loop)
        continue;
      std::optional<int64_t> position =
          getLoopPosition(plan.op.getMatchingIndexingMap(&operand), *loop);
      auto type = cast<RankedTensorType>(operand.get().getType());
      if (position && type.getDimSize(*position) == 0)
        return refuse(plan.op, plan.encoding)
               << "the size of " << name << " is 0 in " << type
               << ", legal is at least 1"
               << (loop == plan.tokens ? ", or a dynamic size" : "");
    }
  return success();
}

bool nm_sparse::touchesWeight(linalg::LinalgOp op) {
  return llvm::any_of(op->getOperandTypes(), getEncoding) ||
         hasEncodedWeight(op);
}

/// Finds the weight of `plan.op`, which touches one.
static LogicalResult findWeightOf(Plan &plan) {
  linalg::LinalgOp op = plan.op;
  std::optional<WeightView> views[] = {findWeight(op->getOperand(0)),
                                       findWeight(op->getOperand(1))};
  EncodingAttr direct[] = {getEncoding(op->getOperand(0).getType()),
                           getEncoding(op->getOperand(1).getType())};
  // An operand whose own type has no encoding may also be read as it is.
  for (int i : {0, 1})
    if (direct[i] && !direct[1 - i])
      views[1 - i] = std::nullopt;
  plan.number = views[0] ? 0 : 1;
  const WeightView &view = *views[plan.number];
  plan.weight = view.weight;
  plan.encoding = getEncoding(view.weight.getType());
  plan.weightMap =
      view.map.compose(op.getMatchingIndexingMap(plan.getWeightOperand()));
  if (views[0] && views[1])
    return refuse(op, plan.encoding)
           << "both operands are encoded, the other one with "
           << getEncoding(views[1]->weight.getType())
           << "; one of them must be dense";
  return success();
}

/// An encoding that an operand of `op` has, in its type or where it comes from.
static EncodingAttr getAnyEncoding(linalg::LinalgOp op) {
  for (Type type : op->getOperandTypes())
    if (EncodingAttr encoding = getEncoding(type))
      return encoding;
  for (Value input : op.getDpsInputs())
    if (std::optional<WeightView> view = findWeight(input))
      return getEncoding(view->weight.getType());
  return {};
}

FailureOr<Plan> nm_sparse::makePlan(linalg::LinalgOp op, bool unpacks) {
  EncodingAttr first = getAnyEncoding(op);
  if (!op.hasPureTensorSemantics())
    return refuse(op, first) << "it mixes tensors and buffers", failure();
  std::string reason;
  if (failed(matchContraction(op, reason)))
    return refuse(op, first) << reason, failure();
  if (EncodingAttr encoding = getEncoding(op.getDpsInits()[0].getType()))
    return refuse(op, encoding) << "its result would be sparse", failure();
  Plan plan;
  plan.op = op;
  if (failed(findWeightOf(plan)))
    return failure();
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  maps[plan.number] = plan.weightMap;
  FailureOr<Contraction> contraction = matchContraction(op, maps, reason);
  if (failed(contraction))
    return refuse(op, plan.encoding) << reason, failure();
  if (failed(assignLoops(plan, *contraction)) || failed(checkWeight(plan)) ||
      failed(checkElementTypes(plan)) || failed(checkSizes(plan)))
    return failure();
  plan.hasKernel = !unpacks || !plan.encoding.hasInnerLevel();
  return plan;
}

/// A user of `value`, or of a rearrangement of it, that is no product in
/// `uses`.
static Operation *findOtherUser(Value value, const WeightUses &uses) {
  for (OpOperand &use : value.getUses()) {
    Operation *user = use.getOwner();
    if (uses.contains(&use))
      continue;
    if (!getRearrangement(user))
      return user;
    if (Operation *other = findOtherUser(user->getResult(0), uses))
      return other;
  }
  return nullptr;
}

LogicalResult nm_sparse::checkRearrangement(Operation *op,
                                            const WeightUses &uses) {
  Value input = op->getOperand(0), result = op->getResult(0);
  EncodingAttr encoding = getEncoding(input.getType());
  if (EncodingAttr own = getEncoding(result.getType())) {
    std::optional<WeightView> view = findWeight(result);
    if (view->weight == result)
      return refuse(op, encoding)
             << "its result has encoding " << own
             << ", which is not the pattern of the rearranged weight";
  }
  if (Operation *other = findOtherUser(result, uses))
    return refuse(op, encoding)
           << "its result is used by '" << other->getName()
           << "', and a rearranged weight may only be multiplied with";
  return success();
}

LogicalResult nm_sparse::checkOther(Operation *op) {
  // The weight of a convolution as a matrix.
  if (auto reshape = dyn_cast<tensor::CollapseShapeOp>(op);
      reshape && getEncoding(reshape.getSrcType()) &&
      flattenWeight(reshape.getSrcType()) == reshape.getType())
    return success();
  if (isa<func::FuncOp, func::ReturnOp, func::CallOp, tensor::CastOp,
          arith::ConstantOp>(op) ||
      isa<NMSparseDialect>(op->getDialect()))
    return success();
  // Where a rearranged weight is put.
  if (isa<tensor::EmptyOp>(op) && llvm::all_of(op->getUsers(), [](auto *user) {
        return getRearrangement(user).has_value() && !isa<linalg::FillOp>(user);
      }))
    return success();
  for (Type type : op->getOperandTypes())
    if (EncodingAttr encoding = getEncoding(type))
      return refuse(op, encoding)
             << "a weight may only be used by linalg contractions, nm_sparse "
                "operations, tensor.cast, func.call and func.return";
  for (Type type : op->getResultTypes())
    if (EncodingAttr encoding = getEncoding(type))
      return op->emitOpError("yields a weight with encoding ")
             << encoding << ": not covered because a weight may only come from "
             << "a function argument, arith.constant, an nm_sparse operation, "
                "tensor.cast or func.call";
  return success();
}
