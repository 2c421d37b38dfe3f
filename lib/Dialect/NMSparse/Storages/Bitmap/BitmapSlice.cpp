//===- BitmapSlice.cpp - tiles of weights stored as bitmaps ---------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Dialect/NMSparse/IR/NMSparseTiling.h"
#include "Dialect/NMSparse/Storages/StorageAttrs.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"

using namespace mlir;
using namespace mlir::nm_sparse;

/// Windows of the innermost level in a stored tile.
static int64_t getTileWindows(MatmulOp op) {
  return op.getStoredTile()->rows /
         op.getEncoding().getInnermost().getWindowRows();
}

LogicalResult BitmapAttr::verifySlice(Operation *operation,
                                      ArrayRef<OpFoldResult> offsets,
                                      ArrayRef<OpFoldResult> sizes,
                                      bool isPart) const {
  auto op = cast<MatmulOp>(operation);
  if (getEncoding().isFree() &&
      failed(verifyWholeContraction(op, offsets, sizes)))
    return failure();
  if (getKnownDivisor(offsets[op.getOutputLoop()]) % BitmapTile::kOutputs ==
          0 &&
      getKnownDivisor(offsets[op.getReductionLoop()]) % getTileWindows(op) == 0)
    return success();
  InFlightDiagnostic error = op.emitOpError("is stored in tiles of ");
  if (!isPart)
    error << BitmapTile::kOutputs << " outputs x ";
  return error << op.getStoredTile()->rows << " rows, with which "
               << (isPart ? "each part of the contraction must begin"
                          : "its own tiles must begin");
}

WeightSlice BitmapAttr::slice(OpBuilder &b, Operation *operation,
                              ArrayRef<OpFoldResult> offsets,
                              ArrayRef<OpFoldResult> sizes) const {
  auto op = cast<MatmulOp>(operation);
  Location loc = op.getLoc();
  int64_t windows = getTileWindows(op);
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
    return nm_sparse::slice(b, loc, component, partOffsets, partSizes);
  };
  WeightSlice weight;
  // Where in all of them the values of a free tile are, its bits say.
  weight.components.push_back(
      getEncoding().isFree()
          ? nm_sparse::slice(b, loc, op.getValues(), {b.getIndexAttr(0)},
                             {tensor::getMixedSize(b, loc, op.getValues(), 0)})
          : slicePart(op.getValues()));
  weight.components.push_back(slicePart(op.getComponent(kBitsComponent)));
  if (!getEncoding().hasInnerLevel())
    return weight;
  PanelRange panels = getPanels(b, loc, getEncoding().getBlockN(),
                                /*base=*/Value(), offsets[n], sizes[n]);
  Value index = sliceWindows(b, op, op.getIndex(), getEncoding().getN(),
                             panels.first, panels.count, offsets, sizes);
  weight.components.insert(weight.components.begin() + 1, index);
  if (panels.offset)
    weight.places.push_back({kPanelOffsetPlace, panels.offset});
  return weight;
}

SmallVector<int64_t> BitmapAttr::getTileShape(StringRef component, Type element,
                                              const WeightTile &tile) const {
  if (component == kIndexComponent)
    return {tile.positions, tile.panels};
  BitmapTile stored = getTile(element);
  return {tile.outputs / BitmapTile::kOutputs, tile.rows / stored.values,
          component == kBitsComponent ? stored.getBitsWords()
                                      : stored.values * BitmapTile::kOutputs};
}
