//===- WgmmaSpAttr.cpp - what sparse warpgroups ask of a schedule ---------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../ProductAttrs.h"

#include "nm_sparse/Dialect/NMTile/IR/ElementFormat.h"
#include "nm_sparse/Dialect/NMTile/IR/TileLayout.h"
#include "nm_sparse/Products/WarpgroupTile.h"

using namespace mlir;
using namespace mlir::nm_sparse;

using EmitErrorFn = function_ref<InFlightDiagnostic()>;

LogicalResult WgmmaSpAttr::verify(EmitErrorFn emitError, int64_t warps, bool) {
  return verifyWarpgroups(emitError, getMnemonic(), warps);
}

StringRef WgmmaSpAttr::getProductName() const { return getMnemonic(); }

int64_t WgmmaSpAttr::getNumWarps() const { return getWarps(); }

int64_t WgmmaSpAttr::getWarpgroupOutputs(ScheduleAttr schedule) const {
  return schedule.getTileOutputs() / getWarps() * kWarpgroupWarps;
}

LogicalResult WgmmaSpAttr::verifyTile(EmitErrorFn emitError, int64_t tokens,
                                      int64_t outputs) const {
  return verifyWarpgroupTile(emitError, getMnemonic(), getWarps(), tokens,
                             outputs);
}

LogicalResult WgmmaSpAttr::verifyTransfers(EmitErrorFn emitError,
                                           const TransfersAttr &transfers,
                                           int64_t producers) const {
  // With two levels, rows are gathered.
  TransferUse index = transfers.getIndex().getUse();
  if (transfers.getX().getUse().selectsRows &&
      transfers.getValues().getUse().isBulk && index.isResident &&
      !index.tabulatesRows)
    return verifyWarpgroupProducers(emitError, getMnemonic(), producers);
  return verifyWarpgroupTransfers(emitError, getMnemonic(), transfers,
                                  producers);
}

/// 2:4 of single elements, or that in the rows that panels keep.
static LogicalResult verifyPattern(EmitErrorFn emitError,
                                   const ScheduleAttr &schedule,
                                   const EncodingAttr &encoding) {
  if (!encoding.getInnermost().isTwoOfFour())
    return emitError() << "has a schedule with product = wgmma_sp, which "
                          "multiplies 2:4 weights, but "
                       << encoding << "; legal is product = wgmma_expand";
  if (encoding.hasInnerLevel() != schedule.gathersX())
    return emitError() << "has a schedule with product = wgmma_sp and x = "
                       << schedule.getTransfers().getX().getTransferName()
                       << ", but " << encoding << "; legal is x = "
                       << (encoding.hasInnerLevel() ? "gather" : "bulk");
  if (!encoding.hasInnerLevel())
    return success();
  if (!schedule.isPanelAligned(encoding) ||
      encoding.getBlockN() % kWarpgroupOutputs != 0)
    return emitError()
           << "has a schedule with product = wgmma_sp, whose "
           << kWarpgroupOutputs
           << " outputs of a product share their rows, and tiles of "
           << schedule.getTileOutputs() << " outputs, but panels of "
           << encoding.getBlockN() << "; legal are multiples of "
           << kWarpgroupOutputs << " of which one is a multiple of the other";
  if (schedule.getTileTokens() % kSwizzledColumns != 0)
    return emitError() << "has a schedule with product = wgmma_sp and x = "
                          "gather, whose tiles of "
                       << schedule.getTileTokens()
                       << " tokens are no whole lines; legal are multiples of "
                       << kSwizzledColumns;
  return success();
}

LogicalResult WgmmaSpAttr::verifyProblem(EmitErrorFn emitError,
                                         const ScheduleAttr &schedule,
                                         const EncodingAttr &encoding,
                                         Type element) const {
  if (failed(verifyWarpgroupProblem(emitError, getMnemonic(), schedule,
                                    getWarps(), getProductRegisters(schedule),
                                    element,
                                    {"f16", "bf16", "e4m3", "e5m2", "i8"})))
    return failure();
  int64_t tokens = schedule.getTileTokens();
  if (!findElementFormat(element)->sparseWgmma->isLegalN(tokens))
    return emitError() << "has a schedule with product = wgmma_sp and tiles of "
                       << tokens << " tokens; legal with " << element
                       << " are multiples of 16, and 8 and 24";
  if (failed(verifyPattern(emitError, schedule, encoding)))
    return failure();
  // Activations are in lines. A warp holds the bits of 64 rows.
  int64_t unit = getLineElements(element);
  BitmapTile tile =
      BitmapTile::get(encoding, element.getIntOrFloatBitWidth() / 8);
  int64_t rows = schedule.getTileRows() / tile.values * tile.rows;
  if (rows % unit != 0)
    return emitError() << "has a schedule with product = wgmma_sp and K steps "
                          "of "
                       << rows << " rows; legal are multiples of " << unit;
  return success();
}

OperandTiles WgmmaSpAttr::getOperandTiles() const {
  OperandTiles tiles;
  tiles.weight = WeightForm::Bitmaps;
  tiles.innerLevels = true;
  tiles.lines = TileLayout::SwizzledBlocks;
  tiles.values = TileLayout::CoreMatrices;
  tiles.tokenWindows = true;
  return tiles;
}

/// One thread of the producers starts copies, and none holds any data; or all
/// gather lines, whose places are constants apart, and each of them has many
/// copies to start. Those of an image have a place for each token.
RingUse WgmmaSpAttr::getRingUse(const ScheduleAttr &schedule) const {
  RingUse use;
  use.leanProducers = schedule.isBulk() || schedule.gathersX();
  use.producerTurns = true;
  return use;
}
