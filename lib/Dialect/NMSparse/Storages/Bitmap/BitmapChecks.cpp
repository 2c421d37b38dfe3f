//===- BitmapChecks.cpp - products of weights stored as bitmaps -----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Dialect/NMSparse/IR/WeightChecks.h"
#include "Dialect/NMSparse/Storages/StorageAttrs.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::nm_sparse;

SmallVector<StringRef> BitmapAttr::getComponentNames() const {
  if (getEncoding().hasInnerLevel())
    return {kValuesComponent, kIndexComponent, kBitsComponent};
  return {kValuesComponent, kBitsComponent};
}

std::optional<WindowCount> BitmapAttr::getWindowCount(Type element) const {
  if (getEncoding().hasInnerLevel())
    return getEncoding().getWindowCount(element);
  return WindowCount{/*component=*/1,
                     /*factor=*/getTile(element).rows /
                         getEncoding().getWindowRows(),
                     /*divisor=*/1};
}

/// Checks that `name` holds whole tiles of so many elements.
static LogicalResult verifyTiles(MatmulOp op, StringRef name, int64_t elements,
                                 bool isWord) {
  auto type = cast<RankedTensorType>(op.getComponent(name).getType());
  int64_t rank = op.getWeightMap().getNumResults() + 1;
  if (type.getRank() != rank || type.getShape().back() != elements ||
      (isWord && !type.getElementType().isSignlessInteger(32)))
    return op.emitOpError()
           << name << " must have rank " << rank << " and " << elements
           << (isWord ? " words of i32" : " elements")
           << " in each tile of its storage, got " << type;
  if (llvm::is_contained(type.getShape(), 0))
    return op.emitOpError()
           << name << " must have at least one tile, got " << type;
  return success();
}

/// Checks the tiles along the contraction, and those along the outputs.
static LogicalResult verifyTileCounts(MatmulOp op, const BitmapTile &tile) {
  auto bits = cast<RankedTensorType>(op.getComponent(kBitsComponent).getType());
  int64_t rank = bits.getRank();
  int64_t k = op.getContractionSize(), tiles = bits.getDimSize(rank - 2);
  // The rows that the outer level keeps.
  if (op.getEncoding().hasInnerLevel() &&
      ShapedType::isStatic(op.getNumWindows()))
    k = op.getNumWindows() * op.getEncoding().getKeptRows();
  auto needed = int64_t(llvm::divideCeil(k, tile.rows));
  if (ShapedType::isStatic(k) && ShapedType::isStatic(tiles) && needed != tiles)
    return op.emitOpError("contraction size ")
           << k << " has " << needed << " tiles of " << tile.rows
           << " rows, bits holds " << tiles;
  int64_t blocks = bits.getDimSize(rank - 3);
  return verifyOutputs(op, ShapedType::isStatic(blocks)
                               ? blocks * BitmapTile::kOutputs
                               : blocks);
}

LogicalResult BitmapAttr::verifyMatmul(Operation *operation) const {
  auto op = cast<MatmulOp>(operation);
  BitmapTile tile = *op.getStoredTile();
  SmallVector<StringRef> places;
  if (tile.isFree)
    places.push_back(kFirstRowPlace);
  if (failed(verifyPlaceNames(op, places)))
    return failure();
  auto values = cast<RankedTensorType>(op.getValues().getType());
  if (tile.isFree && values.getRank() != 1)
    return op.emitOpError("values of free elements must have rank 1, got ")
           << values;
  if ((!tile.isFree &&
       failed(verifyTiles(op, kValuesComponent,
                          tile.values * BitmapTile::kOutputs, false))) ||
      failed(verifyTiles(op, kBitsComponent, tile.getBitsWords(), true)))
    return failure();
  Type bits = op.getComponent(kBitsComponent).getType();
  if (!tile.isFree && values.getShape().drop_back() !=
                          cast<RankedTensorType>(bits).getShape().drop_back())
    return op.emitOpError("values and bits must have the same tiles, got ")
           << values << " and " << bits;
  if (failed(verifyTileCounts(op, tile)))
    return failure();
  SmallVector<StringRef> batched = {kBitsComponent};
  if (!tile.isFree)
    batched.push_back(kValuesComponent);
  if (getEncoding().hasInnerLevel()) {
    batched.push_back(kIndexComponent);
    // The blocks of outputs fill panels.
    int64_t blocks = values.getShape().end()[-3];
    if (failed(verifyPositions(op, ShapedType::isStatic(blocks)
                                       ? blocks * BitmapTile::kOutputs
                                       : blocks)))
      return failure();
  }
  return verifyBatch(op, batched);
}
