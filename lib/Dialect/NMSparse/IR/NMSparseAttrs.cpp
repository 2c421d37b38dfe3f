//===- NMSparseAttrs.cpp - schedule ---------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Dialect/NMSparse/IR/NMSparse.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::nm_sparse;

//===----------------------------------------------------------------------===//
// ScheduleAttr
//===----------------------------------------------------------------------===//

/// Accumulators of a thread that leave room for the rest of its state in the
/// 255 registers that it may have.
static constexpr int64_t kMostAccumulators = 192;

/// What the products of a warpgroup need of a schedule.
static LogicalResult
verifyWarpgroups(function_ref<InFlightDiagnostic()> emitError,
                 ArrayRef<int64_t> tile, ArrayRef<int64_t> warps,
                 OperandMode operands) {
  if (warps[1] % 4 != 0)
    return emitError() << "wgmma warps along outputs must be a multiple of the "
                          "4 of a warpgroup, got "
                       << warps[1];
  int64_t warpgroups = warps[1] / 4;
  if (tile[1] % (warpgroups * 64) != 0)
    return emitError() << "a tile of " << tile[1] << " outputs over "
                       << warpgroups
                       << " warpgroups must be a multiple of 64 outputs for "
                          "each";
  if (tile[0] % (warps[0] * 64) != 0 || tile[0] / warps[0] > 256)
    return emitError() << "a tile of " << tile[0] << " tokens over " << warps[0]
                       << " warpgroups must be 64, 128, 192 or 256 tokens for "
                          "each";
  int64_t accumulators = tile[0] * tile[1] / (warps[0] * warps[1] * 32);
  if (accumulators > kMostAccumulators)
    return emitError() << "a tile of " << tile[0] << " x " << tile[1]
                       << " over " << warps[0] << " x " << warps[1]
                       << " wgmma warps has " << accumulators
                       << " accumulators in each thread, more than the "
                       << kMostAccumulators << " that registers hold";
  if (operands != OperandMode::Packed)
    return emitError() << "a wgmma schedule needs operands = packed: warpgroup "
                          "products cannot select rows of whole windows";
  return success();
}

LogicalResult ScheduleAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                   ScheduleKind kind, ArrayRef<int64_t> tile,
                                   ArrayRef<int64_t> warps, int64_t stages,
                                   int64_t splitK, OperandMode operands,
                                   IndexMode, int64_t producers,
                                   bool persistent, bool tma, bool streamK) {
  if (tile.size() != 3 || llvm::any_of(tile, [](int64_t v) { return v < 1; }))
    return emitError() << "tile must be three positive extents, [tokens, "
                          "outputs, windows]";
  if (llvm::any_of(tile, [](int64_t v) { return v > 4096; }))
    return emitError() << "tile extents must be at most 4096, got [" << tile
                       << "]";
  if (warps.size() != 2 || llvm::any_of(warps, [](int64_t v) { return v < 1; }))
    return emitError() << "warps must be two positive counts, [tokens, "
                          "outputs]";
  if (warps[0] > 32 || warps[1] > 32 || warps[0] * warps[1] > 32)
    return emitError() << "a CTA of " << warps[0] << " x " << warps[1]
                       << " warps is larger than the 32 allowed";
  if (kind == ScheduleKind::Wgmma &&
      failed(verifyWarpgroups(emitError, tile, warps, operands)))
    return failure();
  // Lanes of a simt warp lie 8 x 4 over its tile; mma.sync makes 16 x 8.
  int64_t tokenUnit = kind == ScheduleKind::Simt ? 8 : 16;
  int64_t outputUnit = kind == ScheduleKind::Simt ? 4 : 8;
  if (tile[0] % (warps[0] * tokenUnit) || tile[1] % (warps[1] * outputUnit))
    return emitError() << "a tile of " << tile[0] << " x " << tile[1]
                       << " over " << warps[0] << " x " << warps[1] << " "
                       << stringifyScheduleKind(kind)
                       << " warps must be a multiple of "
                       << warps[0] * tokenUnit << " x "
                       << warps[1] * outputUnit;
  if (stages < 2 || stages > 8)
    return emitError() << "stages must be in [2, 8], got " << stages;
  if (splitK < 1 || splitK > 64)
    return emitError() << "split_k must be in [1, 64], got " << splitK;
  if (producers < 0 || producers + warps[0] * warps[1] > 32)
    return emitError() << "producers must be in [0, "
                       << 32 - warps[0] * warps[1] << "] beside " << warps[0]
                       << " x " << warps[1] << " warps, got " << producers;
  if (kind == ScheduleKind::Wgmma && producers % 4 != 0)
    return emitError() << "producers beside wgmma warps must be a multiple of "
                          "the 4 of a warpgroup, got "
                       << producers;
  if (persistent && producers == 0)
    return emitError()
           << "persistent CTAs need producers, which fetch the next "
              "tile; got producers = 0";
  if (tma && (kind == ScheduleKind::Simt || producers == 0))
    return emitError() << "tma copies values for tensor cores, on behalf of "
                          "producers; got kind "
                       << stringifyScheduleKind(kind)
                       << ", producers = " << producers;
  if (streamK && (!persistent || splitK > 1))
    return emitError() << "stream_k = true needs persistent = true, with "
                          "producers, and split_k = 1; got persistent = "
                       << (persistent ? "true" : "false")
                       << ", producers = " << producers
                       << ", split_k = " << splitK;
  return success();
}

int64_t ScheduleAttr::getStepRows(EncodingAttr encoding) const {
  int64_t rows = getTileWindows() * encoding.getKeptRows();
  return isTensorCores() ? llvm::alignTo(rows, 16) : rows;
}

bool ScheduleAttr::isPanelAligned(EncodingAttr encoding) const {
  return encoding.getBlockN() % getTileOutputs() == 0 ||
         getTileOutputs() % encoding.getBlockN() == 0;
}

int64_t ScheduleAttr::getTilePanels(EncodingAttr encoding) const {
  int64_t panels = llvm::divideCeil(getTileOutputs(), encoding.getBlockN());
  return isPanelAligned(encoding) ? panels : panels + 1;
}

bool ScheduleAttr::isProductOfTokensByPanel(EncodingAttr encoding) const {
  return getKind() == ScheduleKind::Wgmma && getSplitK() == 1 &&
         getWarps()[0] > 1 && getWarpgroupTokens() == 64 &&
         getWarpgroupOutputs() == 256 && encoding.getBlockN() % 256 == 0;
}
