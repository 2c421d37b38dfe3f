//===- TileSlices.cpp - what slices of all storages share
//------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The slice of x, and what is known of offsets and sizes of tiles.
//
//===----------------------------------------------------------------------===//

#include "NMSparseTiling.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "mlir/Interfaces/ValueBoundsOpInterface.h"

using namespace mlir;
using namespace mlir::nm_sparse;

tensor::ExtractSliceOp nm_sparse::slice(OpBuilder &b, Location loc,
                                        Value source,
                                        ArrayRef<OpFoldResult> offsets,
                                        ArrayRef<OpFoldResult> sizes) {
  SmallVector<OpFoldResult> strides(offsets.size(), b.getIndexAttr(1));
  return tensor::ExtractSliceOp::create(b, loc, source, offsets, sizes,
                                        strides);
}

/// The induction variable `value` as `lower + step * i` of a new symbol i, or
/// null where it is none, or its bounds are not constants.
static AffineExpr getInductionExpr(Value value, unsigned symbol) {
  auto iv = dyn_cast<BlockArgument>(value);
  auto loop = iv ? dyn_cast_if_present<LoopLikeOpInterface>(
                       iv.getOwner()->getParentOp())
                 : LoopLikeOpInterface();
  if (!loop)
    return {};
  auto ivs = loop.getLoopInductionVars();
  auto lowers = loop.getLoopLowerBounds(), steps = loop.getLoopSteps();
  if (!ivs || !lowers || !steps)
    return {};
  for (auto [arg, lower, step] : llvm::zip(*ivs, *lowers, *steps)) {
    std::optional<int64_t> first = getConstantIntValue(lower);
    std::optional<int64_t> stride = getConstantIntValue(step);
    if (arg == iv && first && stride)
      return getAffineSymbolExpr(symbol, value.getContext()) * *stride + *first;
  }
  return {};
}

/// Upstream knows divisors of affine expressions, and bounds of values, but not
/// that an induction variable counts in steps: that is put into the expression
/// here.
int64_t nm_sparse::getKnownDivisor(OpFoldResult value) {
  MLIRContext *context = value.getContext();
  if (std::optional<int64_t> constant = getConstantIntValue(value))
    return getAffineConstantExpr(*constant, context).getLargestKnownDivisor();
  AffineMap map = AffineMap::get(0, 1, getAffineSymbolExpr(0, context));
  SmallVector<Value> operands{cast<Value>(value)};
  affine::fullyComposeAffineMapAndOperands(&map, &operands,
                                           /*composeAffineMin=*/false);
  SmallVector<AffineExpr> dims, symbols;
  for (auto [position, operand] : llvm::enumerate(operands)) {
    AffineExpr counted = getInductionExpr(operand, position);
    bool isDim = position < map.getNumDims();
    (isDim ? dims : symbols)
        .push_back(counted ? counted : getAffineSymbolExpr(position, context));
  }
  AffineExpr expr = map.getResult(0).replaceDimsAndSymbols(dims, symbols);
  return simplifyAffineExpr(expr, 0, operands.size()).getLargestKnownDivisor();
}

/// The operations that `value` is computed with say so, by models that a host
/// registers (see InitAll.cpp).
FailureOr<int64_t> nm_sparse::getKnownUpperBound(OpFoldResult value) {
  return ValueBoundsConstraintSet::computeConstantBound(
      presburger::BoundType::UB, value, /*stopCondition=*/nullptr,
      /*closedUB=*/true);
}

PanelRange nm_sparse::getPanels(OpBuilder &b, Location loc, int64_t bn,
                                Value base, OpFoldResult offset,
                                OpFoldResult size) {
  AffineExpr s0, s1;
  bindSymbols(b.getContext(), s0, s1);
  auto apply = [&](AffineExpr expr, ArrayRef<OpFoldResult> operands) {
    return affine::makeComposedFoldedAffineApply(b, loc, expr, operands);
  };
  int64_t divisor = base ? 1 : getKnownDivisor(offset);
  FailureOr<int64_t> bound = getKnownUpperBound(size);
  OpFoldResult start = base ? apply(s0 + s1, {base, offset}) : offset;
  PanelRange panels{apply(s0.floorDiv(bn), {start}), b.getIndexAttr(1), {}};
  bool startsPanel = divisor % bn == 0;
  bool insidePanel =
      succeeded(bound) &&
      (startsPanel ? *bound <= bn : bn % divisor == 0 && *bound <= divisor);
  if (insidePanel)
    return panels;
  if (startsPanel) {
    panels.count = apply(s0.ceilDiv(bn), {size});
    return panels;
  }
  panels.count =
      apply((s0 + s1 - 1).floorDiv(bn) - s0.floorDiv(bn) + 1, {start, size});
  panels.offset =
      getValueOrCreateConstantIndexOp(b, loc, apply(s0 % bn, {start}));
  return panels;
}

