//===- MmaExpandAttr.cpp - what mma_expand asks of a schedule -------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../ProductAttrs.h"

#include "nm_sparse/Dialect/NMTile/IR/ElementFormat.h"
#include "nm_sparse/Dialect/NMTile/IR/Segment.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace mlir::nm_sparse;

using EmitErrorFn = function_ref<InFlightDiagnostic()>;

/// Warps of a CTA at most.
static constexpr int64_t kMostWarps = 32;

LogicalResult MmaExpandAttr::verify(EmitErrorFn emitError, int64_t warps,
                                    int64_t shares) {
  if (warps < 1 || warps > kMostWarps)
    return emitError() << "mma_expand needs 1 to " << kMostWarps
                       << " warps, got " << warps;
  if (shares < 1 || warps % shares != 0)
    return emitError() << "mma_expand needs shares that divide its " << warps
                       << " warps, got " << shares;
  return success();
}

StringRef MmaExpandAttr::getProductName() const { return getMnemonic(); }

int64_t MmaExpandAttr::getNumWarps() const { return getWarps(); }

LogicalResult MmaExpandAttr::verifyTile(EmitErrorFn emitError, int64_t tokens,
                                        int64_t outputs) const {
  if (!llvm::is_contained({8, 16, 32, 64}, tokens))
    return emitError() << "a tile of mma_expand must be 8, 16, 32 or 64 "
                          "tokens, got "
                       << tokens;
  if (outputs != getOutputWarps() * BitmapTile::kOutputs)
    return emitError() << "a tile of mma_expand must be "
                       << BitmapTile::kOutputs << " outputs for each of the "
                       << getOutputWarps() << " warps of a share, got "
                       << outputs;
  return success();
}

LogicalResult MmaExpandAttr::verifyTransfers(EmitErrorFn emitError,
                                             const TransfersAttr &transfers,
                                             int64_t) const {
  if (!transfers.areDirect())
    return emitError() << "mma_expand reads global memory: legal is transfers "
                          "= {x = direct, values = direct, index = direct}";
  return success();
}

LogicalResult MmaExpandAttr::verifyProblem(EmitErrorFn emitError,
                                           const ScheduleAttr &schedule,
                                           const EncodingAttr &encoding,
                                           Type element) const {
  const ElementFormat *format = findElementFormat(element);
  if (!format || format->bits > 16)
    return emitError() << "has a schedule with product = mma_expand, which "
                          "multiplies f16, bf16, e4m3, e5m2 or i8, but "
                          "operands of "
                       << element;
  if (encoding.isFree())
    return emitError() << "has a schedule with product = mma_expand, which "
                          "multiplies n:m weights, but "
                       << encoding << "; legal is product = dot";
  int64_t elementBytes = element.getIntOrFloatBitWidth() / 8;
  BitmapTile tile = BitmapTile::get(encoding, elementBytes);
  Segment segment = Segment::get(encoding, tile, elementBytes);
  int64_t mostValues = kMostValueBytes / elementBytes;
  int64_t mostRows = kMostRowBytes / elementBytes;
  if (segment.values > mostValues || segment.rows > mostRows)
    return emitError() << "has a schedule with product = mma_expand, whose "
                          "lanes expand up to "
                       << mostValues << " values to " << mostRows
                       << " rows at a time, but the least whole windows of "
                       << encoding << " that fill 16 bytes are "
                       << segment.values << " values of " << segment.rows
                       << " rows; legal is product = dot";
  int64_t tiles = schedule.getTileRows() / tile.values;
  int64_t unit = Segment::kLanes * getShares() / segment.perTile * tile.values;
  if (schedule.getTileRows() % unit != 0)
    return emitError() << "has a schedule with product = mma_expand and K "
                          "steps of "
                       << schedule.getTileRows() << " kept rows, which the "
                       << Segment::kLanes << " lanes of each of " << getShares()
                       << " shares do not divide; legal are "
                          "multiples of "
                       << unit;
  int64_t values = segment.countOfLane(tiles, getShares()) * segment.values;
  if (values > mostValues)
    return emitError() << "has a schedule with product = mma_expand and K "
                          "steps of "
                       << schedule.getTileRows()
                       << " kept rows, of which a lane reads " << values
                       << " values of each output at once; legal are at most "
                       << mostValues;
  return success();
}

OperandTiles MmaExpandAttr::getOperandTiles() const {
  return {WeightForm::Bitmaps};
}

SumOwners MmaExpandAttr::getSumOwners(const ScheduleAttr &,
                                      const EncodingAttr &) const {
  return {/*shares=*/getShares(), /*dividesContraction=*/getShares() > 1};
}
