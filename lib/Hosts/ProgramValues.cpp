//===- ProgramValues.cpp - what the operations of a program read ----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A value of the model is an argument of the program, a copy of what a member
// computes, or a copy of the views and broadcasts between one of these and the
// operation that reads it.
//
//===----------------------------------------------------------------------===//

#include "ProgramBuilder.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Transforms/RegionUtils.h"
#include "nm_sparse/Dialect/NMSparse/Utils/WeightView.h"

using namespace mlir;
using namespace mlir::nm_sparse;

//===----------------------------------------------------------------------===//
// Arguments
//===----------------------------------------------------------------------===//

Value ProgramBuilder::getSource(Value value) const {
  if (isMember(value.getDefiningOp()))
    return {};
  if (Value source = getPulledSource(value))
    return source;
  Value source = getViewSource(value);
  return source && isMember(skipViews(value).getDefiningOp()) ? source
                                                              : Value();
}

void ProgramBuilder::addInputs(Value value) {
  if (!isa<ShapedType>(value.getType()) || isMember(value.getDefiningOp()))
    return;
  if (Value source = getSource(value))
    addInputs(source);
  else
    getArgument(value);
}

Value ProgramBuilder::getArgument(Value value) {
  if (inputs.insert(value))
    mapping.map(value, body->insertArgument(inputs.size() - 1, value.getType(),
                                            value.getLoc()));
  return mapping.lookup(value);
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

Value ProgramBuilder::get(Value value) {
  if (Value known = mapping.lookupOrNull(value))
    return known;
  Operation *op = value.getDefiningOp();
  assert(!isMember(op) && "members are copied in order");
  if (!isa<ShapedType>(value.getType()))
    return builder.clone(*op, mapping)->getResult(0);
  Value source = getSource(value);
  if (!source)
    return getArgument(value);
  if (auto expand = dyn_cast<tensor::ExpandShapeOp>(op))
    return getExpanded(expand);
  get(source);
  SetVector<Value> captured;
  getUsedValuesDefinedAbove(op->getRegions(), captured);
  for (Value constant : captured)
    get(constant);
  return builder.clone(*op, mapping)->getResult(0);
}

/// The product of the sizes of `group` that `type` knows.
static int64_t getKnownProduct(ShapedType type, ArrayRef<int64_t> group) {
  int64_t product = 1;
  for (int64_t dim : group)
    if (!type.isDynamicDim(dim))
      product *= type.getDimSize(dim);
  return product;
}

Value ProgramBuilder::getExpanded(tensor::ExpandShapeOp op) {
  Value source = get(op.getSrc());
  RankedTensorType type = op.getResultType();
  SmallVector<OpFoldResult> sizes = op.getMixedOutputShape();
  for (auto [number, dims] : llvm::enumerate(op.getReassociationIndices())) {
    auto isDynamic = [&](int64_t dim) { return type.isDynamicDim(dim); };
    bool isOnly = llvm::count_if(dims, isDynamic) == 1;
    for (int64_t dim : llvm::make_filter_range(dims, isDynamic)) {
      if (isOnly) {
        Value whole =
            builder.createOrFold<tensor::DimOp>(op.getLoc(), source, number);
        int64_t known = getKnownProduct(type, dims);
        if (known != 1) {
          Value divisor =
              arith::ConstantIndexOp::create(builder, op.getLoc(), known);
          whole = arith::DivUIOp::create(builder, op.getLoc(), whole, divisor);
        }
        sizes[dim] = whole;
        continue;
      }
      Size size = findSize(cast<Value>(sizes[dim]), destinations);
      auto findIn = [&](Value tensor, Value here) -> OpFoldResult {
        auto type = cast<ShapedType>(tensor.getType());
        for (int64_t i = 0; i < type.getRank(); ++i)
          if (type.isDynamicDim(i) && findSize(tensor, i, destinations) == size)
            return getDim(here, i);
        return {};
      };
      OpFoldResult found;
      for (Value input : inputs)
        if (!found)
          found = findIn(input, mapping.lookup(input));
      for (auto [output, argument] : outputs)
        if (!found)
          found = findIn(output, argument);
      sizes[dim] = found ? found : getDim(getArgument(size.base), *size.dim);
    }
  }
  Value result = tensor::ExpandShapeOp::create(
      builder, op.getLoc(), type, source, op.getReassociationIndices(), sizes);
  mapping.map(op.getResult(), result);
  return result;
}

Value ProgramBuilder::getRearranged(Value value, ArrayRef<OpFoldResult> sizes) {
  if (Value known = mapping.lookupOrNull(value))
    return known;
  Operation *op = value.getDefiningOp();
  std::optional<WeightView> step =
      op ? getRearrangement(op) : std::optional<WeightView>();
  if (!step)
    return getArgument(value);
  SmallVector<OpFoldResult> sourceSizes;
  for (unsigned i = 0; i < step->map.getNumResults(); ++i)
    sourceSizes.push_back(sizes[step->map.getDimPosition(i)]);
  Value source = findWeight(value) ? getRearranged(step->weight, sourceSizes)
                                   : get(step->weight);
  auto type = cast<RankedTensorType>(value.getType());
  if (auto expand = dyn_cast<tensor::ExpandShapeOp>(op)) {
    Value result =
        tensor::ExpandShapeOp::create(builder, op->getLoc(), type, source,
                                      expand.getReassociationIndices(), sizes);
    mapping.map(value, result);
    return result;
  }
  auto linalgOp = dyn_cast<linalg::LinalgOp>(op);
  Value init = linalgOp ? createEmpty(op->getLoc(), type, sizes) : Value();
  Operation *clone = builder.clone(*op, mapping);
  if (linalgOp)
    cast<linalg::LinalgOp>(clone).getDpsInitsMutable()[0].set(init);
  return clone->getResult(0);
}

Value ProgramBuilder::getOperand(OpOperand &operand) {
  Value value = operand.get();
  if (!findWeight(value) && !isFusedBroadcast(operand))
    return get(value);
  auto op = cast<linalg::LinalgOp>(operand.getOwner());
  return getRearranged(value, getSizes(op, op.getMatchingIndexingMap(&operand),
                                       cast<ShapedType>(value.getType())));
}

//===----------------------------------------------------------------------===//
// Sizes
//===----------------------------------------------------------------------===//

OpFoldResult ProgramBuilder::getDim(Value tensor, int64_t dim) {
  auto type = cast<ShapedType>(tensor.getType());
  if (!type.isDynamicDim(dim))
    return builder.getIndexAttr(type.getDimSize(dim));
  return builder.createOrFold<tensor::DimOp>(tensor.getLoc(), tensor, dim);
}

OpFoldResult ProgramBuilder::getLoopSize(linalg::LinalgOp op, unsigned loop) {
  AffineExpr expr = builder.getAffineDimExpr(loop);
  for (OpOperand *input : op.getDpsInputOperands()) {
    if (findWeight(input->get()) || isFusedBroadcast(*input))
      continue;
    AffineMap map = op.getMatchingIndexingMap(input);
    if (std::optional<unsigned> dim = map.getResultPosition(expr))
      return getDim(get(input->get()), *dim);
  }
  llvm_unreachable("a loop that is in the result is in an activation");
}

SmallVector<OpFoldResult>
ProgramBuilder::getSizes(linalg::LinalgOp op, AffineMap map, ShapedType type) {
  SmallVector<OpFoldResult> sizes;
  for (auto [dim, expr] : llvm::enumerate(map.getResults()))
    sizes.push_back(
        type.isDynamicDim(dim)
            ? getLoopSize(op, cast<AffineDimExpr>(expr).getPosition())
            : OpFoldResult(builder.getIndexAttr(type.getDimSize(dim))));
  return sizes;
}

Value ProgramBuilder::createEmpty(Location loc, ShapedType type,
                                  ArrayRef<OpFoldResult> sizes) {
  SmallVector<Value> dynamic;
  for (auto [dim, size] : llvm::enumerate(sizes))
    if (type.isDynamicDim(dim))
      dynamic.push_back(getValueOrCreateConstantIndexOp(builder, loc, size));
  return tensor::EmptyOp::create(
      builder, loc,
      RankedTensorType::get(type.getShape(), type.getElementType()), dynamic);
}
