//===- CopyToTile.cpp - tiles of shared memory ----------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Dialect/NMTile/Utils/CopyToTile.h"

#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::nm_sparse;

Value nm_sparse::allocTile(OpBuilder &b, Location loc, ArrayRef<int64_t> shape,
                           Type element, TileLayout layout) {
  auto type = RankedTensorType::get(shape, element);
  auto alloc = bufferization::AllocTensorOp::create(b, loc, type, ValueRange{});
  alloc.setMemorySpaceAttr(getTileSpace(b.getContext(), layout));
  return alloc;
}

TileLayout nm_sparse::chooseTileLayout(const PromotedOperand &operand,
                                       ArrayRef<int64_t> shape) {
  MatmulOp op = operand.op;
  ScheduleAttr schedule = getSchedule(op);
  OperandTiles tiles = schedule.getOperandTiles();
  bool isPositions = operand.role == OperandRole::Positions;
  bool isStored = op.getStoredTile().has_value();
  if (isPositions)
    return isStored ? TileLayout::ColumnBlocks : TileLayout::Rows;
  if (operand.role == OperandRole::Values && isStored)
    return tiles.values;
  Type element = getElementTypeOrSelf(operand.source);
  auto tile = MemRefType::get(shape, element);
  // Threads read tiles of 8 bits as they are, the accelerator writes lines.
  bool isRead8 = element.getIntOrFloatBitWidth() == 8 &&
                 !schedule.hasBulkBits() && !tiles.valuesKMajor;
  if (isRead8 || !hasWholeLines(tile))
    return TileLayout::Rows;
  return schedule.hasBulkValues() ? TileLayout::SwizzledBlocks : tiles.lines;
}

ArrayAttr nm_sparse::getTileMaps(OpBuilder &b, unsigned srcFirst,
                                 unsigned dstFirst) {
  if (srcFirst == 0 && dstFirst == 0)
    return {};
  auto getMap = [&](unsigned first) {
    return AffineMap::getPermutationMap(ArrayRef<unsigned>{first, 1 - first},
                                        b.getContext());
  };
  return b.getAffineMapArrayAttr({getMap(srcFirst), getMap(dstFirst)});
}

Value nm_sparse::dropBatch(OpBuilder &b, Location loc, Value source,
                           std::optional<int64_t> dim) {
  if (!dim)
    return source;
  auto type = cast<RankedTensorType>(source.getType());
  SmallVector<OpFoldResult> offsets(type.getRank(), b.getIndexAttr(0));
  SmallVector<OpFoldResult> strides(type.getRank(), b.getIndexAttr(1));
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(b, loc, source);
  SmallVector<int64_t> shape(type.getShape());
  shape.erase(shape.begin() + *dim);
  return tensor::ExtractSliceOp::create(
      b, loc, RankedTensorType::get(shape, type.getElementType()), source,
      offsets, sizes, strides);
}

static Value copyTo(OpBuilder &b, Value tile, Value source, ArrayAttr maps,
                    PatchesAttr patches, ValueRange slice) {
  return AsyncCopyOp::create(b, tile.getLoc(), tile.getType(), source, tile,
                             maps, /*rows_of=*/EncodingAttr(),
                             /*threads=*/DenseI64ArrayAttr(), patches, slice)
      .getResult();
}

Value nm_sparse::copyToTile(OpBuilder &b, PromotedOperand &operand,
                            ArrayRef<int64_t> shape) {
  Location loc = operand.getLoc();
  Value source = dropBatch(b, loc, operand.source, operand.batchDim);
  Value tile = allocTile(b, loc, shape, getElementTypeOrSelf(source),
                         chooseTileLayout(operand, shape));
  bool transposed = operand.tokensFirst != operand.tileTokensFirst;
  return copyTo(b, tile, source,
                getTileMaps(b, /*srcFirst=*/transposed, /*dstFirst=*/0),
                operand.patches, operand.patchSlice);
}

Value nm_sparse::copyToTile(OpBuilder &b, Location loc, Value source,
                            ArrayRef<int64_t> shape) {
  Value tile = allocTile(b, loc, shape, getElementTypeOrSelf(source));
  return copyTo(b, tile, source, /*maps=*/{}, /*patches=*/{}, /*slice=*/{});
}
