//===- WgmmaExpandAttr.cpp - what expanded weights ask of a schedule ------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Dialect/NMSparse/IR/Segment.h"

using namespace mlir;
using namespace mlir::nm_sparse;

using EmitErrorFn = function_ref<InFlightDiagnostic()>;

/// Warps of a warpgroup; a product of theirs has 64 outputs.
static constexpr int64_t kWarps = 4, kProductOutputs = 64;

/// Warps of a CTA that leave some to copy, tokens of a product, and
/// accumulators of a thread that leave room for the rest of its state.
static constexpr int64_t kMostWarps = 28, kMostTokens = 256,
                         kMostAccumulators = 192;

/// Registers of a thread beside its accumulators, without which ptxas refuses
/// the kernel.
static constexpr int64_t kLeastWorkingRegisters = 32;

LogicalResult WgmmaExpandAttr::verify(EmitErrorFn emitError, int64_t warps,
                                      int64_t shares, bool, bool) {
  if (warps < kWarps || warps > kMostWarps || warps % kWarps != 0)
    return emitError() << "wgmma_expand needs a multiple of " << kWarps
                       << " warps, at most " << kMostWarps << ", got " << warps;
  if (shares < 1 || warps % (shares * kWarps) != 0)
    return emitError() << "wgmma_expand needs shares that divide its "
                       << warps / kWarps << " warpgroups, got " << shares;
  return success();
}

StringRef WgmmaExpandAttr::getProductName() const { return getMnemonic(); }

int64_t WgmmaExpandAttr::getNumWarps() const { return getWarps(); }

int64_t WgmmaExpandAttr::getWarpgroupOutputs(ScheduleAttr schedule) const {
  return schedule.getTileOutputs() / getOutputWarps() * kWarps;
}

LogicalResult WgmmaExpandAttr::verifyTile(EmitErrorFn emitError, int64_t tokens,
                                          int64_t outputs) const {
  int64_t warpgroups = getOutputWarps() / kWarps;
  if (outputs % (warpgroups * kProductOutputs) != 0)
    return emitError() << "a tile of " << outputs << " outputs over "
                       << warpgroups << " warpgroups must be a multiple of "
                       << kProductOutputs << " outputs for each";
  if (tokens % 8 != 0 || tokens > kMostTokens)
    return emitError() << "a tile of wgmma_expand must be a multiple of 8, at "
                          "most "
                       << kMostTokens << ", tokens, got " << tokens;
  int64_t accumulators = tokens * outputs / (getOutputWarps() * 32);
  if (accumulators > kMostAccumulators)
    return emitError() << "a tile of " << tokens << " x " << outputs << " over "
                       << getOutputWarps() << " wgmma_expand warps has "
                       << accumulators
                       << " accumulators in each thread, more than the "
                       << kMostAccumulators << " that registers hold";
  return success();
}

LogicalResult WgmmaExpandAttr::verifyTransfers(EmitErrorFn emitError,
                                               const TransfersAttr &transfers,
                                               int64_t producers) const {
  if (transfers.getX() != XTransfer::Bulk)
    return emitError()
           << "wgmma_expand has its operands from the tensor memory "
              "accelerator: legal is transfers = {x = bulk, values "
              "= bulk, index = bulk}";
  if (producers % kWarps != 0)
    return emitError() << "producers beside wgmma_expand warps must be a "
                          "multiple of the "
                       << kWarps << " of a warpgroup, got " << producers;
  return success();
}

/// Registers of a thread when the kernel begins, to which ptxas keeps whatever
/// warps pass on to each other later.
static int64_t getMostRegisters(const ScheduleAttr &schedule) {
  constexpr int64_t registersPerSM = 65536, most = 255, granule = 8;
  return std::min(most, registersPerSM / schedule.getBlockThreads() / granule *
                            granule);
}

LogicalResult WgmmaExpandAttr::verifyProblem(EmitErrorFn emitError,
                                             const ScheduleAttr &schedule,
                                             const EncodingAttr &encoding,
                                             Type element) const {
  if (!isa<Float16Type, BFloat16Type>(element))
    return emitError() << "has a schedule with product = wgmma_expand, which "
                          "multiplies f16 or bf16, but operands of "
                       << element;
  if (encoding.isFree())
    return emitError() << "has a schedule with product = wgmma_expand, which "
                          "multiplies n:m weights, but "
                       << encoding << "; legal is product = dot";
  int64_t accumulators = schedule.getTileTokens() * schedule.getTileOutputs() /
                         (getOutputWarps() * 32);
  int64_t registers = getMostRegisters(schedule);
  if (accumulators + kLeastWorkingRegisters > registers)
    return emitError() << "has a schedule with " << schedule.getBlockThreads()
                       << " threads, whose wgmma_expand warps have at most "
                       << registers << " registers a thread, fewer than their "
                       << accumulators << " accumulators and "
                       << kLeastWorkingRegisters
                       << " others; legal are smaller tiles, or fewer warps";
  // Products of a share begin with lines of activations.
  constexpr int64_t unit = 64;
  BitmapTile tile =
      BitmapTile::get(encoding, element.getIntOrFloatBitWidth() / 8);
  int64_t tiles = schedule.getTileRows() / tile.values;
  if (getShares() > 1 &&
      (tiles % getShares() != 0 || tiles / getShares() * tile.rows % unit != 0))
    return emitError() << "has a schedule with K steps of " << tiles
                       << " tiles of " << tile.rows
                       << " rows, which cannot be divided into " << getShares()
                       << " shares of a multiple of " << unit << " rows";
  if (!getSegments())
    return success();
  Segment segment = Segment::get(encoding, tile);
  constexpr int64_t mostRows = 256;
  int64_t stepRows = Segment::kLanes * getShares() * segment.rows;
  if (stepRows > mostRows)
    return emitError() << "has a schedule with segments = true, whose K steps "
                          "have at least "
                       << stepRows << " rows of " << encoding << ", "
                       << segment.rows << " for each of " << Segment::kLanes
                       << " lanes of " << getShares()
                       << " shares, where at most " << mostRows
                       << " can be copied; legal is segments = false";
  int64_t groups = Segment::kLanes * getShares() / segment.perTile;
  if (schedule.getTileRows() % (groups * tile.values) != 0)
    return emitError() << "has a schedule with segments = true and K steps of "
                       << schedule.getTileRows() << " kept rows, which the "
                       << Segment::kLanes << " lanes of each of " << getShares()
                       << " shares do not divide; legal are multiples of "
                       << groups * tile.values;
  return success();
}

bool WgmmaExpandAttr::dividesContraction() const { return getShares() > 1; }
int64_t WgmmaExpandAttr::getNumShares() const { return getShares(); }
bool WgmmaExpandAttr::readsBitmaps() const { return true; }
bool WgmmaExpandAttr::readsSegments() const { return getSegments(); }
bool WgmmaExpandAttr::readsSwizzledBlocks() const { return true; }
bool WgmmaExpandAttr::readsTokenMajorWindows() const { return true; }
bool WgmmaExpandAttr::staysInFlight() const { return true; }
/// One of their threads starts copies, and none holds any data.
bool WgmmaExpandAttr::hasLeanProducers(const ScheduleAttr &) const {
  return true;
}
