//===- CanonicalSlice.cpp - tiles of weights in canonical form ------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Dialect/NMSparse/IR/NMSparseTiling.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace mlir::nm_sparse;

LogicalResult EncodingAttr::verifySlice(Operation *operation,
                                        ArrayRef<OpFoldResult>,
                                        ArrayRef<OpFoldResult>, bool) const {
  if (!hasInnerLevel())
    return success();
  return operation->emitOpError(
      "of two levels is tiled where its weight is stored as bitmaps, and not "
      "in "
      "the canonical form; run --nm-sparse-select-storage first");
}

WeightSlice EncodingAttr::slice(OpBuilder &b, Operation *operation,
                                ArrayRef<OpFoldResult> offsets,
                                ArrayRef<OpFoldResult> sizes) const {
  auto op = cast<MatmulOp>(operation);
  unsigned n = op.getOutputLoop();
  auto values = cast<RankedTensorType>(op.getValues().getType());
  OpFoldResult columns =
      getStoredCount(b, values.getShape().back(), offsets[n], sizes[n]);
  PanelRange panels =
      getPanels(b, op.getLoc(), getBlockN(), op.getPlace(kPanelOffsetPlace),
                offsets[n], columns);
  WeightSlice slice;
  slice.components.push_back(sliceWindows(b, op, op.getValues(),
                                          getInnermost().getKeptRows(),
                                          offsets[n], columns, offsets, sizes));
  slice.components.push_back(sliceWindows(b, op, op.getIndex(), getN(),
                                          panels.first, panels.count, offsets,
                                          sizes));
  if (panels.offset)
    slice.places.push_back({kPanelOffsetPlace, panels.offset});
  return slice;
}

SmallVector<int64_t> EncodingAttr::getTileShape(StringRef component, Type,
                                                const WeightTile &tile) const {
  if (component == kValuesComponent)
    return {tile.paddedRows, tile.outputs};
  return {tile.positions, tile.panels};
}

Value nm_sparse::loadPosition(OpBuilder &builder, Location loc,
                              ValueRange tiles, Value block, Value panel) {
  return memref::LoadOp::create(builder, loc, tiles[1],
                                ValueRange{block, panel});
}
