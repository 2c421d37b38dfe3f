//===- DotCost.cpp - what dot costs ---------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Device memory bounds a product of one token, the instructions of the values
// one of several, and where there are few CTAs, what each warp does one after
// the other.
//
//===----------------------------------------------------------------------===//

#include "../ProductAttrs.h"
#include "DotRegisters.h"
#include "nm_sparse/Analysis/CountWork.h"
#include "nm_sparse/Analysis/ProductCost.h"
#include "nm_sparse/Analysis/ScheduleEnumerator.h"
#include "llvm/Support/MathExtras.h"
#include <cmath>

using namespace mlir;
using namespace mlir::nm_sparse;

/// Warps of an SM, its registers, and warps that issue at once.
static constexpr int64_t kWarpsPerSM = 64, kRegistersPerSM = 65536;
static constexpr double kSchedulers = 4;
/// Registers of a kernel of free elements.
static constexpr int64_t kFreeRegisters = 64;
/// Rows of a K step of free elements, by ScheduleAttr.
static constexpr int64_t kMostRows = 1 << 20;

/// Instructions of a tile, and of a value, beside those of each token; those
/// more in windows that are longer than a word of bits, of a free value, and of
/// each row of the dense weight where lanes share no sectors of activations.
static constexpr double kTile = 24, kValue = 3, kToken = 4, kLongWindow = 5,
                        kFree = 8, kApartRow = 8;
/// Where tokens are neighbours and rows of them longer than so many bytes,
/// lanes that read some tokens of many rows share no sectors.
static constexpr int64_t kApartBytes = 64;
/// Instructions of a value that wait for each other, beside one of each token;
/// and more of elements of 8 bits, which are read and converted one by one.
static constexpr double kChained = 10, kChainedBytes = 25;

/// Values of a lane, of all tiles that it reads at once, that are proposed.
/// More than two tiles of few values take 1.2 times as long as two.
static constexpr int64_t kFewValues = 16, kMostValues = 64;

/// CTAs that an SM holds.
static int64_t getResidentCtas(ScheduleAttr schedule, int64_t registers) {
  int64_t warps = std::min(kWarpsPerSM, kRegistersPerSM / (registers * 32));
  return std::max<int64_t>(1, warps / schedule.getProduct().getNumWarps());
}

static int64_t getRegisters(BitmapTile tile, ScheduleAttr schedule) {
  if (tile.isFree)
    return kFreeRegisters;
  return getDotRegisters(schedule.getTileTokens(),
                         schedule.getProduct().getNumWarps(),
                         schedule.getTileRows());
}

/// Instructions for one of `values` of all lanes of a warp in a tile, with all
/// tokens.
static double countInstructions(const MatmulProblem &problem, double values,
                                double tokens) {
  const BitmapTile &tile = *problem.bitmap;
  double instructions = kValue + kToken * tokens;
  if (tile.isFree)
    instructions += kFree;
  else if (problem.encoding.getWindowRows() > BitmapTile::kOutputs)
    instructions += kLongWindow;
  if (problem.xFeatureMajor &&
      problem.tokens * problem.elementBytes > kApartBytes)
    instructions += kApartRow * double(tile.rows) / values;
  return instructions;
}

/// Values that a lane multiplies of a tile.
static double countValues(const MatmulProblem &problem) {
  const BitmapTile &tile = *problem.bitmap;
  return tile.isFree ? problem.getStoredRows() /
                           double(problem.getDenseRows()) * double(tile.rows)
                     : double(tile.values);
}

/// Values of a lane in each of the `steps` of a CTA's tile.
static double countStepValues(BitmapTile tile, double values, int64_t tiles,
                              int64_t steps, const ScheduleAttr &schedule) {
  int64_t warps = schedule.getProduct().getNumWarps();
  // A step has as many tiles for each warp, also where there are fewer.
  if (!tile.isFree)
    return double(
               llvm::divideCeil(schedule.getTileRows() / tile.values, warps)) *
           values;
  // Whole segments, of which the warps of all steps take every so many.
  double segments = double(tiles) * values / BitmapTile::kSegmentValues;
  return BitmapTile::kSegmentValues *
         std::ceil(segments / double(steps * warps));
}

