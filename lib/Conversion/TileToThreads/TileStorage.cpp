//===- TileStorage.cpp - where elements of a tile lie ---------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Conversion/TileToThreads/TileStorage.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace mlir::nm_sparse;

/// The contiguous `tile` as [blocks of kSwizzledColumns][rows][columns].
static Value viewAsBlocks(OpBuilder &b, Location loc, Value tile) {
  auto type = cast<MemRefType>(tile.getType());
  int64_t rows = type.getDimSize(0);
  int64_t shape[] = {type.getDimSize(1) / kSwizzledColumns, rows,
                     kSwizzledColumns};
  int64_t strides[] = {rows * kSwizzledColumns, kSwizzledColumns, 1};
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

TileStorage::TileStorage(OpBuilder &b, Location loc, ScheduleAttr schedule,
                         Value tile)
    : layout(getTileLayout(schedule, cast<MemRefType>(tile.getType()))),
      buffer(tile) {
  if (layout == TileLayout::SwizzledBlocks)
    buffer = viewAsBlocks(b, loc, tile);
}

SmallVector<Value> TileStorage::getIndices(OpBuilder &b, Location loc,
                                           Value row, Value column,
                                           Value swizzleRow) const {
  if (layout == TileLayout::Rows)
    return {row, column};
  auto constant = [&](int64_t v) -> Value {
    return arith::ConstantIndexOp::create(b, loc, v);
  };
  int64_t bytes =
      cast<MemRefType>(buffer.getType()).getElementTypeBitWidth() / 8;
  Value key = b.createOrFold<arith::MulIOp>(
      loc,
      b.createOrFold<arith::RemUIOp>(loc, swizzleRow ? swizzleRow : row,
                                     constant(8)),
      constant(16 / bytes));
  if (layout == TileLayout::SwizzledRows)
    return {row, b.createOrFold<arith::XOrIOp>(loc, column, key)};
  Value block =
      b.createOrFold<arith::DivUIOp>(loc, column, constant(kSwizzledColumns));
  Value inner =
      b.createOrFold<arith::RemUIOp>(loc, column, constant(kSwizzledColumns));
  return {block, row, b.createOrFold<arith::XOrIOp>(loc, inner, key)};
}
