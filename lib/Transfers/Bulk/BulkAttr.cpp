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

/// Values may come so beside others that threads copy, and bits beside values.
LogicalResult
BulkAttr::verifyBeside(function_ref<InFlightDiagnostic()> emitError,
                       OperandRole role, const TransfersAttr &transfers,
                       int64_t producers) const {
  bool hasBulkValues = transfers.getValues().getUse().isBulk;
  if (role == OperandRole::Values || (transfers.areBulk() && producers > 0) ||
      (role == OperandRole::Positions && hasBulkValues && producers > 0))
    return success();
  return emitError() << "x = bulk needs index = bulk, and both need values = "
                        "bulk and pipeline = ring<...>";
}

/// A line of a box lies at one place of the kernel. What a map holds of kernel
/// and padding has 8 bits, of strides 3.
bool BulkAttr::readsPatches(PatchesAttr patches, ShapedType image) const {
  constexpr int64_t mostCorner = 127, mostOffset = 255, mostStride = 8;
  if (!patches.isTokenMajor() || patches.getRows().back() != 'c' ||
      image.getDimSize(patches.getImageDim('c')) %
              getLineElements(image.getElementType()) !=
          0)
    return false;
  return llvm::all_of(ArrayRef<unsigned>{0, 1}, [&](unsigned axis) {
    int64_t reach =
        (patches.getKernel()[axis] - 1) * patches.getDilations()[axis];
    return patches.getLow()[axis] <= mostCorner &&
           patches.getHigh()[axis] <= mostCorner &&
           reach - patches.getHigh()[axis] <= mostCorner &&
           reach <= mostOffset && patches.getStrides()[axis] <= mostStride;
  });
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
                    operand.tokensFirst != operand.tileTokensFirst,
                    operand.patches, operand.patchSlice);
}