static Work countDots(const MatmulProblem &problem, ScheduleAttr schedule,
                      const Chip &chip) {
  const BitmapTile &tile = *problem.bitmap;
  Work work =
      countWhole(problem, schedule,
                 getResidentCtas(schedule, getRegisters(tile, schedule)), chip);
  auto [steps, stepTiles] =
      countBitmapSteps(problem, schedule, problem.getDenseRows());
  work.steps = steps;
  work.stages = 0;
  auto tokens = double(schedule.getTileTokens());
  auto warps = double(schedule.getProduct().getNumWarps());
  int64_t tiles = llvm::divideCeil(problem.getDenseRows(), tile.rows);
  double values = countValues(problem);
  double stepValues = countStepValues(
      tile, values, tiles, llvm::divideCeil(tiles, stepTiles), schedule);
  work.issued = warps / kSchedulers * stepValues *
                (countInstructions(problem, values, tokens) + kTile / values);
  // A warp reads its tiles of a step at once. Of free elements, it reads bits
  // first, then where segments begin, then values.
  work.waits =
      tile.isFree ? 3.0 * std::ceil(stepValues / values) : stepValues / values;
  double chained = kChained + (problem.elementBytes == 1 ? kChainedBytes : 0);
  work.links = stepValues * (chained + tokens);
  work.sums = warps * tokens;
  work.x = getL2Seconds(
      tokens * double(stepTiles * tile.rows * problem.elementBytes), chip);
  // Each pass over the weight reads all of it anew, from L2 at best.
  int64_t passes = llvm::divideCeil(problem.tokens, schedule.getTileTokens());
  work.again =
      double(passes - 1) * countWeightBytes(problem, schedule) / chip.l2Bytes;
  return work;
}

namespace {
struct DotCost : public ProductCostInterface::ExternalModel<DotCost, DotAttr> {
  MathCeiling getCeiling(Attribute, const Chip &chip) const {
    return {chip.ffma, "instructions"};
  }
  MathUse getMathUse(Attribute, const MatmulProblem &problem) const {
    return {MathUnit::Lanes, problem.getStoredRows()};
  }
  StringRef getFamily(Attribute, const ScheduleAttr &) const { return "dot"; }
  Work countWork(Attribute, const MatmulProblem &problem,
                 const ScheduleAttr &schedule, const Chip &chip) const {
    return countDots(problem, schedule, chip);
  }
};
} // namespace

static void add(ScheduleEnumerator &to, int64_t tokens, int64_t rows,
                int64_t warps, int64_t parts) {
  MLIRContext *context = to.encoding.getContext();
  auto transfers =
      TransfersAttr::getNamed(context, "direct", "direct", "direct");
  if (!transfers)
    return;
  auto schedule = ScheduleAttr::get(
      context, {tokens, BitmapTile::kOutputs, rows},
      DotAttr::get(context, warps), transfers, SequentialAttr::get(context),
      FlatGridAttr::get(context, parts));
  to.add(schedule, predict(to.problem, schedule, to.chip));
}

/// Returns true if the code for a tile takes more than a few seconds to
/// compile: each value has its own, and where windows are longer than a word of
/// bits a choice among the words that it may lie in.
static bool isTooLong(const EncodingAttr &encoding, const BitmapTile &tile) {
  constexpr int64_t mostChoices = 16384, wordBits = 32;
  const SparsityLevel &level = encoding.getInnermost();
  if (tile.isFree || level.getWindowRows() <= wordBits)
    return false;
  int64_t words = (level.getWindowRows() - level.getKeptRows()) / wordBits + 1;
  return tile.values * words > mostChoices;
}

/// Each number of tokens, of warps, of tiles that a warp reads at once, and of
/// CTAs that share a tile. Of free elements, a CTA has a single K step.
static void propose(ScheduleEnumerator &to) {
  if (!to.problem.bitmap)
    return;
  BitmapTile tile = *to.problem.bitmap;
  if (isTooLong(to.encoding, tile))
    return;
  int64_t tiles = llvm::divideCeil(to.problem.getDenseRows(), tile.rows);
  for (int64_t tokens : {1, 2, 4, 8}) {
    if (tokens > 1 && tokens / 2 >= to.problem.tokens)
      break;
    for (int64_t warps : {16, 8, 32, 4}) {
      for (int64_t parts : {1, 2, 4, 8}) {
        int64_t rows = llvm::divideCeil(tiles, parts) * tile.rows;
        if (tile.isFree && parts <= tiles && rows <= kMostRows)
          add(to, tokens, rows, warps, parts);
      }
      for (int64_t atOnce : {1, 2, 4})
        for (int64_t parts : {1, 2, 4, 8}) {
          int64_t rows = warps * atOnce * tile.values;
          if (tile.isFree || rows > 4096 ||
              (atOnce > 1 && atOnce * tile.values > kMostValues) ||
              (atOnce > 2 && tile.values < kFewValues))
            continue;
          add(to, tokens, rows, warps, parts);
        }
    }
  }
}

void nm_sparse::registerDotCost(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, NMTileDialect *dialect) {
    DotAttr::attachInterface<DotCost>(*context);
    addScheduleProposer(*dialect, propose);
  });
}
