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
#include "nm_sparse/Analysis/ProductCost.h"
#include "nm_sparse/Analysis/ScheduleEnumerator.h"
#include "llvm/Support/MathExtras.h"
#include <cmath>

using namespace mlir;
using namespace mlir::nm_sparse;

/// Warps of an SM, its registers, and warps that issue at once.
static constexpr int64_t kWarpsPerSM = 64, kRegistersPerSM = 65536;
static constexpr double kSchedulers = 4, kClock = 1.75e9;
/// Registers of a kernel of free elements.
static constexpr int64_t kFreeRegisters = 64;
/// Rows of a K step of free elements, by ScheduleAttr.
static constexpr int64_t kMostRows = 1 << 20;

namespace {
/// The parameters of the times of kernels; times are in seconds.
struct Costs {
  /// Cycles of a scheduler for one value of all lanes of a warp, and beside
  /// that for each token.
  double valueCycles = 0, tokenCycles = 0;
  /// Beside these for each row of the dense weight, where lanes share no
  /// sectors of activations.
  double apartRowCycles = 0;
  /// Until what a K step reads is there, and for each further tile that a warp
  /// reads at once; cycles for one value after the other of a warp, and beside
  /// that for each token; until the first values of a CTA are known; cycles for
  /// the sum of a token of each warp.
  double latency = 0, tileLatency = 0, chainCycles = 0, chainTokenCycles = 0,
         start = 0, sumCycles = 0;
  /// A launch; the exchange between CTAs of one tile, once and for each CTA.
  double launch = 0, exchange = 0, exchangeOfCta = 0;
  /// How many times as long as L2 at best reading activations takes, whose
  /// lanes read single elements.
  double activations = 0;
  /// The part of the rate of device memory that is reached. What takes longest
  /// hides the others the better the higher `norm` is; the part of the last
  /// wave of CTAs that nothing hides.
  double share = 0, norm = 1, lastWave = 0;
};
} // namespace

// Fitted to 784 kernels of n:m elements of 127 layers on an H200 and an H100,
// most of them drawn at random, of 1 to 64 tokens and 12 to 62 % kept
// (docs/decisions/082-times-of-few-tokens.md).
static constexpr Costs kChosenCosts = [] {
  Costs c;
  c.valueCycles = 3, c.tokenCycles = 3.88, c.apartRowCycles = 8;
  c.latency = 0.12e-6, c.tileLatency = 0.15e-6;
  c.chainCycles = 58.8, c.chainTokenCycles = 5.91, c.sumCycles = 21.4;
  c.launch = 1.57e-6, c.exchange = 1.45e-6, c.exchangeOfCta = 0.84e-6;
  c.activations = 2.7, c.share = 1.05, c.norm = 2.18, c.lastWave = 0.455;
  return c;
}();
// To 65 kernels of free elements of 30 layers, of 25 to 75 % kept
// (h200-decode-3.json and h200-decode-drawn-2.json).
static constexpr Costs kFreeCosts = [] {
  Costs c;
  c.valueCycles = 11.3, c.tokenCycles = 0.24, c.apartRowCycles = 10;
  c.latency = 2.05e-6, c.start = 1.6e-6;
  c.chainCycles = 88.4, c.chainTokenCycles = 20.1, c.sumCycles = 13.6;
  c.launch = 1.88e-6, c.exchange = 1.14e-6, c.exchangeOfCta = 1.08e-6;
  c.share = 0.958, c.norm = 2.97, c.lastWave = 0.65;
  return c;
}();

/// As valueCycles, of values in windows longer than a word of bits, beside it,
/// by their instructions: no time has been measured.
static constexpr double kLongWindowCycles = 5;
/// Where tokens are neighbours and rows of them longer than so many bytes,
/// lanes that read some tokens of many rows share no sectors.
static constexpr int64_t kApartBytes = 64;

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

static const Costs &getCosts(BitmapTile tile) {
  return tile.isFree ? kFreeCosts : kChosenCosts;
}

/// Cycles of a scheduler for one of `values` of all lanes of a warp in a tile,
/// with all tokens.
static double getValueCycles(const MatmulProblem &problem, double values,
                             double tokens) {
  BitmapTile tile = *problem.bitmap;
  const Costs &costs = getCosts(tile);
  double cycles = costs.valueCycles + costs.tokenCycles * tokens;
  if (!tile.isFree && problem.encoding.getWindowRows() > BitmapTile::kOutputs)
    cycles += kLongWindowCycles;
  if (problem.xFeatureMajor &&
      problem.tokens * problem.elementBytes > kApartBytes)
    cycles += costs.apartRowCycles * double(tile.rows) / values;
  return cycles;
}

/// Seconds from the first value of a warp to its last one, of so many in each
/// of the `steps`, in `atOnce` tiles.
static double getChain(const Costs &costs, double steps, double stepValues,
                       double atOnce, double tokens) {
  double value = costs.chainCycles + costs.chainTokenCycles * tokens;
  double latency = costs.latency + costs.tileLatency * (atOnce - 1.0);
  return costs.start + steps * (latency + stepValues * value / kClock);
}

