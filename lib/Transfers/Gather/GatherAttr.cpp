//===- GatherAttr.cpp - only the rows that a weight keeps -----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Transfers/TransferAttrs.h"

#include "mlir/IR/TypeUtilities.h"
#include "nm_sparse/Dialect/NMTile/IR/NMTile.h"
#include "nm_sparse/Dialect/NMTile/Utils/CopyToTile.h"

using namespace mlir;
using namespace mlir::nm_sparse;

StringRef GatherAttr::getTransferName() const { return getMnemonic(); }

bool GatherAttr::brings(OperandRole role) const {
  return role == OperandRole::Activations;
}

TransferUse GatherAttr::getUse() const {
  TransferUse use;
  use.selectsRows = true;
  return use;
}

bool GatherAttr::readsPatches(PatchesAttr patches, ShapedType) const {
  return !patches.isBatched();
}

/// Each entry of the row table is a row of the activations.
static bool hasAllRows(MatmulOp op) {
  ScheduleAttr schedule = getSchedule(op);
  EncodingAttr encoding = op.getTileEncoding();
  int64_t windows = op.getNumWindows();
  auto x = cast<RankedTensorType>(op.getX().getType());
  auto index = cast<RankedTensorType>(op.getIndex().getType());
  return x.getDimSize(op.getXReductionDim()) ==
             windows * encoding.getWindowRows() &&
         windows * encoding.getKeptRows() % schedule.getTileRows() == 0 &&
         index.getShape().back() == schedule.getTilePanels(encoding);
}

Value GatherAttr::promote(OpBuilder &b, PromotedOperand &operand, Value) const {
  Location loc = operand.getLoc();
  MatmulOp op = operand.op;
  ScheduleAttr schedule = getSchedule(op);
  EncodingAttr encoding = op.getTileEncoding();
  int64_t panels = schedule.getTilePanels(encoding);
  Value source = dropBatch(b, loc, operand.source, operand.batchDim);
  Value tile = allocTile(b, loc, operand.tile, getElementTypeOrSelf(source),
                         chooseTileLayout(operand, operand.tile));
  bool byRow = schedule.hasRowTable();
  bool allPanels =
      cast<RankedTensorType>(operand.positions.getType()).getDimSize(1) ==
      panels;
  return AsyncGatherOp::create(
             b, loc, tile.getType(), encoding, /*level=*/0,
             getTileMaps(b, /*srcFirst=*/operand.tokensFirst,
                         /*dstFirst=*/operand.tileTokensFirst),
             allPanels ? IntegerAttr() : b.getI64IntegerAttr(panels),
             /*by_row=*/byRow,
             /*in_bounds=*/byRow && !op.getListedPanels() && hasAllRows(op),
             /*threads=*/DenseI64ArrayAttr(), operand.patches, source,
             operand.positions, tile, operand.patchSlice)
      .getResult();
}
