//===- CopyAttr.cpp - threads copy each K step ----------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Transfers/TransferAttrs.h"

#include "mlir/IR/TypeUtilities.h"
#include "nm_sparse/Dialect/NMTile/IR/TileLayout.h"
#include "nm_sparse/Dialect/NMTile/Utils/CopyToTile.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::nm_sparse;

//===----------------------------------------------------------------------===//
// copy
//===----------------------------------------------------------------------===//

StringRef CopyAttr::getTransferName() const { return getMnemonic(); }

bool CopyAttr::brings(OperandRole role) const {
  return role != OperandRole::Positions;
}

TransferUse CopyAttr::getUse() const { return {}; }

bool CopyAttr::readsPatches(PatchesAttr patches, ShapedType) const {
  return !patches.isBatched();
}

Value CopyAttr::promote(OpBuilder &b, PromotedOperand &operand, Value) const {
  SmallVector<int64_t> tile = operand.tile;
  // Products that have their weight in bulk read activations in whole lines.
  if (operand.role == OperandRole::Activations &&
      getSchedule(operand.op).hasBulkBits())
    tile.back() = llvm::alignTo(
        tile.back(), getLineElements(getElementTypeOrSelf(operand.source)));
  return copyToTile(b, operand, tile);
}

//===----------------------------------------------------------------------===//
// staged
//===----------------------------------------------------------------------===//

StringRef StagedAttr::getTransferName() const { return getMnemonic(); }

bool StagedAttr::brings(OperandRole role) const {
  return role == OperandRole::Positions;
}

TransferUse StagedAttr::getUse() const { return {}; }

Value StagedAttr::promote(OpBuilder &b, PromotedOperand &operand, Value) const {
  if (getSchedule(operand.op).gathersX())
    return dropBatch(b, operand.getLoc(), operand.source, operand.batchDim);
  return copyToTile(b, operand, operand.tile);
}
