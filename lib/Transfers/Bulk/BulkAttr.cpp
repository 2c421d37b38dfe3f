//===- BulkAttr.cpp - the tensor memory accelerator copies ----------------===//
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

StringRef BulkAttr::getTransferName() const { return getMnemonic(); }

bool BulkAttr::brings(OperandRole) const { return true; }

TransferUse BulkAttr::getUse() const {
  TransferUse use;
  use.isBulk = true;
  return use;
}

/// Values may come so beside others that threads copy.
LogicalResult
BulkAttr::verifyBeside(function_ref<InFlightDiagnostic()> emitError,
                       OperandRole role, const TransfersAttr &transfers,
                       int64_t producers) const {
  if (role == OperandRole::Values || (transfers.areBulk() && producers > 0))
    return success();
  return emitError() << "x = bulk and index = bulk are legal together, with "
                        "values = bulk and pipeline = ring<...>";
}

Value BulkAttr::promote(OpBuilder &b, PromotedOperand &operand, Value) const {
  Location loc = operand.getLoc();
  Value source = dropBatch(b, loc, operand.source, operand.batchDim);
  SmallVector<int64_t> tile = operand.tile;
  // Boxes of activations are whole lines.
  if (operand.role == OperandRole::Activations)
    tile.back() = llvm::alignTo(
        tile.back(), getLineElements(getElementTypeOrSelf(source.getType())));
  return copyToTile(b, loc, source, tile,
                    operand.tokensFirst != operand.tileTokensFirst);
}
