//===- CountTiles.cpp - the work of CTAs with tiles in shared memory ------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Analysis/CountWork.h"

#include "nm_sparse/Analysis/ProductCost.h"
#include "llvm/Support/MathExtras.h"
#include <algorithm>
#include <cmath>
#include <numeric>

using namespace mlir;
using namespace mlir::nm_sparse;

std::pair<int64_t, int64_t> nm_sparse::getXTile(const MatmulProblem &problem,
                                                ScheduleAttr schedule) {
  EncodingAttr encoding = problem.encoding;
  int64_t tokens = schedule.getTileTokens();
  int64_t rows =
      schedule.gathersX()
          ? schedule.getStepRows() * schedule.getTilePanels(encoding)
          : schedule.getTileWindows(encoding) * encoding.getWindowRows();
  if (hasTokenRows(problem, schedule))
    return {tokens, rows};
  return {rows, tokens};
}

double nm_sparse::countSingles(const MatmulProblem &problem,
                               ScheduleAttr schedule, double elements) {
  // Copies have at least 4 bytes: smaller elements pass through registers,
  // which takes ten times as long.
  constexpr double throughRegisters = 10;
  bool isWhole = problem.xFeatureMajor || hasTokenRows(problem, schedule);
  if (isWhole && problem.xAlignment >= 16)
    return 0;
  if (problem.elementBytes >= 4)
    return elements;
  // Warps transpose what was copied whole as they read it.
  if (!isWhole && !schedule.gathersX())
    return 0;
  return throughRegisters * elements;
}

namespace {
/// Counts one K step, and the index of a tile.
class TileCounter {
public:
  TileCounter(const MatmulProblem &problem, ScheduleAttr schedule,
              const Chip &chip)
      : problem(problem), encoding(problem.encoding), schedule(schedule),
        chip(chip), tokens(schedule.getTileTokens()),
        present(std::min(tokens, problem.tokens)) {
    auto [rows, columns] = getXTile(problem, schedule);
    xBytes = double(rows) * double(columns) * double(problem.elementBytes);
    weightBytes = double(schedule.getStepRows()) *
                  double(schedule.getTileOutputs()) * getValueBytes(problem);
  }

  void count(Work &work);

private:
  double getL2Bytes() const;
  double getPieces() const;
  double countIndex() const;

  const MatmulProblem &problem;
  EncodingAttr encoding;
  ScheduleAttr schedule;
  const Chip &chip;
  /// Tokens of a tile, and those of them that there are.
  int64_t tokens, present;
  /// Bytes of the tiles of one K step.
  double xBytes, weightBytes;
};
} // namespace

/// Bytes of x that one K step asks L2 for.
double TileCounter::getL2Bytes() const {
  double bytes = xBytes;
  // A gather of single elements reads each sector of 32 bytes that has one:
  // with the rows of several panels, nearly all. One of 16 bytes reads two.
  if (schedule.gathersX() && hasTokenRows(problem, schedule))
    bytes *= std::max(
        1.0, 32.0 / double(encoding.getBlockK() * problem.elementBytes));
  else if (schedule.gathersX() && !problem.xFeatureMajor)
    bytes = double(schedule.getTileRows() * encoding.getWindowRows() * tokens) /
            double(encoding.getKeptRows()) * double(problem.elementBytes);
  // Two copies of 16 bytes that share a sector are one request of L2. From the
  // middle of a sector on, each is one of its own.
  if (problem.xAlignment < 32)
    bytes += xBytes;
  // Tokens that do not exist are not read, but rows of few tokens are read in
  // whole sectors.
  double rowBytes = double(present * problem.elementBytes);
  if (problem.xFeatureMajor)
    rowBytes = std::max(32.0, rowBytes);
  return bytes *
         std::min(1.0, rowBytes / double(tokens * problem.elementBytes));
}

