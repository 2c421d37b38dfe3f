//===- MmaAttr.cpp - what mma.sync asks of a schedule ---------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../ProductAttrs.h"

#include "nm_sparse/Products/WarpGrid.h"

using namespace mlir;
using namespace mlir::nm_sparse;

using EmitErrorFn = function_ref<InFlightDiagnostic()>;

/// mma.m16n8k16: 16 tokens by 8 outputs, over 16 kept rows.
static constexpr int64_t kTokenUnit = 16, kOutputUnit = 8, kRowUnit = 16;

Attribute MmaAttr::parse(AsmParser &parser, Type) {
  return parseWarpGridAttr<MmaAttr>(parser);
}

void MmaAttr::print(AsmPrinter &printer) const {
  printWarpGrid(printer, getWarps());
}

LogicalResult MmaAttr::verify(EmitErrorFn emitError, ArrayRef<int64_t> warps) {
  return verifyWarpGrid(emitError, warps);
}

StringRef MmaAttr::getProductName() const { return getMnemonic(); }

int64_t MmaAttr::getNumWarps() const { return getWarps()[0] * getWarps()[1]; }

LogicalResult MmaAttr::verifyTile(EmitErrorFn emitError, int64_t tokens,
                                  int64_t outputs) const {
  return verifyTileUnits(emitError, getMnemonic(), getWarps(), tokens, outputs,
                         kTokenUnit, kOutputUnit);
}

LogicalResult MmaAttr::verifyTransfers(EmitErrorFn emitError,
                                       const TransfersAttr &transfers,
                                       int64_t producers) const {
  if (failed(verifyStagedTransfers(emitError, getMnemonic(), transfers)))
    return failure();
  if (transfers.getValues().getUse().isBulk && producers == 0)
    return emitError() << "values = bulk needs producers to start the copies; "
                          "legal is pipeline = ring<...>";
  return success();
}

LogicalResult MmaAttr::verifyProblem(EmitErrorFn emitError,
                                     const ScheduleAttr &schedule,
                                     const EncodingAttr &encoding,
                                     Type element) const {
  if (failed(verifyTensorCoreProblem(emitError, getMnemonic(), schedule,
                                     encoding, element)))
    return failure();
  if (encoding.getBlockN() % kOutputUnit != 0 &&
      kOutputUnit % encoding.getBlockN() != 0)
    return emitError() << "has a schedule with product = mma, which needs "
                          "panels of a multiple or a divisor of "
                       << kOutputUnit << " outputs, got "
                       << encoding.getBlockN();
  return success();
}

OperandTiles MmaAttr::getOperandTiles() const {
  OperandTiles tiles;
  tiles.decodesPositions = true;
  tiles.rowUnit = kRowUnit;
  tiles.tokenWindows = true;
  tiles.tokenRowUnit = kRowUnit;
  return tiles;
}

RingUse MmaAttr::getRingUse(const ScheduleAttr &schedule) const {
  RingUse use;
  use.leanProducers = schedule.hasBulkValues();
  return use;
}