tensor::ExtractSliceOp nm_sparse::sliceX(OpBuilder &b, MatmulOp op,
                                         ArrayRef<OpFoldResult> offsets,
                                         ArrayRef<OpFoldResult> sizes) {
  Location loc = op.getLoc();
  int64_t windowRows = op.getEncoding().getWindowRows();
  AffineExpr s0, s1, s2;
  bindSymbols(b.getContext(), s0, s1, s2);
  auto multiply = [&](OpFoldResult windows) {
    return affine::makeComposedFoldedAffineApply(b, loc, s0 * windowRows,
                                                 {windows});
  };
  unsigned w = op.getReductionLoop();
  OpFoldResult kOffset = multiply(offsets[w]);
  OpFoldResult kTotal =
      tensor::getMixedSize(b, loc, op.getX(), op.getXReductionDim());
  OpFoldResult kSize = multiply(sizes[w]);
  int64_t k = op.getContractionSize();
  // A row of the component that counts windows has so many rows of x.
  std::optional<WindowCount> count =
      op.getForm().getWindowCount(getElementTypeOrSelf(op.getX()));
  int64_t unit = windowRows * (count ? count->factor : 1);
  if (ShapedType::isDynamic(k) || k % unit != 0)
    kSize = affine::makeComposedFoldedAffineMin(
        b, loc, AffineMap::get(0, 3, {s0, s1 - s2}, b.getContext()),
        {kSize, kTotal, kOffset});
  SmallVector<OpFoldResult> xOffsets, xSizes;
  for (AffineExpr expr : op.getXMap().getResults()) {
    unsigned loop = cast<AffineDimExpr>(expr).getPosition();
    xOffsets.push_back(loop == w ? kOffset : offsets[loop]);
    xSizes.push_back(loop == w ? kSize : sizes[loop]);
  }
  return slice(b, loc, op.getX(), xOffsets, xSizes);
}

bool nm_sparse::hasAllOutputs(MatmulOp op, ArrayRef<OpFoldResult> offsets,
                              ArrayRef<OpFoldResult> sizes) {
  unsigned n = op.getOutputLoop();
  auto dim =
      op.getResultMap().getResultPosition(getAffineDimExpr(n, op.getContext()));
  auto init = cast<ShapedType>(op.getInit().getType());
  return isConstantIntValue(offsets[n], 0) &&
         isConstantIntValue(sizes[n], init.getDimSize(*dim));
}

OpFoldResult nm_sparse::getStoredCount(OpBuilder &b, int64_t columns,
                                       OpFoldResult offset, OpFoldResult size) {
  FailureOr<int64_t> bound = getKnownUpperBound(size);
  if (succeeded(bound) && *bound > 0 && !ShapedType::isDynamic(columns) &&
      columns % *bound == 0 && getKnownDivisor(offset) % *bound == 0)
    return b.getIndexAttr(*bound);
  return size;
}

tensor::ExtractSliceOp
nm_sparse::sliceWindows(OpBuilder &b, MatmulOp op, Value component,
                        int64_t rows, OpFoldResult column, OpFoldResult columns,
                        ArrayRef<OpFoldResult> offsets,
                        ArrayRef<OpFoldResult> sizes, bool rowsLast) {
  unsigned w = op.getReductionLoop();
  auto multiply = [&](OpFoldResult windows) {
    return affine::makeComposedFoldedAffineApply(
        b, op.getLoc(), b.getAffineSymbolExpr(0) * rows, {windows});
  };
  SmallVector<OpFoldResult> partOffsets = {multiply(offsets[w]), column};
  SmallVector<OpFoldResult> partSizes = {multiply(sizes[w]), columns};
  if (rowsLast) {
    std::swap(partOffsets[0], partOffsets[1]);
    std::swap(partSizes[0], partSizes[1]);
  }
  if (op.hasBatchedWeight()) {
    partOffsets.insert(partOffsets.begin(), offsets[0]);
    partSizes.insert(partSizes.begin(), sizes[0]);
  }
  return slice(b, op.getLoc(), component, partOffsets, partSizes);
}

InputSlices nm_sparse::sliceInputs(OpBuilder &b, MatmulOp op,
                                   ArrayRef<OpFoldResult> offsets,
                                   ArrayRef<OpFoldResult> sizes) {
  InputSlices inputs;
  inputs.x = sliceX(b, op, offsets, sizes);
  inputs.weight = op.getForm().slice(b, op, offsets, sizes);
  return inputs;
}

SmallVector<Operation *>
InputSlices::getOperations(tensor::ExtractSliceOp last) const {
  SmallVector<Operation *> operations = {x};
  for (Value component : weight.components)
    operations.push_back(component.getDefiningOp());
  operations.push_back(last);
  return operations;
}

LogicalResult nm_sparse::verifyWholeContraction(MatmulOp op,
                                                ArrayRef<OpFoldResult> offsets,
                                                ArrayRef<OpFoldResult> sizes) {
  unsigned w = op.getReductionLoop();
  if (isConstantIntValue(offsets[w], 0) &&
      isConstantIntValue(sizes[w], op.getNumWindows()))
    return success();
  return op.emitOpError(
      "has a free weight, and only all of it says where what belongs to a row "
      "is: legal is to tile its results");
}
