//===- WgmmaRsAttr.cpp - what register operands ask of a schedule ---------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../ProductAttrs.h"

#include "nm_sparse/Dialect/NMTile/IR/TileLayout.h"
#include "nm_sparse/Products/WarpGrid.h"
#include "nm_sparse/Products/WarpgroupTile.h"

using namespace mlir;
using namespace mlir::nm_sparse;

using EmitErrorFn = function_ref<InFlightDiagnostic()>;

/// Tokens, and a unit of the outputs, of one product of a warpgroup.
static constexpr int64_t kProductTokens = 64, kOutputUnit = 64;
static constexpr int64_t kMostOutputs = 256;

Attribute WgmmaRsAttr::parse(AsmParser &parser, Type) {
  return parseWarpGridAttr<WgmmaRsAttr>(parser);
}

void WgmmaRsAttr::print(AsmPrinter &printer) const {
  printWarpGrid(printer, getWarps());
}

LogicalResult WgmmaRsAttr::verify(EmitErrorFn emitError,
                                  ArrayRef<int64_t> warps) {
  if (failed(verifyWarpGrid(emitError, warps)))
    return failure();
  if (warps[0] % kWarpgroupWarps != 0)
    return emitError() << "wgmma_rs warps along tokens must be a multiple of "
                          "the "
                       << kWarpgroupWarps << " of a warpgroup, got "
                       << warps[0];
  return verifyWarpgroups(emitError, getMnemonic(), warps[0] * warps[1]);
}

StringRef WgmmaRsAttr::getProductName() const { return getMnemonic(); }

int64_t WgmmaRsAttr::getNumWarps() const {
  return getWarps()[0] * getWarps()[1];
}

int64_t WgmmaRsAttr::getWarpgroupTokens(ScheduleAttr schedule) const {
  return schedule.getTileTokens() / getWarps()[0] * kWarpgroupWarps;
}

int64_t WgmmaRsAttr::getWarpgroupOutputs(ScheduleAttr schedule) const {
  return schedule.getTileOutputs() / getWarps()[1];
}

LogicalResult WgmmaRsAttr::verifyTile(EmitErrorFn emitError, int64_t tokens,
                                      int64_t outputs) const {
  int64_t warpgroups = getWarps()[0] / kWarpgroupWarps;
  if (tokens % (warpgroups * kProductTokens) != 0)
    return emitError() << "a tile of " << tokens << " tokens over "
                       << warpgroups << " warpgroups must be a multiple of "
                       << kProductTokens << " tokens for each";
  if (outputs % (getWarps()[1] * kOutputUnit) != 0 ||
      outputs / getWarps()[1] > kMostOutputs)
    return emitError() << "a tile of " << outputs << " outputs over "
                       << getWarps()[1]
                       << " warpgroups must be 64, 128, 192 or 256 outputs "
                          "for each";
  int64_t accumulators = tokens * outputs / (getNumWarps() * 32);
  if (accumulators > kMostAccumulators)
    return emitError() << "a tile of " << tokens << " x " << outputs << " over "
                       << getWarps()[0] << " x " << getWarps()[1]
                       << " wgmma_rs warps has " << accumulators
                       << " accumulators in each thread, more than the "
                       << kMostAccumulators << " that registers hold";
  return success();
}

LogicalResult WgmmaRsAttr::verifyTransfers(EmitErrorFn emitError,
                                           const TransfersAttr &transfers,
                                           int64_t producers) const {
  TransferUse index = transfers.getIndex().getUse();
  if (!transfers.getX().getUse().selectsRows ||
      !transfers.getValues().getUse().isBulk ||
      !(index.isResident || index.tabulatesRows))
    return emitError() << "wgmma_rs has rows of its activations gathered, and "
                          "values from the tensor memory accelerator: legal is "
                          "transfers = {x = gather, values = bulk, index = "
                          "resident}, or index = rows";
  return verifyWarpgroupProducers(emitError, getMnemonic(), producers);
}

LogicalResult WgmmaRsAttr::verifyProblem(EmitErrorFn emitError,
                                         const ScheduleAttr &schedule,
                                         const EncodingAttr &encoding,
                                         Type element) const {
  if (failed(verifyWarpgroupProblem(
          emitError, getMnemonic(), schedule, getNumWarps(),
          getProductRegisters(schedule), element, {"e4m3", "e5m2", "i8"})))
    return failure();
  if (encoding.getBlockN() % schedule.getTileOutputs() != 0)
    return emitError() << "has a schedule with product = wgmma_rs, whose tiles "
                          "lie in one panel, but "
                       << schedule.getTileOutputs() << " outputs of panels of "
                       << encoding.getBlockN() << "; legal are divisors";
  int64_t unit = getLineElements(element);
  if (schedule.getTileRows() % unit != 0)
    return emitError() << "has a schedule with product = wgmma_rs, and K steps "
                          "of "
                       << schedule.getTileRows()
                       << " kept rows; legal are multiples of " << unit;
  if (schedule.getTileTokens() % unit == 0)
    return success();
  return emitError() << "has a schedule with product = wgmma_rs, and tiles of "
                     << schedule.getTileTokens()
                     << " tokens; legal are multiples of " << unit;
}

/// Values are lines of 128 bytes, and so are the gathered rows.
OperandTiles WgmmaRsAttr::getOperandTiles() const {
  OperandTiles tiles;
  tiles.rowUnit = kSwizzledLineBytes;
  tiles.lines = TileLayout::SwizzledBlocks;
  tiles.valuesKMajor = true;
  return tiles;
}

/// Threads read activations before the products of a step, which stay in
/// flight.
RingUse WgmmaRsAttr::getRingUse(const ScheduleAttr &) const {
  RingUse use;
  use.staysInFlight = true;
  use.producerTurns = true;
  return use;
}
