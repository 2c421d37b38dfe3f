//===- ResidentAttr.cpp - positions of all K steps ------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Transfers/TransferAttrs.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "nm_sparse/Dialect/NMTile/IR/NMTile.h"
#include "nm_sparse/Dialect/NMTile/Utils/CopyToTile.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::nm_sparse;

/// The rows of `before` from `first`, as many as `tile` has.
static Value getStepRows(OpBuilder &b, PromotedOperand &operand, Value before,
                         OpFoldResult first, int64_t rows) {
  OpFoldResult zero = b.getIndexAttr(0), one = b.getIndexAttr(1);
  return tensor::ExtractSliceOp::create(
      b, operand.getLoc(), before, ArrayRef<OpFoldResult>{first, zero},
      ArrayRef<OpFoldResult>{b.getIndexAttr(rows),
                             b.getIndexAttr(operand.tile.back())},
      ArrayRef<OpFoldResult>{one, one});
}

//===----------------------------------------------------------------------===//
// resident
//===----------------------------------------------------------------------===//

StringRef ResidentAttr::getTransferName() const { return getMnemonic(); }

bool ResidentAttr::brings(OperandRole role) const {
  return role == OperandRole::Positions;
}

TransferUse ResidentAttr::getUse() const {
  TransferUse use;
  use.isResident = true;
  return use;
}

/// The copy is rounded up to whole steps, zero past the last window, so that no
/// step reads past it.
Value ResidentAttr::promoteBefore(OpBuilder &b,
                                  PromotedOperand &operand) const {
  Location loc = operand.getLoc();
  auto type = cast<RankedTensorType>(operand.whole.getType());
  int64_t rows =
      llvm::alignTo(type.getDimSize(type.getRank() - 2), operand.tile.front());
  return copyToTile(b, loc, dropBatch(b, loc, operand.whole, operand.batchDim),
                    {rows, operand.tile.back()});
}

Value ResidentAttr::promote(OpBuilder &b, PromotedOperand &operand,
                            Value before) const {
  return getStepRows(b, operand, before, operand.firstRow,
                     operand.tile.front());
}

//===----------------------------------------------------------------------===//
// rows
//===----------------------------------------------------------------------===//

StringRef RowsAttr::getTransferName() const { return getMnemonic(); }

bool RowsAttr::brings(OperandRole role) const {
  return role == OperandRole::Positions;
}

TransferUse RowsAttr::getUse() const {
  TransferUse use;
  use.isResident = use.tabulatesRows = true;
  return use;
}

LogicalResult
RowsAttr::verifyBeside(function_ref<InFlightDiagnostic()> emitError,
                       OperandRole, const TransfersAttr &transfers,
                       int64_t) const {
  if (transfers.getX().getUse().selectsRows)
    return success();
  return emitError() << "index = rows is a table for gathers: legal with it is "
                        "x = gather, got x = "
                     << transfers.getX().getTransferName();
}

/// Which row of the activations each block begins with: to find it in each step
/// takes a division of the kept row's number.
Value RowsAttr::promoteBefore(OpBuilder &b, PromotedOperand &operand) const {
  MatmulOp op = operand.op;
  if (op.getListedPanels())
    return {};
  Location loc = operand.getLoc();
  EncodingAttr encoding = op.getTileEncoding();
  RowTable table = getRowTable(getSchedule(op), encoding, op.getNumWindows());
  Value tile = allocTile(b, loc, {table.rows, operand.tile.back()},
                         b.getIntegerType(table.bits));
  Value index = dropBatch(b, loc, operand.whole, operand.batchDim);
  return AsyncCopyOp::create(b, loc, tile.getType(), index, tile,
                             /*indexing_maps=*/ArrayAttr(), encoding,
                             /*threads=*/DenseI64ArrayAttr(),
                             /*patches=*/PatchesAttr(), /*slice=*/ValueRange())
      .getResult();
}

Value RowsAttr::promote(OpBuilder &b, PromotedOperand &operand,
                        Value before) const {
  MatmulOp op = operand.op;
  if (!before)
    return operand.source;
  int64_t rowsOfBlock = op.getTileEncoding().getBlockK();
  AffineExpr blocks = b.getAffineDimExpr(0).floorDiv(rowsOfBlock);
  OpFoldResult first = affine::makeComposedFoldedAffineApply(
      b, operand.getLoc(), AffineMap::get(1, 0, blocks),
      {op.getPlace(kFirstRowPlace)});
  return getStepRows(b, operand, before, first,
                     getSchedule(op).getTileRows() / rowsOfBlock);
}
