//===- WgmmaExpandAttr.cpp - what expanded weights ask of a schedule ------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../ProductAttrs.h"

#include "nm_sparse/Dialect/NMTile/IR/ElementFormat.h"
#include "nm_sparse/Dialect/NMTile/IR/Segment.h"
#include "nm_sparse/Dialect/NMTile/IR/TileLayout.h"
#include "nm_sparse/Products/WarpgroupTile.h"

using namespace mlir;
using namespace mlir::nm_sparse;

using EmitErrorFn = function_ref<InFlightDiagnostic()>;

LogicalResult WgmmaExpandAttr::verify(EmitErrorFn emitError, int64_t warps,
                                      int64_t shares, bool, bool) {
  if (failed(verifyWarpgroups(emitError, getMnemonic(), warps)))
    return failure();
  if (shares < 1 || warps % (shares * kWarpgroupWarps) != 0)
    return emitError() << "wgmma_expand needs shares that divide its "
                       << warps / kWarpgroupWarps << " warpgroups, got "
                       << shares;
  return success();
}

StringRef WgmmaExpandAttr::getProductName() const { return getMnemonic(); }

int64_t WgmmaExpandAttr::getNumWarps() const { return getWarps(); }

int64_t WgmmaExpandAttr::getWarpgroupOutputs(ScheduleAttr schedule) const {
  return schedule.getTileOutputs() / getOutputWarps() * kWarpgroupWarps;
}

LogicalResult WgmmaExpandAttr::verifyTile(EmitErrorFn emitError, int64_t tokens,
                                          int64_t outputs) const {
  return verifyWarpgroupTile(emitError, getMnemonic(), getOutputWarps(), tokens,
                             outputs);
}

LogicalResult WgmmaExpandAttr::verifyTransfers(EmitErrorFn emitError,
                                               const TransfersAttr &transfers,
                                               int64_t producers) const {
  return verifyWarpgroupTransfers(emitError, getMnemonic(), transfers,
                                  producers);
}

LogicalResult WgmmaExpandAttr::verifyProblem(EmitErrorFn emitError,
                                             const ScheduleAttr &schedule,
                                             const EncodingAttr &encoding,
                                             Type element) const {
  if (failed(verifyWarpgroupProblem(emitError, getMnemonic(), schedule,
                                    getOutputWarps(),
                                    getEntryRegisters(schedule), element,
                                    {"f16", "bf16", "e4m3", "e5m2", "i8"})))
    return failure();
  int64_t tokens = schedule.getTileTokens();
  if (!findElementFormat(element)->wgmma->isLegalN(tokens))
    return emitError()
           << "has a schedule with product = wgmma_expand and tiles of "
           << tokens << " tokens; legal with " << element
           << " are multiples of 16, and 8 and 24";
  if (encoding.isFree())
    return emitError() << "has a schedule with product = wgmma_expand, which "
                          "multiplies n:m weights, but "
                       << encoding << "; legal is product = dot";
  // Products of a share begin with lines of activations, and all of them are
  // whole.
  int64_t unit = getLineElements(element);
  int64_t elementBytes = element.getIntOrFloatBitWidth() / 8;
  BitmapTile tile = BitmapTile::get(encoding, elementBytes);
  int64_t tiles = schedule.getTileRows() / tile.values;
  int64_t productRows = findElementFormat(element)->wgmma->k;
  if (tiles * tile.rows % productRows != 0)
    return emitError() << "has a schedule with product = wgmma_expand and K "
                          "steps of "
                       << tiles * tile.rows << " rows; legal with " << element
                       << " are multiples of " << productRows;
  if (getShares() > 1 &&
      (tiles % getShares() != 0 || tiles / getShares() * tile.rows % unit != 0))
    return emitError() << "has a schedule with K steps of " << tiles
                       << " tiles of " << tile.rows
                       << " rows, which cannot be divided into " << getShares()
                       << " shares of a multiple of " << unit << " rows";
  if (!getSegments())
    return success();
  if (elementBytes == 1)
    return emitError() << "has a schedule with segments = true, which is for "
                          "elements of 16 bits, but operands of "
                       << element << "; legal is segments = false";
  Segment segment = Segment::get(encoding, tile, elementBytes);
  constexpr int64_t mostRows = 256;
  int64_t stepRows = Segment::kLanes * getShares() * segment.rows;
  if (stepRows > mostRows)
    return emitError() << "has a schedule with segments = true, whose K steps "
                          "have at least "
                       << stepRows << " rows of " << encoding << ", "
                       << segment.rows << " for each of " << Segment::kLanes
                       << " lanes of " << getShares()
                       << " shares, where at most " << mostRows
                       << " can be copied; legal is segments = false";
  int64_t groups = Segment::kLanes * getShares() / segment.perTile;
  if (schedule.getTileRows() % (groups * tile.values) != 0)
    return emitError() << "has a schedule with segments = true and K steps of "
                       << schedule.getTileRows() << " kept rows, which the "
                       << Segment::kLanes << " lanes of each of " << getShares()
                       << " shares do not divide; legal are multiples of "
                       << groups * tile.values;
  return success();
}

OperandTiles WgmmaExpandAttr::getOperandTiles() const {
  OperandTiles tiles;
  tiles.weight = WeightForm::Bitmaps;
  tiles.lines = TileLayout::SwizzledBlocks;
  if (getSegments())
    tiles.values = TileLayout::SegmentLines;
  tiles.tokenWindows = true;
  return tiles;
}

SumOwners WgmmaExpandAttr::getSumOwners(const ScheduleAttr &,
                                        const EncodingAttr &) const {
  return {/*shares=*/getShares(), /*dividesContraction=*/getShares() > 1};
}

/// One thread of the producers starts copies, and none holds any data.
RingUse WgmmaExpandAttr::getRingUse(const ScheduleAttr &) const {
  RingUse use;
  use.staysInFlight = true;
  use.leanProducers = true;
  return use;
}
