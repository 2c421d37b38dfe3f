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
