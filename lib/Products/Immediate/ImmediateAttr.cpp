//===- ImmediateAttr.cpp - what immediate asks of a schedule --------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../ProductAttrs.h"

#include "nm_sparse/Dialect/NMTile/IR/Schedule.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace mlir::nm_sparse;

using EmitErrorFn = function_ref<InFlightDiagnostic()>;

/// Warps of a CTA at most, and lanes of a warp.
static constexpr int64_t kMostWarps = 32, kLanes = 32;

LogicalResult ImmediateAttr::verify(EmitErrorFn emitError, int64_t warps,
                                    int64_t shares) {
  if (warps < 1 || warps > kMostWarps)
    return emitError() << "immediate needs 1 to " << kMostWarps
                       << " warps, got " << warps;
  if (shares < 1 || warps % shares != 0)
    return emitError() << "immediate needs shares that divide its " << warps
                       << " warps, got " << shares;
  return success();
}

StringRef ImmediateAttr::getProductName() const { return getMnemonic(); }

int64_t ImmediateAttr::getNumWarps() const { return getWarps(); }

LogicalResult ImmediateAttr::verifyTile(EmitErrorFn emitError, int64_t tokens,
                                        int64_t outputs) const {
  int64_t lanes = getTokenWarps() * kLanes;
  if (tokens % lanes != 0 || !llvm::is_contained({1, 2, 4}, tokens / lanes))
    return emitError() << "a tile of immediate must be " << lanes << ", "
                       << 2 * lanes << " or " << 4 * lanes << " tokens for the "
                       << getTokenWarps() << " warps of a share, got "
                       << tokens;
  if (outputs % getShares() != 0)
    return emitError() << "a tile of immediate must have as many outputs for "
                          "each of its "
                       << getShares() << " shares, got " << outputs;
  int64_t sums = tokens / lanes * outputs;
  if (outputs > kMostOutputs || sums > kMostSums)
    return emitError() << "a tile of immediate must be at most " << kMostOutputs
                       << " outputs and " << kMostSums
                       << " sums of a lane, got " << outputs << " outputs and "
                       << sums << " sums";
  return success();
}

LogicalResult ImmediateAttr::verifyTransfers(EmitErrorFn emitError,
                                             const TransfersAttr &transfers,
                                             int64_t) const {
  if (!transfers.areDirect())
    return emitError() << "immediate reads global memory: legal is transfers = "
                          "{x = direct, values = direct, index = direct}";
  return success();
}

LogicalResult ImmediateAttr::verifyProblem(EmitErrorFn emitError,
                                           const ScheduleAttr &schedule,
                                           const EncodingAttr &encoding,
                                           Type element) const {
  if (!isa<Float16Type, BFloat16Type, Float32Type>(element))
    return emitError() << "has a schedule with product = immediate, which "
                          "multiplies f16, bf16 and f32, but operands of "
                       << element;
  if (!encoding.isFree())
    return emitError() << "has a schedule with product = immediate, which "
                          "multiplies constants of free elements, but "
                       << encoding
                       << "; --nm-sparse-specialize-constants stores them so";
  if (schedule.getSplitK() != 1 || schedule.isPersistent())
    return emitError() << "has a schedule with product = immediate, whose "
                          "tiles have code of their own, but grid = "
                       << schedule.getGrid() << "; legal is flat";
  return success();
}

OperandTiles ImmediateAttr::getOperandTiles() const {
  return {WeightForm::Code};
}

SumOwners ImmediateAttr::getSumOwners(const ScheduleAttr &,
                                      const EncodingAttr &) const {
  return {/*shares=*/getShares()};
}
