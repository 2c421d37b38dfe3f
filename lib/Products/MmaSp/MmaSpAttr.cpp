//===- MmaSpAttr.cpp - what sparse mma asks of a schedule -----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../ProductAttrs.h"

#include "nm_sparse/Products/WarpGrid.h"

using namespace mlir;
using namespace mlir::nm_sparse;

using EmitErrorFn = function_ref<InFlightDiagnostic()>;

Attribute MmaSpAttr::parse(AsmParser &parser, Type) {
  return parseWarpGridAttr<MmaSpAttr>(parser);
}

void MmaSpAttr::print(AsmPrinter &printer) const {
  printWarpGrid(printer, getWarps());
}

LogicalResult MmaSpAttr::verify(EmitErrorFn emitError,
                                ArrayRef<int64_t> warps) {
  return verifyWarpGrid(emitError, warps);
}

StringRef MmaSpAttr::getProductName() const { return getMnemonic(); }

int64_t MmaSpAttr::getNumWarps() const { return getWarps()[0] * getWarps()[1]; }

LogicalResult MmaSpAttr::verifyTile(EmitErrorFn emitError, int64_t tokens,
                                    int64_t outputs) const {
  return verifyTileUnits(emitError, getMnemonic(), getWarps(), tokens, outputs,
                         kFragmentTokens, BitmapTile::kOutputs);
}

LogicalResult MmaSpAttr::verifyTransfers(EmitErrorFn emitError,
                                         const TransfersAttr &transfers,
                                         int64_t) const {
  if (!transfers.areCopied() && !transfers.areBulk())
    return emitError() << "mma_sp has its operands copied step by step: legal "
                          "is transfers = {x = copy, values = copy, index = "
                          "staged}, or bulk for all three";
  return success();
}

LogicalResult MmaSpAttr::verifyProblem(EmitErrorFn emitError,
                                       const ScheduleAttr &schedule,
                                       const EncodingAttr &encoding,
                                       Type element) const {
  if (!isa<Float16Type, BFloat16Type, Float8E4M3FNType, Float8E5M2Type>(
          element) &&
      !element.isSignlessInteger(8))
    return emitError() << "has a schedule with product = mma_sp, which "
                          "multiplies f16, bf16, e4m3, e5m2 or i8, but "
                          "operands of "
                       << element;
  if (!encoding.isTwoOfFour())
    return emitError() << "has a schedule with product = mma_sp, which "
                          "multiplies 2:4 weights, but "
                       << encoding << "; legal is product = mma_expand";
  BitmapTile tile =
      BitmapTile::get(encoding, element.getIntOrFloatBitWidth() / 8);
  int64_t rows = schedule.getTileRows() / tile.values * tile.rows;
  if (rows % kPairRows != 0)
    return emitError() << "has a schedule with product = mma_sp and K steps of "
                       << rows << " rows; legal are multiples of " << kPairRows;
  return success();
}

OperandTiles MmaSpAttr::getOperandTiles() const {
  OperandTiles tiles;
  tiles.weight = WeightForm::Bitmaps;
  tiles.tokenWindows = true;
  return tiles;
}

RingUse MmaSpAttr::getRingUse(const ScheduleAttr &schedule) const {
  RingUse use;
  use.leanProducers = schedule.isBulk();
  return use;
}
