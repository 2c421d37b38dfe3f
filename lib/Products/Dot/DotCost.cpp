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

#include "nm_sparse/Analysis/ProductCost.h"
#include "nm_sparse/Analysis/ScheduleEnumerator.h"
#include "nm_sparse/Products/Registration.h"
#include "llvm/Support/MathExtras.h"
#include <cmath>

using namespace mlir;
using namespace mlir::nm_sparse;

// Fitted to kernels of 44 layers drawn at random on an H200, of 1 to 8 tokens
// and 12 to 75 % kept (bench/results/h200-decode-kernels.json).

/// Warps of an SM, registers of one of its threads beside each other, and warps
/// that issue at once.
static constexpr int64_t kWarpsPerSM = 64, kRegistersPerSM = 65536;
static constexpr double kSchedulers = 4, kClock = 1.75e9;
/// Cycles of a scheduler for one value of all lanes of a warp, and beside that
/// for each token; the part of an uneven number of CTAs that shows.
static constexpr double kValueCycles = 6.31, kTokenCycles = 3.63,
                        kUneven = 1.41;
/// As kValueCycles, of a free value, and registers of its kernel: by the
/// instructions of both, since no time of it has been measured.
static constexpr double kFreeCycles = 12;
static constexpr int64_t kFreeRegisters = 40;
/// Seconds until what a K step reads is there, and cycles for one value after
/// the other of a warp, beside that for each token.
static constexpr double kLatency = 0.213e-6, kChainCycles = 83.1,
                        kChainTokenCycles = 17.9;
/// Seconds of a launch, and of the exchange between CTAs of one tile; the part
/// of the rate of device memory that is reached.
static constexpr double kLaunch = 2.68e-6, kExchange = 1.4e-6, kShare = 0.953;
/// What takes longest hides the others the better the higher this is.
static constexpr double kNorm = 3.73;

/// Values of a lane, of all tiles that it reads at once, that leave an SM all
/// of its warps, and those that are proposed. Where the last step is not a
/// whole one, code for both takes registers. More than two tiles of few values
/// take 1.2 times as long as two.
static constexpr int64_t kFewValues = 16, kMostValues = 32,
                         kMostWholeValues = 64;

/// All K steps of `tiles` have as many as `stepTiles`.
static bool hasWholeSteps(int64_t tiles, int64_t stepTiles) {
  return tiles % stepTiles == 0;
}

/// CTAs that an SM holds.
static int64_t getResidentCtas(ScheduleAttr schedule, int64_t registers) {
  int64_t warps = std::min(kWarpsPerSM, kRegistersPerSM / (registers * 32));
  return std::max<int64_t>(1, warps / schedule.getProduct().getNumWarps());
}

/// Registers of a thread that reads so many tiles at once.
static int64_t getRegisters(BitmapTile tile, int64_t tilesAtOnce,
                            bool isWhole) {
  if (tile.isFree)
    return kFreeRegisters;
  return isWhole || tilesAtOnce * tile.values <= kFewValues ? 32 : 48;
}

/// Values that a lane multiplies of a tile, and bytes that it reads.
static std::pair<double, double> countTile(const MatmulProblem &problem) {
  BitmapTile tile = *problem.bitmap;
  auto element = double(problem.elementBytes);
  auto bits = double(tile.getBitsWords() * 4) / BitmapTile::kOutputs;
  if (!tile.isFree)
    return {double(tile.values), double(tile.values) * element + bits};
  // A lane that keeps the mean of all has to wait for the one that keeps most:
  // of 32, about two standard deviations more. Half a piece is padding.
  double mean = problem.density * double(tile.rows);
  double most = mean + 2 * std::sqrt(mean * (1 - problem.density));
  double padding = double(BitmapTile::kFreePiece - 1) / 2;
  return {most, (mean + padding) * element + bits};
}

