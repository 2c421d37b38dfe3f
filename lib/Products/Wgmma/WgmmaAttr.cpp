//===- WgmmaAttr.cpp - what warpgroups ask of a schedule ------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../ProductAttrs.h"

#include "nm_sparse/Dialect/NMTile/IR/TileLayout.h"
#include "nm_sparse/Products/WarpGrid.h"

using namespace mlir;
using namespace mlir::nm_sparse;

using EmitErrorFn = function_ref<InFlightDiagnostic()>;

/// Warps of a warpgroup; a product of theirs has 64 rows, of 16 kept rows.
static constexpr int64_t kWarps = 4, kProductRows = 64, kRowUnit = 16;

/// Accumulators of a thread that leave room for the rest of its state in the
/// 255 registers that it may have.
static constexpr int64_t kMostAccumulators = 192;

Attribute WgmmaAttr::parse(AsmParser &parser, Type) {
  return parseWarpGridAttr<WgmmaAttr>(parser);
}

void WgmmaAttr::print(AsmPrinter &printer) const {
  printWarpGrid(printer, getWarps());
}

LogicalResult WgmmaAttr::verify(EmitErrorFn emitError,
                                ArrayRef<int64_t> warps) {
  if (failed(verifyWarpGrid(emitError, warps)))
    return failure();
  if (warps[1] % kWarps != 0)
    return emitError() << "wgmma warps along outputs must be a multiple of the "
                       << kWarps << " of a warpgroup, got " << warps[1];
  return success();
}

StringRef WgmmaAttr::getProductName() const { return getMnemonic(); }

int64_t WgmmaAttr::getNumWarps() const { return getWarps()[0] * getWarps()[1]; }

LogicalResult WgmmaAttr::verifyTile(EmitErrorFn emitError, int64_t tokens,
                                    int64_t outputs) const {
  int64_t warpgroups = getWarps()[1] / kWarps;
  if (outputs % (warpgroups * kProductRows) != 0)
    return emitError() << "a tile of " << outputs << " outputs over "
                       << warpgroups
                       << " warpgroups must be a multiple of 64 outputs for "
                          "each";
  if (tokens % (getWarps()[0] * kProductRows) != 0 ||
      tokens / getWarps()[0] > 256)
    return emitError() << "a tile of " << tokens << " tokens over "
                       << getWarps()[0]
                       << " warpgroups must be 64, 128, 192 or 256 tokens for "
                          "each";
  int64_t accumulators = tokens * outputs / (getNumWarps() * 32);
  if (accumulators > kMostAccumulators)
    return emitError() << "a tile of " << tokens << " x " << outputs << " over "
                       << getWarps()[0] << " x " << getWarps()[1]
                       << " wgmma warps has " << accumulators
                       << " accumulators in each thread, more than the "
                       << kMostAccumulators << " that registers hold";
  return success();
}

LogicalResult WgmmaAttr::verifyTransfers(EmitErrorFn emitError,
                                         const TransfersAttr &transfers,
                                         int64_t producers) const {
  if (failed(verifyStagedTransfers(emitError, getMnemonic(), transfers)))
    return failure();
  if (!transfers.getX().getUse().selectsRows)
    return emitError() << "wgmma needs x = gather: products of warpgroups "
                          "cannot select rows of whole windows";
  if (producers % kWarps != 0)
    return emitError() << "producers beside wgmma warps must be a multiple of "
                          "the "
                       << kWarps << " of a warpgroup, got " << producers;
  if (transfers.getValues().getUse().isBulk && producers == 0)
    return emitError() << "values = bulk needs producers to start the copies; "
                          "legal is pipeline = ring<...>";
  return success();
}

LogicalResult WgmmaAttr::verifyProblem(EmitErrorFn emitError,
                                       const ScheduleAttr &schedule,
                                       const EncodingAttr &encoding,
                                       Type element) const {
  if (failed(verifyTensorCoreProblem(emitError, getMnemonic(), schedule,
                                     encoding, element)))
    return failure();
  if (encoding.getBlockN() % kProductRows != 0)
    return emitError() << "has a schedule with product = wgmma, whose "
                       << kProductRows
                       << " outputs of a product share their rows, but panels "
                          "of "
                       << encoding.getBlockN()
                       << " outputs; legal are multiples of " << kProductRows
                       << " (or use product = mma)";
  return success();
}

/// A matrix descriptor needs whole lines of 128 bytes, here of 16-bit elements.
OperandTiles WgmmaAttr::getOperandTiles() const {
  OperandTiles tiles;
  tiles.rowUnit = kRowUnit;
  tiles.lines = TileLayout::SwizzledBlocks;
  tiles.tokenRowUnit = kSwizzledColumns;
  return tiles;
}

RingUse WgmmaAttr::getRingUse(const ScheduleAttr &) const {
  RingUse use;
  use.readByThreads = false;
  use.staysInFlight = true;
  use.producerTurns = true;
  return use;
}

int64_t WgmmaAttr::getWarpgroupTokens(ScheduleAttr schedule) const {
  return schedule.getTileTokens() / getWarps()[0];
}

int64_t WgmmaAttr::getWarpgroupOutputs(ScheduleAttr schedule) const {
  return schedule.getTileOutputs() / getWarps()[1] * kWarps;
}

SumOwners WgmmaAttr::getSumOwners(const ScheduleAttr &schedule,
                                  const EncodingAttr &encoding) const {
  SumOwners owners;
  owners.tokensByPanel = schedule.getSplitK() == 1 && getWarps()[0] > 1 &&
                         getWarpgroupTokens(schedule) == kProductRows &&
                         getWarpgroupOutputs(schedule) == 256 &&
                         encoding.getBlockN() % 256 == 0;
  return owners;
}
