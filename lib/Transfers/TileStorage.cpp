//===- TileStorage.cpp - where elements of a tile lie ---------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Transfers/TileStorage.h"
#include "nm_sparse/Dialect/NMTile/Utils/IndexMath.h"
#include "nm_sparse/Transfers/CopyPlan.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace mlir::nm_sparse;

/// The contiguous `tile` as [blocks][rows][`line` columns].
static Value viewAsBlocks(OpBuilder &b, Location loc, Value tile,
                          int64_t line) {
  auto type = cast<MemRefType>(tile.getType());
  int64_t columns = type.getShape().back();
  int64_t rows = type.getNumElements() / columns;
  int64_t shape[] = {columns / line, rows, line};
  int64_t strides[] = {rows * line, line, 1};
  auto metadata = memref::ExtractStridedMetadataOp::create(b, loc, tile);
  auto viewType = MemRefType::get(
      shape, type.getElementType(),
      StridedLayoutAttr::get(b.getContext(), ShapedType::kDynamic, strides),
      type.getMemorySpace());
  auto attributes = [&](ArrayRef<int64_t> values) {
    return llvm::map_to_vector(
        values, [&](int64_t v) -> OpFoldResult { return b.getIndexAttr(v); });
  };
  return memref::ReinterpretCastOp::create(
      b, loc, viewType, metadata.getBaseBuffer(),
      OpFoldResult(metadata.getOffset()), attributes(shape),
      attributes(strides));
}

TileStorage::TileStorage(OpBuilder &b, Location loc, Value tile)
    : layout(getTileLayout(cast<MemRefType>(tile.getType()))), buffer(tile) {
  auto type = cast<MemRefType>(tile.getType());
  if (layout == TileLayout::SwizzledBlocks)
    buffer = viewAsBlocks(b, loc, tile, getLineElements(type.getElementType()));
  if (layout == TileLayout::ColumnBlocks)
    buffer = viewAsBlocks(b, loc, tile, getColumnBlock(type));
}

SmallVector<Value> TileStorage::getIndices(OpBuilder &b, Location loc,
                                           Value row, Value column,
                                           Value swizzleRow) const {
  if (layout == TileLayout::Rows)
    return {row, column};
  IndexMath math{b, loc};
  auto type = cast<MemRefType>(buffer.getType());
  if (layout == TileLayout::ColumnBlocks) {
    int64_t block = type.getDimSize(2);
    return {math.div(column, block), row, math.rem(column, block)};
  }
  int64_t bytes = type.getElementTypeBitWidth() / 8;
  Value key = getSwizzleKey(math, swizzleRow ? swizzleRow : row, bytes);
  if (layout == TileLayout::SwizzledRows)
    return {row, math.bitXor(column, key)};
  int64_t line = kSwizzledLineBytes / bytes;
  Value block = math.div(column, line);
  Value inner = math.rem(column, line);
  return {block, row, math.bitXor(inner, key)};
}
