//===- BuildProgram.cpp - a group of operations as a function -------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Copies the operations of a group into a function. Each result is written to
// an argument: a kernel then stores to the memory of the host compiler, and
// nothing is copied.
//
//===----------------------------------------------------------------------===//

#include "ProgramBuilder.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Transforms/RegionUtils.h"
#include "nm_sparse/Dialect/NMSparse/Utils/WeightView.h"

using namespace mlir;
using namespace mlir::nm_sparse;

//===----------------------------------------------------------------------===//
// Uses
//===----------------------------------------------------------------------===//

bool ProgramBuilder::isUsedOutside(Value value) const {
  return llvm::any_of(value.getUsers(), [&](Operation *user) {
    if (isMember(user))
      return false;
    bool isView = user->getNumResults() == 1 &&
                  getViewSource(user->getResult(0)) == value;
    return !isView || isUsedOutside(user->getResult(0));
  });
}

bool ProgramBuilder::isInitialSum(Value init) const {
  if (!isMember(init.getDefiningOp()) || !init.hasOneUse())
    return false;
  OpOperand &use = *init.use_begin();
  auto user = dyn_cast<linalg::LinalgOp>(use.getOwner());
  return isMember(user) && isEncodedProduct(user) && user.isDpsInit(&use);
}

//===----------------------------------------------------------------------===//
// Members
//===----------------------------------------------------------------------===//

Value ProgramBuilder::getDestination(Value value) const {
  if (Value output = outputs.lookup(value))
    return output;
  if (!isInitialSum(value))
    return {};
  return getDestination((*value.user_begin())->getResult(0));
}

Value ProgramBuilder::getOutput(linalg::LinalgOp op) {
  Value result = op->getResult(0);
  if (Value output = getDestination(result))
    return output;
  // An initial sum may be broadcast along tokens that only its product has.
  linalg::LinalgOp sized = op;
  while (isInitialSum(sized->getResult(0)))
    sized = cast<linalg::LinalgOp>(*sized->getResult(0).user_begin());
  auto type = cast<ShapedType>(result.getType());
  AffineMap map = sized.getIndexingMapMatchingResult(sized->getResult(0));
  return createEmpty(op.getLoc(), type, getSizes(sized, map, type));
}

Value ProgramBuilder::createFill(linalg::LinalgOp product, Value output,
                                 TypedAttr value) {
  Value scalar = arith::ConstantOp::create(builder, product.getLoc(), value);
  return linalg::FillOp::create(builder, product.getLoc(), scalar, output)
      .getResult(0);
}

Value ProgramBuilder::copy(linalg::LinalgOp op, Value init) {
  SmallVector<Value> operands;
  for (OpOperand *input : op.getDpsInputOperands())
    operands.push_back(getOperand(*input));
  operands.push_back(init);
  SetVector<Value> captured;
  getUsedValuesDefinedAbove(op->getRegions(), captured);
  for (Value constant : captured)
    get(constant);
  Operation *clone = builder.clone(*op, mapping);
  clone->setOperands(operands);
  return clone->getResult(0);
}

void ProgramBuilder::copyProduct(linalg::LinalgOp op) {
  Value init = op.getDpsInits()[0];
  if (TypedAttr value = getFillValue(init)) {
    copy(op, createFill(op, getOutput(op), value));
    return;
  }
  if (isInitialSum(init)) {
    copyMember(init.getDefiningOp<linalg::LinalgOp>());
    copy(op, mapping.lookup(init));
    return;
  }
  Value output = getDestination(op->getResult(0));
  if (!output) {
    copy(op, get(init));
    return;
  }
  // The sum is not written to where it starts: the kernel adds that at the end.
  auto type = cast<RankedTensorType>(init.getType());
  AffineMap map = op.getIndexingMapMatchingResult(op->getResult(0));
  Value empty = createEmpty(op.getLoc(), type, getSizes(op, map, type));
  TypedAttr zero = builder.getZeroAttr(type.getElementType());
  Value sum = copy(op, createFill(op, empty, zero));
  mapping.map(op->getResult(0),
              createSum(builder, op.getLoc(), sum, get(init), output));
}

void ProgramBuilder::copyMember(linalg::LinalgOp op) {
  if (isEncodedProduct(op))
    copyProduct(op);
  else
    copy(op, getOutput(op));
}

Program ProgramBuilder::build(StringRef name) {
  OpBuilder::InsertionGuard guard(builder);
  Location loc = group.front()->getLoc();
  auto function =
      func::FuncOp::create(builder, loc, name, builder.getFunctionType({}, {}));
  body = function.addEntryBlock();
  builder.setInsertionPointToStart(body);

  for (linalg::LinalgOp op : group)
    if (Value result = op->getResult(0); isUsedOutside(result))
      outputs.insert(
          {result, body->addArgument(result.getType(), result.getLoc())});
  for (linalg::LinalgOp op : group) {
    for (OpOperand *input : op.getDpsInputOperands()) {
      Value value = input->get();
      if (isFusedBroadcast(*input))
        value = getRearrangement(value.getDefiningOp())->weight;
      addInputs(value);
    }
    if (Value init = op.getDpsInits()[0];
        isEncodedProduct(op) && !getFillValue(init))
      addInputs(init);
  }
  for (linalg::LinalgOp op : group)
    if (!isInitialSum(op->getResult(0)))
      copyMember(op);

  Program program{function, llvm::to_vector(inputs), {}};
  SmallVector<Value> results;
  for (Value result : llvm::make_first_range(outputs)) {
    program.results.push_back(result);
    results.push_back(mapping.lookup(result));
  }
  func::ReturnOp::create(builder, loc, results);
  function.setType(builder.getFunctionType(body->getArgumentTypes(),
                                           ValueRange(results).getTypes()));
  return program;
}

Program nm_sparse::buildProgram(OpBuilder &builder, const Group &group,
                                StringRef name,
                                const Destinations &destinations) {
  return ProgramBuilder(builder, group, destinations).build(name);
}