/// Seconds of pieces of less than 64 bytes, of which an SM of an H200 gets one
/// in 0.94 ns (bench/results/h200-boxes.json), in which L2 delivers 51 bytes at
/// the rate of other copies.
double TileCounter::getPieces() const {
  auto block = double(encoding.getBlockK() * problem.elementBytes);
  if (!schedule.gathersX() || !hasTokenRows(problem, schedule) || block >= 64)
    return 0;
  // Neighbours of less than 32 bytes that are both kept are one piece.
  double joined = block < 32
                      ? 0.0
                      : double(encoding.getN() - 1) /
                            double(std::max<int64_t>(1, encoding.getM() - 1));
  return getL2Seconds(xBytes / block * (1.0 - joined / 2.0) * 51.0, chip);
}

/// Copies of a CTA of the rows of its panels, of all of the contraction where
/// they are resident. They lie side by side in rows of all panels: a single
/// panel's are bytes that lie apart, each of which is a copy.
double TileCounter::countIndex() const {
  // The bits of a bitmap come with the values.
  if (problem.bitmap)
    return 0;
  int64_t kept =
      problem.windows * encoding.getKeptRows() / encoding.getBlockK();
  int64_t panels = schedule.getTilePanels(encoding);
  int64_t all = llvm::divideCeil(problem.outputs, encoding.getBlockN());
  int64_t together = std::gcd(std::gcd(panels, all), int64_t(16));
  double copies = double(kept) * double(panels) / double(together);
  if (!schedule.hasResidentIndex() && !schedule.hasRowTable())
    copies /= double(schedule.getSplitK());
  return copies;
}

void TileCounter::count(Work &work) {
  int64_t rows = problem.windows * encoding.getKeptRows();
  if (problem.raggedRows)
    rows = llvm::alignTo(rows, problem.raggedRows);
  work.steps = double(llvm::divideCeil(
      llvm::divideCeil(rows, schedule.getTileRows()), schedule.getSplitK()));
  work.x = getL2Seconds(getL2Bytes(), chip);
  work.weight = getL2Seconds(weightBytes, chip);
  work.zeros =
      getL2Seconds(xBytes * double(tokens - present) / double(tokens), chip);
  work.pieces = getPieces();
  work.singles = countSingles(problem, schedule,
                              xBytes / double(problem.elementBytes) *
                                  double(present) / double(tokens));
  int64_t copiers = schedule.getProducers() > 0 ? schedule.getProducers() * 32
                                                : schedule.getNumThreads();
  double copied = schedule.hasBulkValues() ? xBytes : xBytes + weightBytes;
  work.copies = copied / 16.0 / double(copiers);
  work.index = countIndex();
  // Warps that copy and multiply look up the rows of ragged panels in between,
  // and those of the first steps one after the other.
  constexpr double firstSteps = 8;
  if (problem.raggedRows && schedule.getProducers() == 0)
    work.waits = 1 + firstSteps / work.steps;
}

Work nm_sparse::countTiles(const MatmulProblem &problem, ScheduleAttr schedule,
                           const Chip &chip, double flops, double sharedReads) {
  int64_t resident =
      getResidentCtas(schedule, getSharedBytes(problem, schedule), chip);
  Work work = countWhole(problem, schedule, resident, chip);
  TileCounter(problem, schedule, chip).count(work);
  constexpr double schedulers = 4;
  double ceiling = getCost(schedule).getCeiling(chip).flops;
  work.math = getMathSeconds(flops, ceiling, chip);
  // Each scheduler has a part of the units to itself.
  work.ownMath = work.math * schedulers /
                 std::max(schedulers, double(schedule.getNumThreads()) / 32.0);
  auto [xRows, xColumns] = getXTile(problem, schedule);
  double copied = double(xRows * xColumns * problem.elementBytes) +
                  double(schedule.getStepRows()) *
                      double(schedule.getTileOutputs()) *
                      getValueBytes(problem);
  work.shared = getSharedSeconds(sharedReads + copied, chip);
  return work;
}
