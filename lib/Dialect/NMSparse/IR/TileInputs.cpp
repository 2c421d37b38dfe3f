//===- TileInputs.cpp - what a tile of nm_sparse.matmul reads -------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Slices of x and of the components of the weight, for each form in which it is
// stored, and which tiles there are.
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

/// Largest constant that `value` is known not to exceed. The operations that it
/// is computed with say so, by models that a host registers (see InitAll.cpp).
static FailureOr<int64_t> getKnownUpperBound(OpFoldResult value) {
  return ValueBoundsConstraintSet::computeConstantBound(
      presburger::BoundType::UB, value, /*stopCondition=*/nullptr,
      /*closedUB=*/true);
}

namespace {
/// The panels that a tile's outputs lie in.
struct PanelRange {
  OpFoldResult first, count;
  /// Position of the tile's first output in its panel; null when the tile
  /// starts with a panel or lies inside one.
  Value offset;
};
} // namespace

/// Panels of the outputs in [offset, offset + size), where output 0 is at
/// `base` in its panel. The count is a constant wherever tiles and panels are
/// aligned.
static PanelRange getPanels(OpBuilder &b, Location loc, int64_t bn, Value base,
                            OpFoldResult offset, OpFoldResult size) {
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

/// Number of columns that a tile of `values` takes: those of its outputs, or,
/// at the ragged edge, of a whole tile when the padding of `columns` holds one.
static OpFoldResult getColumnCount(OpBuilder &b, int64_t columns,
                                   OpFoldResult offset, OpFoldResult size) {
  FailureOr<int64_t> bound = getKnownUpperBound(size);
  if (succeeded(bound) && *bound > 0 && !ShapedType::isDynamic(columns) &&
      columns % *bound == 0 && getKnownDivisor(offset) % *bound == 0)
    return b.getIndexAttr(*bound);
  return size;
}

/// The tile of x: whole windows of k, except where the contraction dimension
/// ends inside the last one.
static tensor::ExtractSliceOp sliceX(OpBuilder &b, MatmulOp op,
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
  std::optional<BitmapTile> tile = op.getStoredTile();
  int64_t unit = tile && !op.getInnerIndex() ? tile->rows : windowRows;
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

/// Components of a weight that is stored as bitmaps: whole tiles of it.
static void sliceBitmaps(OpBuilder &b, MatmulOp op, BitmapTile tile,
                         ArrayRef<OpFoldResult> offsets,
                         ArrayRef<OpFoldResult> sizes, InputSlices &inputs) {
  Location loc = op.getLoc();
  int64_t windows = tile.rows / op.getEncoding().getInnermost().getWindowRows();
  AffineExpr s0 = b.getAffineSymbolExpr(0);
  auto apply = [&](AffineExpr expr, OpFoldResult value) {
    return affine::makeComposedFoldedAffineApply(b, loc, expr, {value});
  };
  unsigned n = op.getOutputLoop(), w = op.getReductionLoop();
  SmallVector<OpFoldResult> partOffsets, partSizes;
  if (op.hasBatchedWeight()) {
    partOffsets.push_back(offsets[0]);
    partSizes.push_back(sizes[0]);
  }
  partOffsets.append({apply(s0.floorDiv(BitmapTile::kOutputs), offsets[n]),
                      apply(s0.floorDiv(windows), offsets[w]),
                      b.getIndexAttr(0)});
  partSizes.append({apply(s0.ceilDiv(BitmapTile::kOutputs), sizes[n]),
                    apply(s0.ceilDiv(windows), sizes[w]), OpFoldResult()});
  auto slicePart = [&](Value component) {
    auto type = cast<RankedTensorType>(component.getType());
    partSizes.back() = b.getIndexAttr(type.getShape().back());
    return slice(b, loc, component, partOffsets, partSizes);
  };
  // Where in all of them the values of a free tile are, its bits say.
  inputs.values = tile.isFree
                      ? slice(b, loc, op.getValues(), {b.getIndexAttr(0)},
                              {tensor::getMixedSize(b, loc, op.getValues(), 0)})
                      : slicePart(op.getValues());
  (op.getInnerIndex() ? inputs.innerIndex : inputs.index) =
      slicePart(op.getInnermostIndex());
}

/// Returns true if a tile has all outputs of `op`.
static bool hasAllOutputs(MatmulOp op, ArrayRef<OpFoldResult> offsets,
                          ArrayRef<OpFoldResult> sizes) {
  unsigned n = op.getOutputLoop();
  auto dim =
      op.getResultMap().getResultPosition(getAffineDimExpr(n, op.getContext()));
  auto init = cast<ShapedType>(op.getInit().getType());
  return isConstantIntValue(offsets[n], 0) &&
         isConstantIntValue(sizes[n], init.getDimSize(*dim));
}

/// As which number `panel`, of the batch entry at `offsets`, is multiplied.
static OpFoldResult findPlace(OpBuilder &b, MatmulOp op, OpFoldResult panel,
                              ArrayRef<OpFoldResult> offsets) {
  Location loc = op.getLoc();
  SmallVector<OpFoldResult> at = {panel, b.getIndexAttr(kPanelPlace)};
  if (op.hasBatchedWeight())
    at.insert(at.begin(), offsets[0]);
  Value place = tensor::ExtractOp::create(
      b, loc, op.getPanels(), getValueOrCreateConstantIndexOp(b, loc, at));
  return arith::IndexCastUIOp::create(b, loc, b.getIndexType(), place)
      .getResult();
}

/// Components of a weight that is stored as ragged panels: all of its rows, of
/// the outputs of a tile in its panel, and where those of the panel are.
static void sliceRagged(OpBuilder &b, MatmulOp op,
                        ArrayRef<OpFoldResult> offsets,
                        ArrayRef<OpFoldResult> sizes, InputSlices &inputs) {
  Location loc = op.getLoc();
  int64_t bn = op.getEncoding().getBlockN();
  unsigned n = op.getOutputLoop();
  OpFoldResult zero = b.getIndexAttr(0), one = b.getIndexAttr(1);
  AffineExpr s0 = b.getAffineSymbolExpr(0);
  auto apply = [&](AffineExpr expr, OpFoldResult value) {
    return affine::makeComposedFoldedAffineApply(b, loc, expr, {value});
  };
  // Panels are stored whole.
  FailureOr<int64_t> bound = getKnownUpperBound(sizes[n]);
  OpFoldResult columns =
      succeeded(bound) ? b.getIndexAttr(std::min(*bound, bn)) : sizes[n];
  inputs.values =
      slice(b, loc, op.getValues(), {zero, apply(s0 % bn, offsets[n])},
            {tensor::getMixedSize(b, loc, op.getValues(), 0), columns});
  inputs.index = slice(b, loc, op.getIndex(), {zero, zero},
                       {tensor::getMixedSize(b, loc, op.getIndex(), 0), one});
  SmallVector<OpFoldResult> panelOffsets = {zero, zero};
  SmallVector<OpFoldResult> panelSizes = {one, b.getIndexAttr(kPanelWords)};
  if (hasAllOutputs(op, offsets, sizes))
    panelSizes.front() = tensor::getMixedSize(
        b, loc, op.getPanels(), op.getWeightMap().getNumResults() - 2);
  else
    panelOffsets.front() =
        findPlace(b, op, apply(s0.floorDiv(bn), offsets[n]), offsets);
  if (op.hasBatchedWeight()) {
    panelOffsets.insert(panelOffsets.begin(), offsets[0]);
    panelSizes.insert(panelSizes.begin(), sizes[0]);
  }
  inputs.panels = slice(b, loc, op.getPanels(), panelOffsets, panelSizes);
}

LogicalResult nm_sparse::checkPanelTile(MatmulOp op,
                                        ArrayRef<OpFoldResult> offsets,
                                        ArrayRef<OpFoldResult> sizes) {
  if (!op.getListedPanels())
    return success();
  int64_t bn = op.getEncoding().getBlockN();
  unsigned n = op.getOutputLoop();
  FailureOr<int64_t> bound = getKnownUpperBound(sizes[n]);
  int64_t divisor = getKnownDivisor(offsets[n]);
  bool isInside =
      succeeded(bound) && *bound <= bn &&
      (divisor % bn == 0 || (bn % divisor == 0 && *bound <= divisor));
  if (isInside || hasAllOutputs(op, offsets, sizes))
    return success();
  return op.emitOpError("has ragged panels of ")
         << bn
         << " outputs, each with rows of its own: legal are tiles that "
            "lie inside one";
}

SmallVector<Operation *>
InputSlices::getOperations(tensor::ExtractSliceOp last) const {
  SmallVector<Operation *> operations = {x, values, index};
  if (innerIndex)
    operations.push_back(innerIndex);
  if (panels)
    operations.push_back(panels);
  operations.push_back(last);
  return operations;
}

LogicalResult nm_sparse::checkCanonicalLevels(MatmulOp op) {
  if (!op.getInnerIndex() || op.getStorageAttr())
    return success();
  return op.emitOpError("of two levels is tiled where its weight is stored as "
                        "bitmaps, and not in the canonical form; run "
                        "--nm-sparse-select-storage first");
}

LogicalResult nm_sparse::checkWholeContraction(MatmulOp op,
                                               ArrayRef<OpFoldResult> offsets,
                                               ArrayRef<OpFoldResult> sizes) {
  unsigned w = op.getReductionLoop();
  if (!op.getEncoding().isFree() ||
      (isConstantIntValue(offsets[w], 0) &&
       isConstantIntValue(sizes[w], op.getNumWindows())))
    return success();
  return op.emitOpError(
      "has a free weight, and only all of it says where what belongs to a row "
      "is: legal is to tile its results");
}

bool nm_sparse::startsStoredTile(MatmulOp op, ArrayRef<OpFoldResult> offsets) {
  std::optional<BitmapTile> tile = op.getStoredTile();
  if (!tile)
    return true;
  int64_t windows =
      tile->rows / op.getEncoding().getInnermost().getWindowRows();
  return getKnownDivisor(offsets[op.getOutputLoop()]) % BitmapTile::kOutputs ==
             0 &&
         getKnownDivisor(offsets[op.getReductionLoop()]) % windows == 0;
}

InputSlices nm_sparse::sliceInputs(OpBuilder &b, MatmulOp op,
                                   ArrayRef<OpFoldResult> offsets,
                                   ArrayRef<OpFoldResult> sizes) {
  Location loc = op.getLoc();
  EncodingAttr encoding = op.getEncoding();
  unsigned n = op.getOutputLoop(), w = op.getReductionLoop();
  AffineExpr s0 = b.getAffineSymbolExpr(0);
  auto multiply = [&](OpFoldResult windows, int64_t rows) {
    return affine::makeComposedFoldedAffineApply(b, loc, s0 * rows, {windows});
  };
  InputSlices inputs;
  inputs.x = sliceX(b, op, offsets, sizes);
  if (op.getListedPanels()) {
    sliceRagged(b, op, offsets, sizes, inputs);
    return inputs;
  }
  std::optional<BitmapTile> tile = op.getStoredTile();
  if (tile) {
    sliceBitmaps(b, op, *tile, offsets, sizes, inputs);
    if (!op.getInnerIndex())
      return inputs;
  }

  // Canonical components: a batch in front when each has its own.
  auto slicePart = [&](Value part, int64_t rows, OpFoldResult column,
                       OpFoldResult columns) {
    SmallVector<OpFoldResult> partOffsets = {multiply(offsets[w], rows),
                                             column};
    SmallVector<OpFoldResult> partSizes = {multiply(sizes[w], rows), columns};
    if (op.hasBatchedWeight()) {
      partOffsets.insert(partOffsets.begin(), offsets[0]);
      partSizes.insert(partSizes.begin(), sizes[0]);
    }
    return slice(b, loc, part, partOffsets, partSizes);
  };
  OpFoldResult columnCount = sizes[n];
  if (!tile)
    columnCount = getColumnCount(
        b, cast<RankedTensorType>(op.getValues().getType()).getShape().back(),
        offsets[n], sizes[n]);
  PanelRange panels = getPanels(b, loc, encoding.getBlockN(),
                                op.getPanelOffset(), offsets[n], columnCount);
  const SparsityLevel &innermost = encoding.getInnermost();
  if (!tile)
    inputs.values = slicePart(op.getValues(), innermost.getKeptRows(),
                              offsets[n], columnCount);
  inputs.index =
      slicePart(op.getIndex(), encoding.getN(), panels.first, panels.count);
  inputs.panelOffset = panels.offset;
  return inputs;
}
