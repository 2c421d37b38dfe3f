//===- KMajorSlice.cpp - tiles of values along the contraction ------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Dialect/NMSparse/IR/NMSparseTiling.h"
#include "Dialect/NMSparse/Storages/StorageAttrs.h"

using namespace mlir;
using namespace mlir::nm_sparse;

/// The slice of the canonical form, with that of the values transposed.
WeightSlice KMajorAttr::slice(OpBuilder &b, Operation *operation,
                              ArrayRef<OpFoldResult> offsets,
                              ArrayRef<OpFoldResult> sizes) const {
  auto op = cast<MatmulOp>(operation);
  unsigned n = op.getOutputLoop();
  auto values = cast<RankedTensorType>(op.getValues().getType());
  OpFoldResult outputs =
      getStoredCount(b, values.getShape().end()[-2], offsets[n], sizes[n]);
  PanelRange panels =
      getPanels(b, op.getLoc(), getEncoding().getBlockN(),
                op.getPlace(kPanelOffsetPlace), offsets[n], outputs);
  WeightSlice slice;
  slice.components.push_back(
      sliceWindows(b, op, op.getValues(), getEncoding().getKeptRows(),
                   offsets[n], outputs, offsets, sizes, /*rowsLast=*/true));
  slice.components.push_back(sliceWindows(b, op, op.getIndex(),
                                          getEncoding().getN(), panels.first,
                                          panels.count, offsets, sizes));
  if (panels.offset)
    slice.places.push_back({kPanelOffsetPlace, panels.offset});
  return slice;
}

SmallVector<int64_t> KMajorAttr::getTileShape(StringRef component, Type,
                                              const WeightTile &tile) const {
  if (component == kValuesComponent)
    return {tile.outputs, tile.paddedRows};
  return {tile.positions, tile.panels};
}
