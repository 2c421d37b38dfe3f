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
  SmallVector<int64_t> tile = operand.tile;
  // Boxes of activations are whole lines.
  if (operand.role == OperandRole::Activations)
    tile.back() = llvm::alignTo(
        tile.back(), getLineElements(getElementTypeOrSelf(operand.source)));
  return copyToTile(b, operand, tile);
}

/// Boxes of a tensor map have at most 256 rows, and lines of 64 columns.
LogicalResult BulkAttr::verifyOperand(MatmulOp op, OperandRole role) const {
  if (role != OperandRole::Values)
    return success();
  ScheduleAttr schedule = getSchedule(op);
  if (std::optional<BitmapTile> tile = op.getStoredTile()) {
    auto x = cast<ShapedType>(op.getX().getType());
    bool byTokens = op.isXFeatureMajor();
    int64_t inRow =
        x.getDimSize(byTokens ? op.getXTokenDim() : op.getXReductionDim());
    if (schedule.isBulk() && inRow == 1)
      return op.emitOpError("has a schedule with x = bulk, but ")
             << x << " has rows of a single "
             << (byTokens ? "token" : "feature")
             << ", which are no rows to the tensor memory accelerator; legal "
                "is x = direct";
    int64_t step = schedule.getTileRows() / tile->values * tile->rows;
    if (!op.isXFeatureMajor() || step <= 256)
      return success();
    return op.emitOpError("has a schedule with x = bulk, whose K steps must be "
                          "at most 256 rows of feature-major activations, but "
                          "tile = [")
           << schedule.getTile() << "], which makes steps of " << step;
  }
  int64_t rows = schedule.getTileRows();
  if (rows % 16 != 0 || rows > 256)
    return op.emitOpError(
               "has a schedule with values = bulk, whose K steps must "
               "be a multiple of 16, at most 256, kept rows, but "
               "steps of ")
           << rows << "; change the tile, or use values = copy";
  if (schedule.getTileOutputs() % kSwizzledColumns != 0)
    return op.emitOpError("has a schedule with values = bulk, whose tiles must "
                          "be a multiple of ")
           << kSwizzledColumns << " outputs, but tiles of "
           << schedule.getTileOutputs()
           << "; change them, or use values = copy";
  return success();
}
