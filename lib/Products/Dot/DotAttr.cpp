//===- DotAttr.cpp - what dot asks of a schedule --------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../ProductAttrs.h"

#include "nm_sparse/Dialect/NMTile/IR/Schedule.h"

using namespace mlir;
using namespace mlir::nm_sparse;

using EmitErrorFn = function_ref<InFlightDiagnostic()>;

/// Warps of a CTA at most, and tokens that share one pass over the weight.
static constexpr int64_t kMostWarps = 32, kMostTokens = 8;

LogicalResult DotAttr::verify(EmitErrorFn emitError, int64_t warps) {
  if (warps < 1 || warps > kMostWarps)
    return emitError() << "dot needs 1 to " << kMostWarps << " warps, got "
                       << warps;
  return success();
}

StringRef DotAttr::getProductName() const { return getMnemonic(); }

int64_t DotAttr::getNumWarps() const { return getWarps(); }

LogicalResult DotAttr::verifyTile(EmitErrorFn emitError, int64_t tokens,
                                  int64_t outputs) const {
  if (tokens > kMostTokens || outputs != BitmapTile::kOutputs)
    return emitError() << "a tile of dot must be at most " << kMostTokens
                       << " tokens x " << BitmapTile::kOutputs
                       << " outputs, one for each lane, got " << tokens << " x "
                       << outputs;
  return success();
}

LogicalResult DotAttr::verifyTransfers(EmitErrorFn emitError,
                                       const TransfersAttr &transfers,
                                       int64_t) const {
  if (!transfers.areDirect())
    return emitError() << "dot reads global memory: legal is transfers = {x = "
                          "direct, values = direct, index = direct}";
  return success();
}

/// The verifier of products refuses other types than dot multiplies.
LogicalResult DotAttr::verifyProblem(EmitErrorFn, const ScheduleAttr &,
                                     const EncodingAttr &, Type) const {
  return success();
}

OperandTiles DotAttr::getOperandTiles() const { return {WeightForm::Bitmaps}; }

SumOwners DotAttr::getSumOwners(const ScheduleAttr &,
                                const EncodingAttr &) const {
  return {/*shares=*/getWarps(), /*dividesContraction=*/true};
}
