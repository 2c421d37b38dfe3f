//===- WarpGrid.cpp - warps of a product over its tile --------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Products/WarpGrid.h"

using namespace mlir;
using namespace mlir::nm_sparse;

/// Warps of a CTA at most.
static constexpr int64_t kMostWarps = 32;

ParseResult nm_sparse::parseWarpGrid(AsmParser &parser, StringRef owner,
                                     SmallVectorImpl<int64_t> &warps) {
  SMLoc loc = parser.getCurrentLocation();
  StringRef name;
  if (failed(parser.parseOptionalLess()) ||
      failed(parser.parseOptionalKeyword(&name)) || name != "warps")
    return parser.emitError(loc)
           << owner << " needs <warps = [tokens, outputs]>";
  return failure(
      parser.parseEqual() ||
      parser.parseCommaSeparatedList(
          AsmParser::Delimiter::Square,
          [&] { return parser.parseInteger(warps.emplace_back()); }) ||
      parser.parseGreater());
}

void nm_sparse::printWarpGrid(AsmPrinter &printer, ArrayRef<int64_t> warps) {
  printer << "<warps = [" << warps << "]>";
}

LogicalResult
nm_sparse::verifyWarpGrid(function_ref<InFlightDiagnostic()> emitError,
                          ArrayRef<int64_t> warps) {
  if (warps.size() != 2 || llvm::any_of(warps, [](int64_t v) { return v < 1; }))
    return emitError() << "warps must be two positive counts, [tokens, "
                          "outputs]";
  if (warps[0] > kMostWarps || warps[1] > kMostWarps ||
      warps[0] * warps[1] > kMostWarps)
    return emitError() << "a CTA of " << warps[0] << " x " << warps[1]
                       << " warps is larger than the " << kMostWarps
                       << " allowed";
  return success();
}

LogicalResult
nm_sparse::verifyTileUnits(function_ref<InFlightDiagnostic()> emitError,
                           StringRef owner, ArrayRef<int64_t> warps,
                           int64_t tokens, int64_t outputs, int64_t tokenUnit,
                           int64_t outputUnit) {
  if (tokens % (warps[0] * tokenUnit) || outputs % (warps[1] * outputUnit))
    return emitError() << "a tile of " << tokens << " x " << outputs << " over "
                       << warps[0] << " x " << warps[1] << " " << owner
                       << " warps must be a multiple of "
                       << warps[0] * tokenUnit << " x "
                       << warps[1] * outputUnit;
  return success();
}

LogicalResult
nm_sparse::verifyStagedTransfers(function_ref<InFlightDiagnostic()> emitError,
                                 StringRef owner, TransfersAttr transfers) {
  if (transfers.getX().getUse().isDirect ||
      transfers.getValues().getUse().isDirect ||
      transfers.getIndex().getUse().isDirect)
    return emitError() << owner
                       << " reads its operands from shared memory; no transfer "
                          "may be direct";
  if (transfers.getX().getUse().isBulk)
    return emitError() << owner
                       << " reads rows that an index names: x = bulk is legal "
                          "with product = wgmma_expand and wgmma_sp";
  return success();
}

LogicalResult
nm_sparse::verifyTensorCoreProblem(function_ref<InFlightDiagnostic()> emitError,
                                   StringRef owner, ScheduleAttr schedule,
                                   EncodingAttr encoding, Type element) {
  if (!isa<Float16Type, BFloat16Type>(element))
    return emitError() << "has a schedule with product = " << owner
                       << ", which multiplies f16 or bf16, but operands of "
                       << element << "; use "
                       << (element.isF32()
                               ? "a product of the CUDA cores"
                               : "product = dot, of a weight that is stored "
                                 "as bitmaps");
  if (!schedule.isPanelAligned(encoding))
    return emitError() << "has a schedule with product = " << owner
                       << " and tiles of " << schedule.getTileOutputs()
                       << " outputs, which do not align with panels of "
                       << encoding.getBlockN()
                       << "; one must be a multiple of the other (or use a "
                          "product of the CUDA cores)";
  return success();
}
