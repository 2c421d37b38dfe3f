//===- PanelDotAttr.cpp - what panel_dot asks of a schedule ---------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../ProductAttrs.h"

#include "nm_sparse/Dialect/NMTile/IR/Schedule.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::nm_sparse;

using EmitErrorFn = function_ref<InFlightDiagnostic()>;

/// Warps of a CTA at most, tokens that share one pass over the weight, and bits
/// that a lane reads at once.
static constexpr int64_t kMostWarps = 32, kMostTokens = 8, kReadBits = 128;

LogicalResult PanelDotAttr::verify(EmitErrorFn emitError, int64_t warps,
                                   int64_t shares) {
  if (warps < 1 || warps > kMostWarps)
    return emitError() << "panel_dot needs 1 to " << kMostWarps
                       << " warps, got " << warps;
  int64_t lanes = shares < 1 ? 0 : warps * 32 / shares;
  if (lanes * shares == warps * 32 && lanes <= 32 && llvm::isPowerOf2_64(lanes))
    return success();
  return emitError() << "panel_dot needs shares of 1, 2, 4, 8, 16 or 32 lanes "
                        "each, got "
                     << shares << " of " << warps << " warps";
}

StringRef PanelDotAttr::getProductName() const { return getMnemonic(); }

int64_t PanelDotAttr::getNumWarps() const { return getWarps(); }

LogicalResult PanelDotAttr::verifyTile(EmitErrorFn emitError, int64_t tokens,
                                       int64_t outputs) const {
  if (tokens > kMostTokens || outputs % getGroupLanes() != 0)
    return emitError() << "a tile of panel_dot must be at most " << kMostTokens
                       << " tokens and a multiple of the " << getGroupLanes()
                       << " lanes of a share in outputs, got " << tokens
                       << " x " << outputs;
  return success();
}

LogicalResult PanelDotAttr::verifyTransfers(EmitErrorFn emitError,
                                            const TransfersAttr &transfers,
                                            int64_t) const {
  if (!transfers.areDirect())
    return emitError() << "panel_dot reads global memory: legal is transfers = "
                          "{x = direct, values = direct, index = direct}";
  return success();
}

LogicalResult PanelDotAttr::verifyProblem(EmitErrorFn emitError,
                                          const ScheduleAttr &schedule,
                                          const EncodingAttr &encoding,
                                          Type element) const {
  if (!isa<Float16Type, BFloat16Type, Float32Type>(element))
    return emitError() << "has a schedule with product = panel_dot, which "
                          "multiplies f16, bf16 and f32, but operands of "
                       << element;
  int64_t outputs = kReadBits / element.getIntOrFloatBitWidth();
  if (schedule.getTileOutputs() != outputs * getGroupLanes())
    return emitError() << "has a schedule with product = panel_dot, whose "
                       << getGroupLanes() << " lanes of a share have "
                       << outputs << " outputs each of " << element
                       << ", but a tile of " << schedule.getTileOutputs()
                       << " outputs; legal is " << outputs * getGroupLanes();
  if (encoding.getBlockN() % outputs == 0)
    return success();
  return emitError() << "has a schedule with product = panel_dot, which reads "
                     << outputs << " outputs of one panel at once, but panels "
                     << "of " << encoding.getBlockN()
                     << "; legal are multiples of " << outputs;
}

SumOwners PanelDotAttr::getSumOwners(const ScheduleAttr &,
                                     const EncodingAttr &) const {
  return {/*shares=*/getShares(), /*dividesContraction=*/true};
}
