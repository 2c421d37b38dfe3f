//===- TileSlice.cpp - the same operations on a piece of a tile -----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Grid/TileSlice.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Interfaces/VectorInterfaces.h"

using namespace mlir;
using namespace mlir::nm_sparse;

static bool isTile(Type type, VectorType tile) {
  auto vector = dyn_cast<VectorType>(type);
  return vector && vector.getShape() == tile.getShape();
}

/// A splat: each piece is alike.
static DenseElementsAttr getSplat(Operation *op) {
  auto constant = dyn_cast_or_null<arith::ConstantOp>(op);
  auto value =
      constant ? dyn_cast<DenseElementsAttr>(constant.getValue()) : nullptr;
  return value && value.isSplat() ? value : nullptr;
}

bool TileSlice::isOfTile(Operation *op, VectorType tile) {
  auto check = [&](Type type) { return isTile(type, tile); };
  return llvm::any_of(op->getOperandTypes(), check) ||
         llvm::any_of(op->getResultTypes(), check);
}

LogicalResult TileSlice::check(Operation *op, VectorType tile) {
  if (!isOfTile(op, tile))
    return success();
  auto transfer = dyn_cast<VectorTransferOpInterface>(op);
  if (transfer && isa<MemRefType>(transfer.getBase().getType()) &&
      !transfer.getMask())
    return success();
  auto broadcast = dyn_cast<vector::BroadcastOp>(op);
  if (broadcast && !isa<VectorType>(broadcast.getSourceType()))
    return success();
  if (getSplat(op) || (OpTrait::hasElementwiseMappableTraits(op) &&
                       op->getNumResults() == 1 && op->getNumRegions() == 0))
    return success();
  return op->emitOpError("behind the K loop of a tile, ")
         << tile << ", that a cluster shares: legal are elementwise "
         << "operations, splat constants, broadcasts of scalars and unmasked "
         << "transfers of buffers, each of which can be that of a piece";
}

Type TileSlice::getPieceType(Type type) const {
  if (!isTile(type, tile))
    return type;
  SmallVector<int64_t> shape(tile.getShape());
  shape[dim] = size;
  return VectorType::get(shape, cast<VectorType>(type).getElementType());
}

Value TileSlice::slice(Value value) {
  if (!isTile(value.getType(), tile))
    return value;
  if (!pieces.contains(value))
    rewrite(value.getDefiningOp());
  return pieces.lookup(value);
}

/// Moves `transfer` to the place of the piece in its buffer.
void TileSlice::moveTransfer(VectorTransferOpInterface transfer) {
  auto position =
      dyn_cast<AffineDimExpr>(transfer.getPermutationMap().getResult(dim));
  if (!position) // The buffer is broadcast along this dimension.
    return;
  if (goesBeyond) {
    SmallVector<bool> inBounds = transfer.getInBoundsValues();
    inBounds[dim] = false;
    transfer->setAttr(transfer.getInBoundsAttrName(),
                      b.getBoolArrayAttr(inBounds));
  }
  auto read = dyn_cast<vector::TransferReadOp>(*transfer);
  MutableOperandRange indices =
      read ? read.getIndicesMutable()
           : cast<vector::TransferWriteOp>(*transfer).getIndicesMutable();
  OpOperand &index = indices[position.getPosition()];
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(transfer);
  index.set(
      b.createOrFold<arith::AddIOp>(transfer.getLoc(), index.get(), offset));
}

void TileSlice::rewrite(Operation *op) {
  for (Value operand : op->getOperands())
    pieces.map(operand, slice(operand));
  Operation *copy = b.clone(*op, pieces);
  for (Value result : copy->getResults())
    result.setType(getPieceType(result.getType()));
  if (DenseElementsAttr splat = getSplat(op)) {
    auto type = cast<ShapedType>(copy->getResult(0).getType());
    cast<arith::ConstantOp>(copy).setValueAttr(splat.resizeSplat(type));
  }
  if (auto transfer = dyn_cast<VectorTransferOpInterface>(copy))
    moveTransfer(transfer);
}