/// Values that a lane multiplies of a tile, and bytes that it reads.
static std::pair<double, double> countTile(const MatmulProblem &problem) {
  BitmapTile tile = *problem.bitmap;
  auto element = double(problem.elementBytes);
  if (!tile.isFree)
    return {double(tile.values),
            double(tile.values) * element + double(4 * tile.words)};
  // Only the words of segments are read behind the bits.
  double values = problem.getStoredRows() / double(problem.getDenseRows()) *
                  double(tile.rows);
  double words = double(tile.words) + values /
                                          double(BitmapTile::kSegmentValues) *
                                          double(BitmapTile::kSegmentWords) /
                                          double(BitmapTile::kOutputs);
  return {values, values * element + 4 * words};
}

namespace {
/// A kernel, and what one of its CTAs does.
struct Work {
  int64_t ctas, resident;
  /// Seconds for what all CTAs read and write, where all wait for memory, and
  /// for activations, where all wait for L2.
  double memory, activations;
  /// The times of a CTA that has an SM to itself: for its instructions, and
  /// from the first one of a warp to the last.
  double issue, chain;
};
} // namespace

/// CTAs come in waves; part of the last one runs beside the one before.
static CombinedTime predictWaves(const Work &work, const Costs &costs,
                                 const Chip &chip) {
  Bound bound = Bound::Product;
  auto predictWave = [&](int64_t perSM, int64_t all) {
    double part = double(all) / double(work.ctas);
    double memory = work.memory * part;
    double issue = double(perSM) * work.issue;
    bound =
        memory >= std::max(issue, work.chain) ? Bound::DRAM : Bound::Product;
    return combineOverlapping(
        {memory, work.activations * part, issue, work.chain}, costs.norm);
  };
  int64_t wave = work.resident * chip.multiprocessors;
  int64_t rest = work.ctas % wave;
  double last =
      rest == 0
          ? 0.0
          : predictWave(llvm::divideCeil(rest, chip.multiprocessors), rest);
  if (work.ctas < wave)
    return {last, bound};
  int64_t waves = work.ctas / wave;
  double hidden = (1.0 - costs.lastWave) * double(rest) / double(wave);
  double whole = predictWave(work.resident, wave);
  return {(double(waves) + hidden) * whole + costs.lastWave * last, bound};
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

static CombinedTime predictDot(const MatmulProblem &problem,
                               ScheduleAttr schedule, const Chip &chip) {
  BitmapTile tile = *problem.bitmap;
  const Costs &costs = getCosts(tile);
  int64_t parts = schedule.getSplitK();
  int64_t tiles = llvm::divideCeil(problem.getDenseRows(), tile.rows);
  int64_t passes = llvm::divideCeil(problem.tokens, schedule.getTileTokens());
  int64_t blocks =
      problem.batch * llvm::divideCeil(problem.outputs, BitmapTile::kOutputs);
  auto tokens = double(schedule.getTileTokens());

  auto [values, bytes] = countTile(problem);
  double weight = double(blocks * tiles * BitmapTile::kOutputs) * bytes;
  double results =
      double(problem.batch * problem.tokens * problem.outputs) *
      double(problem.epilogue.writtenBytes + problem.epilogue.readBytes);
  Work work;
  work.ctas = passes * blocks * parts;
  work.resident = getResidentCtas(schedule, getRegisters(tile, schedule));
  // Each pass over the weight reads all of it anew, from L2 at best.
  work.memory = (weight + results) / (costs.share * chip.dramBytes) +
                double(passes - 1) * weight / (costs.share * chip.l2Bytes);
  work.activations = costs.activations * double(passes * blocks) * tokens *
                     double(problem.getDenseRows() * problem.elementBytes) /
                     chip.l2Bytes;

  auto warps = double(schedule.getProduct().getNumWarps());
  int64_t stepTiles = llvm::divideCeil(schedule.getTileRows(), tile.values);
  int64_t allSteps = llvm::divideCeil(tiles, stepTiles);
  auto steps = double(llvm::divideCeil(allSteps, parts));
  double stepValues = countStepValues(tile, values, tiles, allSteps, schedule);
  work.issue = steps * warps * stepValues *
               getValueCycles(problem, values, tokens) / (kSchedulers * kClock);
  work.chain = getChain(costs, steps, stepValues, stepValues / values, tokens) +
               warps * costs.sumCycles * tokens / kClock +
               (parts > 1 ? costs.exchangeOfCta : 0.0);

  auto [seconds, bound] = predictWaves(work, costs, chip);
  return {costs.launch + (parts > 1 ? costs.exchange : 0.0) + seconds, bound};
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
  std::optional<CombinedTime> predictDirect(Attribute,
                                            const MatmulProblem &problem,
                                            const ScheduleAttr &schedule,
                                            const Chip &chip) const {
    if (!problem.bitmap)
      return std::nullopt;
    return predictDot(problem, schedule, chip);
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