static CombinedTime predictDot(const MatmulProblem &problem,
                               ScheduleAttr schedule, const Chip &chip) {
  BitmapTile tile = *problem.bitmap;
  int64_t parts = schedule.getSplitK();
  int64_t tiles = llvm::divideCeil(problem.getDenseRows(), tile.rows);
  int64_t passes = llvm::divideCeil(problem.tokens, schedule.getTileTokens());
  int64_t blocks =
      problem.batch * llvm::divideCeil(problem.outputs, BitmapTile::kOutputs);
  int64_t ctas = passes * blocks * parts;
  auto tokens = double(schedule.getTileTokens());

  auto [values, bytes] = countTile(problem);
  double weight = double(blocks * tiles * BitmapTile::kOutputs) * bytes;
  double results =
      double(problem.batch * problem.tokens * problem.outputs) *
      double(problem.epilogue.writtenBytes + problem.epilogue.readBytes);
  // Each pass over the weight reads all of it anew, from L2 at best.
  double memory = (weight + results) / (kShare * chip.dramBytes) +
                  double(passes - 1) * weight / (kShare * chip.l2Bytes);

  // A step has as many tiles for each warp, also where there are fewer.
  int64_t warps = schedule.getProduct().getNumWarps();
  int64_t stepTiles = llvm::divideCeil(schedule.getTileRows(), tile.values);
  int64_t perWarp = llvm::divideCeil(stepTiles, warps);
  int64_t steps = llvm::divideCeil(llvm::divideCeil(tiles, stepTiles), parts);
  double perSM = std::max(1.0, double(ctas) / double(chip.multiprocessors));
  double uneven =
      double(llvm::divideCeil(ctas, chip.multiprocessors)) / perSM - 1.0;
  double issue =
      perSM * (1.0 + kUneven * std::max(0.0, uneven)) *
      double(steps * perWarp * warps) * values *
      ((tile.isFree ? kFreeCycles : kValueCycles) + kTokenCycles * tokens) /
      (kSchedulers * kClock);

  int64_t resident = getResidentCtas(
      schedule, getRegisters(tile, perWarp, hasWholeSteps(tiles, stepTiles)));
  double waves = std::max(1.0, perSM / double(resident));
  double chain =
      waves * double(steps) *
      (kLatency + double(perWarp) * values *
                      (kChainCycles + kChainTokenCycles * tokens) / kClock);

  double seconds = kLaunch + combineOverlapping({memory, issue, chain}, kNorm);
  if (parts > 1)
    seconds += kExchange;
  return {seconds,
          memory >= std::max(issue, chain) ? Bound::DRAM : Bound::Product};
}

namespace {
struct DotCost : public ProductCostInterface::ExternalModel<DotCost, DotAttr> {
  MathCeiling getCeiling(Attribute, const Chip &chip) const {
    return {chip.ffma, "instructions"};
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

/// Each number of tokens, of warps, of tiles that a warp reads at once, and of
/// CTAs that share a tile.
static void propose(ScheduleEnumerator &to) {
  if (!to.problem.bitmap)
    return;
  BitmapTile tile = *to.problem.bitmap;
  int64_t tiles = llvm::divideCeil(to.problem.getDenseRows(), tile.rows);
  MLIRContext *context = to.encoding.getContext();
  auto transfers =
      TransfersAttr::get(context, XTransfer::Direct, ValuesTransfer::Direct,
                         IndexTransfer::Direct);
  for (int64_t tokens : {1, 2, 4, 8}) {
    if (tokens > 1 && tokens / 2 >= to.problem.tokens)
      break;
    for (int64_t warps : {16, 8, 32, 4})
      for (int64_t atOnce : {1, 2, 4})
        for (int64_t parts : {1, 2, 4, 8}) {
          int64_t rows = warps * atOnce * tile.values;
          int64_t most = hasWholeSteps(tiles, warps * atOnce) ? kMostWholeValues
                                                              : kMostValues;
          if (rows > 4096 || (atOnce > 1 && atOnce * tile.values > most) ||
              (atOnce > 2 && tile.values < kFewValues))
            continue;
          auto schedule = ScheduleAttr::get(
              context, {tokens, BitmapTile::kOutputs, rows},
              DotAttr::get(context, warps), transfers,
              SequentialAttr::get(context), FlatGridAttr::get(context, parts));
          to.add(schedule, predict(to.problem, schedule, to.chip));
        }
  }
}

void nm_sparse::registerDotCost(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, NMSparseDialect *dialect) {
    DotAttr::attachInterface<DotCost>(*context);
    dialect->addProposer(propose);
  });
}
