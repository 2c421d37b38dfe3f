//===- TileLayout.cpp - how tiles lie in shared memory --------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Dialect/NMSparse/IR/TileLayout.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::nm_sparse;

bool nm_sparse::isSwizzled(MemRefType tile) {
  Type element = tile.getElementType();
  return (element.isF16() || element.isBF16()) && tile.getRank() == 2 &&
         tile.getDimSize(1) % kSwizzledColumns == 0;
}

bool nm_sparse::keepsTokensAsRows(ScheduleAttr schedule, EncodingAttr encoding,
                                  int64_t elementBytes) {
  if (schedule.isDirect())
    return true;
  ProductAttrInterface product = schedule.getProduct();
  if (!schedule.gathersX())
    return product.readsTokenMajorWindows();
  return encoding.getBlockK() * elementBytes % 16 == 0 &&
         product.readsTokenMajorRows(schedule.getStepRows());
}

RowTable nm_sparse::getRowTable(ScheduleAttr schedule, EncodingAttr encoding,
                                int64_t windows) {
  int64_t rows =
      llvm::alignTo(windows * encoding.getKeptRows(), schedule.getTileRows());
  // All ones stand for no row.
  bool isShort = windows * encoding.getWindowRows() < (1 << 16);
  return {rows / encoding.getBlockK(), isShort ? 16u : 32u};
}

TileLayout nm_sparse::getTileLayout(ScheduleAttr schedule, MemRefType tile) {
  if (!isSwizzled(tile))
    return TileLayout::Rows;
  return schedule.getProduct().readsSwizzledBlocks() || schedule.hasBulkValues()
             ? TileLayout::SwizzledBlocks
             : TileLayout::SwizzledRows;
}

/// Elements added to each row of a tile against bank conflicts. 16-byte steps
/// put 8 rows of one column in 8 different bank groups, but also move every
/// other row off the 32-byte sectors that the copies arrive in, which fetches
/// those sectors twice. So only where nothing else helps: not for tiles that
/// are swizzled, nor for 32-bit tiles, whose rows are read by whole warps,
/// unless their columns are written one element a thread.
static int64_t getPadding(MemRefType type, TileLayout layout, bool transposed) {
  int64_t bytes = type.getElementTypeBitWidth() / 8;
  if (layout != TileLayout::Rows || (bytes == 4 && !transposed))
    return 0;
  int64_t rowBytes = type.getDimSize(1) * bytes;
  return rowBytes % 32 == 0 ? 16 / bytes : 0;
}

MemRefType nm_sparse::getRingType(ScheduleAttr schedule, MemRefType tile,
                                  int64_t stages, bool isTransposed) {
  int64_t padding =
      getPadding(tile, getTileLayout(schedule, tile), isTransposed);
  return MemRefType::get(
      {stages, tile.getDimSize(0), tile.getDimSize(1) + padding},
      tile.getElementType(), MemRefLayoutAttrInterface(),
      tile.getMemorySpace());
}

int64_t nm_sparse::getAllocatedBytes(MemRefType buffer) {
  return llvm::alignTo(buffer.getNumElements() *
                           buffer.getElementTypeBitWidth() / 8,
                       kTileAlignment);
}
