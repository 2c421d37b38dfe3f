//===- SharedBytes.cpp - shared memory of a schedule ----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Analysis/CountWork.h"

#include "nm_sparse/Dialect/NMTile/IR/ClusterPieces.h"
#include "nm_sparse/Dialect/NMTile/IR/TileLayout.h"
#include "llvm/Support/MathExtras.h"
#include <algorithm>

using namespace mlir;
using namespace mlir::nm_sparse;

/// Bytes for what the CTAs of a tile exchange, beside tiles of `tiles` bytes: a
/// word that says who is the last, or their shares of the sum, which lie where
/// the tiles were if there is room.
static int64_t getExchangeBytes(const MatmulProblem &problem,
                                ScheduleAttr schedule, int64_t tiles) {
  if (schedule.splitsInCluster()) {
    int64_t bytes = ClusterPieces(schedule, problem.yFeatureMajor).getBytes();
    return bytes <= tiles ? 0 : bytes;
  }
  int64_t words = schedule.isStreamK() ? 2 : schedule.getSplitK() > 1 ? 1 : 0;
  return words * int64_t(llvm::alignTo(4, kTileAlignment));
}

/// As getSharedBytes, of a weight that is stored as bitmaps.
static int64_t getBitmapSharedBytes(const MatmulProblem &problem,
                                    ScheduleAttr schedule, Type element) {
  BitmapTile tile = *problem.bitmap;
  int64_t stepTiles = llvm::divideCeil(schedule.getTileRows(), tile.values);
  int64_t rows = stepTiles * tile.rows, columns = schedule.getTileTokens();
  int64_t positions = 0;
  if (schedule.gathersX()) {
    const EncodingAttr &encoding = problem.encoding;
    int64_t panels = schedule.getTilePanels(encoding);
    rows *= panels;
    positions =
        llvm::alignTo(problem.windows, schedule.getTileWindows(encoding)) *
        encoding.getN() * panels * (encoding.getIndexBitWidth() / 8);
  } else if (!problem.xFeatureMajor) {
    std::swap(rows, columns);
  }
  // Boxes are whole lines.
  int64_t x =
      rows * (schedule.hasBulkBits()
                  ? int64_t(llvm::alignTo(columns, kSwizzledLineBytes /
                                                       problem.elementBytes))
                  : getPaddedColumns(element, columns, /*isTransposed=*/false));
  int64_t lanes = schedule.getTileOutputs() * stepTiles;
  int64_t stages = schedule.getStages();
  auto align = [](int64_t bytes) {
    return int64_t(llvm::alignTo(bytes, kTileAlignment));
  };
  int64_t shares = schedule.getSumOwners(problem.encoding).shares;
  int64_t sums = shares * schedule.getTileTokens() * schedule.getTileOutputs();
  // The tiles, shares of the sum, two mbarriers for each stage, and what says
  // who is the last of those who share a tile.
  int64_t tiles = align(stages * x * problem.elementBytes) +
                  align(stages * lanes * tile.values * problem.elementBytes);
  return tiles + align(stages * lanes * tile.words * 4) + align(positions) +
         (shares > 1 ? align(sums * 4) : 0) +
         (schedule.getProducers() > 0 ? 2 * align(stages * 8) : 0) +
         getExchangeBytes(problem, schedule, tiles);
}

int64_t nm_sparse::getSharedBytes(const MatmulProblem &problem,
                                  ScheduleAttr schedule) {
  if (schedule.isDirect()) {
    // The shares of the sum that are handed over.
    SumOwners owners = schedule.getSumOwners(problem.encoding);
    bool handsOver =
        owners.dividesContraction ||
        (owners.shares > 1 && schedule.getOperandTiles().isInCode());
    int64_t exchanged = schedule.splitsInCluster()
                            ? getExchangeBytes(problem, schedule, /*tiles=*/0)
                            : 0;
    return exchanged + (handsOver ? owners.shares * schedule.getTileTokens() *
                                        schedule.getTileOutputs() * 4
                                  : 0);
  }
  EncodingAttr encoding = problem.encoding;
  Builder b(schedule.getContext());
  Type element = problem.elementBytes == 1   ? Type(b.getI8Type())
                 : problem.elementBytes == 2 ? Type(b.getF16Type())
                                             : Type(b.getF32Type());
  Type position = b.getIntegerType(encoding.getIndexBitWidth());
  int64_t panels = schedule.getTilePanels(encoding);
  // Thousands of schedules are compared, so without making types of buffers.
  auto countBytes = [](int64_t elements, Type type) {
    return getAllocatedBytes(elements, type);
  };
  auto countRing = [&](int64_t rows, int64_t columns, Type type,
                       bool isTransposed = false) {
    return countBytes(schedule.getStages() * rows *
                          getPaddedColumns(type, columns, isTransposed),
                      type);
  };

  if (problem.bitmap)
    return getBitmapSharedBytes(problem, schedule, element);
  auto [xRows, xColumns] = getXTile(problem, schedule);
  bool isTransposed =
      !problem.xFeatureMajor && !hasTokenRows(problem, schedule);
  int64_t stepRows = schedule.getStepRows();
  int64_t outputs = schedule.getTileOutputs();
  int64_t tiles = countRing(xRows, xColumns, element, isTransposed);
  int64_t bytes = 0;
  if (schedule.getTransfers().getValues().getUse().isResident)
    bytes += countBytes(
        llvm::alignTo(problem.windows * encoding.getKeptRows(), stepRows) *
            outputs,
        element);
  else
    tiles += countRing(stepRows, outputs, element);
  bytes += tiles + getExchangeBytes(problem, schedule, tiles);
  // The mbarriers of --nm-sparse-specialize-warps.
  if (schedule.getProducers() > 0)
    bytes += 2 * countBytes(schedule.getStages(), b.getI64Type());
  if (problem.raggedRows)
    return bytes;
  if (schedule.hasRowTable()) {
    RowTable table = getRowTable(schedule, encoding, problem.windows);
    bytes += countBytes(table.rows * panels, b.getIntegerType(table.bits));
  } else if (schedule.hasResidentIndex()) {
    int64_t windows =
        llvm::alignTo(problem.windows, schedule.getTileWindows(encoding));
    bytes += countBytes(windows * encoding.getN() * panels, position);
  } else if (!schedule.gathersX()) {
    bytes += countRing(schedule.getTileWindows(encoding) * encoding.getN(),
                       panels, position);
  }
  return bytes;
}
