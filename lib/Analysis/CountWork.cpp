//===- CountWork.cpp - what a schedule does -------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Analysis/CountWork.h"

#include "nm_sparse/Analysis/ProductCost.h"
#include "nm_sparse/Chip/Occupancy.h"
#include "nm_sparse/Dialect/NMTile/IR/TileLayout.h"
#include "llvm/Support/MathExtras.h"
#include <algorithm>
#include <cmath>

using namespace mlir;
using namespace mlir::nm_sparse;

bool nm_sparse::hasTokenRows(const MatmulProblem &problem,
                             ScheduleAttr schedule) {
  return !problem.xFeatureMajor &&
         keepsTokensAsRows(schedule, problem.encoding, problem.elementBytes);
}

bool MatmulProblem::readsInPlace(ScheduleAttr schedule) const {
  // Threads transpose no patches.
  return !patchShare || schedule.getOperandTiles().isInCode() ||
         (schedule.getTransfers().getX().readsPatches(patches, image) &&
          (xFeatureMajor || hasTokenRows(*this, schedule)));
}

int64_t nm_sparse::countCtas(const MatmulProblem &problem,
                             ScheduleAttr schedule) {
  return problem.batch *
         llvm::divideCeil(problem.tokens, schedule.getTileTokens()) *
         llvm::divideCeil(problem.outputs, schedule.getTileOutputs()) *
         schedule.getSplitK();
}

/// A CTA has an SM to itself: warps that pass registers on do.
static bool hasSM(ScheduleAttr schedule, int64_t sharedBytes,
                  const Chip &chip) {
  return getRegisterShares(schedule.getNumThreads(),
                           schedule.getProducers() * 32, chip) ||
         schedule.isPersistent() ||
         getCtasBySharedMemory(sharedBytes, chip) == 1;
}

int64_t nm_sparse::getResidentCtas(ScheduleAttr schedule, int64_t sharedBytes,
                                   const Chip &chip) {
  if (hasSM(schedule, sharedBytes, chip))
    return 1;
  return getCtasPerSM(sharedBytes, schedule.getBlockThreads(),
                      schedule.getTileTokens() * schedule.getTileOutputs() /
                          schedule.getNumThreads(),
                      chip);
}

double nm_sparse::countWeightBytes(const MatmulProblem &problem,
                                   ScheduleAttr schedule) {
  if (auto code = getCost(schedule).countCodeBytes(problem, schedule))
    return *code;
  auto outputs = double(problem.outputs);
  double stored = problem.getStoredRows() * outputs;
  double bytes = stored * double(problem.elementBytes);
  const EncodingAttr &encoding = problem.encoding;
  if (!problem.bitmap) {
    double bits = problem.raggedRows ? 32 : encoding.getIndexBitWidth();
    bytes += stored * bits / 8.0 /
             double(encoding.getBlockK() * encoding.getBlockN());
  } else if (problem.bitmap->isFree) {
    // A bit for each row, and words that say where segments begin.
    bytes += double(problem.getDenseRows()) * outputs *
             double(4 * problem.bitmap->words) / double(problem.bitmap->rows);
    bytes += stored * 4.0 * BitmapTile::kSegmentWords /
             double(BitmapTile::kSegmentValues * BitmapTile::kOutputs);
  } else {
    bytes += stored * double(4 * problem.bitmap->words) /
             double(problem.bitmap->values);
  }
  return double(problem.batch) * bytes;
}

double nm_sparse::getValueBytes(const MatmulProblem &problem) {
  auto bytes = double(problem.elementBytes);
  if (problem.bitmap)
    bytes +=
        4.0 * double(problem.bitmap->words) / double(problem.bitmap->values);
  return bytes;
}

std::pair<double, int64_t>
nm_sparse::countBitmapSteps(const MatmulProblem &problem, ScheduleAttr schedule,
                            int64_t rows) {
  const BitmapTile &tile = *problem.bitmap;
  int64_t inStep = llvm::divideCeil(schedule.getTileRows(), tile.values);
  int64_t tiles = llvm::divideCeil(rows, tile.rows);
  return {double(llvm::divideCeil(llvm::divideCeil(tiles, inStep),
                                  schedule.getSplitK())),
          inStep};
}

int64_t nm_sparse::countBulkTokens(const MatmulProblem &problem,
                                   int64_t tileTokens) {
  // Lines of shared memory have 64 tokens, and rows in device memory begin at
  // multiples of 16 bytes.
  constexpr int64_t lineTokens = 64, rowTokens = 8;
  if (problem.xFeatureMajor)
    return std::min<int64_t>(llvm::alignTo(tileTokens, lineTokens),
                             llvm::alignTo(problem.tokens, rowTokens));
  return std::min(tileTokens, problem.tokens);
}

/// Bytes of x that are read from device memory.
static double countActivations(const MatmulProblem &problem,
                               ScheduleAttr schedule) {
  double share =
      problem.readsInPlace(schedule) ? problem.patchShare.value_or(1) : 1;
  // Few panels do not name all rows of x, which are whole lines where tokens
  // are neighbours.
  if (schedule.gathersX() && problem.xFeatureMajor)
    share *= 1 - std::pow(1 - problem.encoding.getDensity(),
                          double(llvm::divideCeil(
                              problem.outputs, problem.encoding.getBlockN())));
  return share * double(problem.batch) * double(problem.tokens) *
         double(problem.getDenseRows() * problem.elementBytes);
}

Work nm_sparse::countWhole(const MatmulProblem &problem, ScheduleAttr schedule,
                           int64_t resident, const Chip &chip) {
  const Epilogue &epilogue = problem.epilogue;
  double tokens = double(std::min(schedule.getTileTokens(), problem.tokens));
  double elements = tokens * double(schedule.getTileOutputs());
  Work work;
  work.ctas = double(countCtas(problem, schedule));
  work.resident = double(resident);
  work.multiprocessors = double(chip.multiprocessors);
  work.clock = chip.clock;
  work.streamK = schedule.isStreamK();
  work.stages = double(schedule.getStages());
  // Counters of parts are set to zero between two kernels; clusters have none.
  bool hasCounters = schedule.sharesTiles() && !schedule.splitsInCluster();
  work.overlaps = chip.hasDependentLaunch() && !hasCounters &&
                  hasSM(schedule, getSharedBytes(problem, schedule), chip);

  work.written = getL2Seconds(elements * double(epilogue.writtenBytes), chip);
  work.read = getL2Seconds(elements * double(epilogue.readBytes), chip);
  // 128 lanes of an SM issue an instruction each.
  work.applied =
      elements * double(epilogue.instructions) / (128.0 * chip.clock);
  if (epilogue.readBytes > 0 && epilogue.alignment < 16)
    work.scattered =
        elements * double(epilogue.readBytes) / double(epilogue.alignment);

  double results = double(problem.batch) * double(problem.tokens) *
                   double(problem.outputs) *
                   double(epilogue.writtenBytes + epilogue.readBytes);
  work.dram = (countWeightBytes(problem, schedule) +
               countActivations(problem, schedule) + results) /
              chip.dramBytes;
  work.parts = double(schedule.getSplitK());
  if (schedule.splitsInCluster()) {
    // Each CTA of a cluster writes a part of the tile.
    work.met = elements;
    work.written /= work.parts;
  } else if (work.parts > 1) {
    work.exchanged = elements;
  }
  return work;
}
