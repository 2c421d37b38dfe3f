//===- ProgramInputs.cpp - what programs take, and what they compute ------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A program repeats what costs nothing: views of tensors, zeros, sizes. The
// compiler wants to see these, and the model need not keep them for it.
//
//===----------------------------------------------------------------------===//

#include "Programs.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/Matchers.h"
#include "nm_sparse/Dialect/NMSparse/Utils/WeightView.h"

using namespace mlir;
using namespace mlir::nm_sparse;

//===----------------------------------------------------------------------===//
// Sizes
//===----------------------------------------------------------------------===//

Size nm_sparse::findSize(Value tensor, int64_t dim,
                         const Destinations &destinations) {
  while (true) {
    Operation *op = tensor.getDefiningOp();
    OpFoldResult size;
    if (Value destination = destinations.lookup(tensor)) {
      tensor = destination;
      continue;
    }
    if (auto dps = dyn_cast_or_null<DestinationStyleOpInterface>(op)) {
      tensor = dps.getTiedOpOperand(cast<OpResult>(tensor))->get();
      continue;
    }
    if (auto empty = dyn_cast_or_null<tensor::EmptyOp>(op))
      size = empty.getMixedSizes()[dim];
    else if (auto expand = dyn_cast_or_null<tensor::ExpandShapeOp>(op))
      size = expand.getMixedOutputShape()[dim];
    auto value = dyn_cast_if_present<Value>(size);
    return value ? findSize(value, destinations) : Size{tensor, dim};
  }
}

Size nm_sparse::findSize(Value size, const Destinations &destinations) {
  auto source = size.getDefiningOp<tensor::DimOp>();
  std::optional<int64_t> dim =
      source ? source.getConstantIndex() : std::nullopt;
  return dim ? findSize(source.getSource(), *dim, destinations)
             : Size{size, std::nullopt};
}

//===----------------------------------------------------------------------===//
// Views
//===----------------------------------------------------------------------===//

/// Returns true if a program can compute the sizes that `op` makes of one: each
/// must follow from the others, or be a size of a tensor that the program can
/// take for it.
static bool hasKnownSizes(tensor::ExpandShapeOp op) {
  SmallVector<OpFoldResult> sizes = op.getMixedOutputShape();
  return llvm::all_of(op.getReassociationIndices(), [&](auto &group) {
    SmallVector<Value> dynamic;
    for (int64_t dim : group)
      if (op.getResultType().isDynamicDim(dim))
        dynamic.push_back(dyn_cast<Value>(sizes[dim]));
    return dynamic.size() < 2 ||
           llvm::all_of(
               dynamic,
               [](Value size) {
                 auto dim = size ? size.getDefiningOp<tensor::DimOp>()
                                 : tensor::DimOp();
                 return dim && dim.getConstantIndex();
               });
  });
}

/// Returns true if the front door makes the zeros of `pad` those of each
/// convolution that reads it: there are some in dimensions alone in which a
/// window moves.
static bool isPartOfConvolutions(tensor::PadOp pad) {
  Value padding = pad.getConstantPaddingValue();
  if (!padding || !(matchPattern(padding, m_AnyZeroFloat()) ||
                    matchPattern(padding, m_Zero())))
    return false;
  return llvm::all_of(pad->getUses(), [&](OpOperand &use) {
    auto op = dyn_cast<linalg::LinalgOp>(use.getOwner());
    if (!op || !isEncodedProduct(op) || op.isDpsInit(&use))
      return false;
    AffineMap map = op.getMatchingIndexingMap(&use);
    return llvm::all_of(
        llvm::zip_equal(pad.getMixedLowPad(), pad.getMixedHighPad(),
                        map.getResults()),
        [](auto sizes) {
          auto [before, after, expr] = sizes;
          std::optional<int64_t> low = getConstantIntValue(before);
          std::optional<int64_t> high = getConstantIntValue(after);
          if (!low || !high)
            return false;
          bool isWindow = !isa<AffineDimExpr>(expr);
          return isWindow ? *low >= 0 && *high >= 0 : *low == 0 && *high == 0;
        });
  });
}

Value nm_sparse::getViewSource(Value value) {
  if (findWeight(value))
    return {};
  Operation *op = value.getDefiningOp();
  if (auto expand = dyn_cast_or_null<tensor::ExpandShapeOp>(op))
    return hasKnownSizes(expand) ? expand.getSrc() : Value();
  if (auto collapse = dyn_cast_or_null<tensor::CollapseShapeOp>(op))
    return collapse.getSrc();
  if (auto cast = dyn_cast_or_null<tensor::CastOp>(op))
    return isa<RankedTensorType>(cast.getSource().getType()) &&
                   isa<RankedTensorType>(cast.getType())
               ? cast.getSource()
               : Value();
  if (auto pad = dyn_cast_or_null<tensor::PadOp>(op))
    return isPartOfConvolutions(pad) ? pad.getSource() : Value();
  return {};
}

Value nm_sparse::skipViews(Value value) {
  while (Value source = getViewSource(value))
    value = source;
  return value;
}

Value nm_sparse::getPulledSource(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op)
    return {};
  if (findWeight(value)) {
    std::optional<WeightView> step = getRearrangement(op);
    return step ? step->weight : Value();
  }
  if (isa<tensor::PadOp>(op))
    return getViewSource(value);
  // Features stay as they are.
  auto collapse = dyn_cast<tensor::CollapseShapeOp>(op);
  if (collapse && collapse.getReassociationIndices().back().size() == 1)
    return collapse.getSrc();
  return {};
}

bool nm_sparse::isFusedBroadcast(OpOperand &operand) {
  auto producer = operand.get().getDefiningOp<linalg::LinalgOp>();
  if (!producer || findWeight(operand.get()))
    return false;
  std::optional<WeightView> view = getRearrangement(producer);
  if (!view || view->map.getNumResults() == view->map.getNumDims())
    return false;
  auto op = cast<linalg::LinalgOp>(operand.getOwner());
  return op.getNumLoops() == op.getNumParallelLoops() &&
         op.getMatchingIndexingMap(&operand).isProjectedPermutation();
}

TypedAttr nm_sparse::getFillValue(Value init) {
  TypedAttr value;
  if (auto fill = init.getDefiningOp<linalg::FillOp>()) {
    matchPattern(fill.getInputs()[0], m_Constant(&value));
    return value;
  }
  SplatElementsAttr splat;
  if (matchPattern(init, m_Constant(&splat)))
    return dyn_cast<TypedAttr>(splat.getSplatValue<Attribute>());
  return {};
}

Value nm_sparse::createSum(OpBuilder &builder, Location loc, Value a, Value b,
                           Value output) {
  auto type = cast<RankedTensorType>(output.getType());
  AffineMap identity = builder.getMultiDimIdentityMap(type.getRank());
  SmallVector<utils::IteratorType> iterators(type.getRank(),
                                             utils::IteratorType::parallel);
  auto build = [](OpBuilder &nested, Location loc, ValueRange args) {
    Operation *sum;
    if (isa<FloatType>(args[0].getType()))
      sum = arith::AddFOp::create(nested, loc, args[0], args[1]);
    else
      sum = arith::AddIOp::create(nested, loc, args[0], args[1]);
    linalg::YieldOp::create(nested, loc, sum->getResults());
  };
  return linalg::GenericOp::create(builder, loc, TypeRange(type),
                                   ValueRange({a, b}), ValueRange(output),
                                   {identity, identity, identity}, iterators,
                                   build)
      .getResult(0);
}
