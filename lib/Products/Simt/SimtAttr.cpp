//===- SimtAttr.cpp - what FFMA products ask of a schedule ----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../ProductAttrs.h"

#include "nm_sparse/Products/WarpGrid.h"

using namespace mlir;
using namespace mlir::nm_sparse;

using EmitErrorFn = function_ref<InFlightDiagnostic()>;

/// The lanes of a warp lie 8 x 4 over tokens x outputs.
static constexpr int64_t kTokenUnit = 8, kOutputUnit = 4;

Attribute SimtAttr::parse(AsmParser &parser, Type) {
  return parseWarpGridAttr<SimtAttr>(parser);
}

void SimtAttr::print(AsmPrinter &printer) const {
  printWarpGrid(printer, getWarps());
}

LogicalResult SimtAttr::verify(EmitErrorFn emitError, ArrayRef<int64_t> warps) {
  return verifyWarpGrid(emitError, warps);
}

StringRef SimtAttr::getProductName() const { return getMnemonic(); }

OperandTiles SimtAttr::getOperandTiles() const {
  OperandTiles tiles;
  tiles.decodesPositions = true;
  return tiles;
}

int64_t SimtAttr::getNumWarps() const { return getWarps()[0] * getWarps()[1]; }

LogicalResult SimtAttr::verifyTile(EmitErrorFn emitError, int64_t tokens,
                                   int64_t outputs) const {
  return verifyTileUnits(emitError, getMnemonic(), getWarps(), tokens, outputs,
                         kTokenUnit, kOutputUnit);
}

LogicalResult SimtAttr::verifyTransfers(EmitErrorFn emitError,
                                        const TransfersAttr &transfers,
                                        int64_t producers) const {
  if (failed(verifyStagedTransfers(emitError, getMnemonic(), transfers)))
    return failure();
  if (transfers.getValues().getUse().isBulk)
    return emitError() << "values = bulk copies in the layout of tensor cores; "
                          "legal for simt is values = copy";
  return success();
}

LogicalResult SimtAttr::verifyProblem(EmitErrorFn emitError,
                                      const ScheduleAttr &,
                                      const EncodingAttr &,
                                      Type element) const {
  if (element.isF32())
    return success();
  bool isHalf = isa<Float16Type, BFloat16Type>(element);
  return emitError() << "has a schedule with product = simt, which multiplies "
                        "f32, but operands of "
                     << element << "; use "
                     << (isHalf ? "a product of tensor cores"
                                : "product = dot, of a weight that is stored "
                                  "as bitmaps");
}

RingUse SimtAttr::getRingUse(const ScheduleAttr &schedule) const {
  RingUse use;
  use.leanProducers = !schedule.gathersX() && !schedule.isPersistent();
  return use;
}
