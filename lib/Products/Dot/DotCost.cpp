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

// Fitted to 322 kernels of 59 layers on an H200, most of them drawn at
// random, of 1 to 8 tokens and 25 to 62 % kept (bench/results/h200-dot.json).

/// Warps of an SM, its registers, and warps that issue at once.
static constexpr int64_t kWarpsPerSM = 64, kRegistersPerSM = 65536;
static constexpr double kSchedulers = 4, kClock = 1.75e9;
/// Cycles of a scheduler for one value of all lanes of a warp, and beside that
/// for each token.
static constexpr double kValueCycles = 6.58, kTokenCycles = 2;
/// As kValueCycles, of values in windows longer than a word of bits, beside it,
/// and of free values, by their instructions: no time of either has been
/// measured. Registers of the latter.
static constexpr double kLongWindowCycles = 5, kFreeCycles = 12;
static constexpr int64_t kFreeRegisters = 40;
/// Seconds until what a K step reads is there, and cycles for one value after
/// the other of a warp, beside that for each token; cycles for the sum of a
/// token of each warp.
static constexpr double kLatency = 0.239e-6, kChainCycles = 58,
                        kChainTokenCycles = 15.1, kSumCycles = 13.6;
/// Seconds of a launch; of the exchange between CTAs of one tile, once and for
/// each CTA; the part of the rate of device memory that is reached.
static constexpr double kLaunch = 1.88e-6, kExchange = 1.14e-6,
                        kExchangeOfCta = 1.08e-6, kShare = 0.958;
/// What takes longest hides the others the better the higher this is; the part
/// of the last wave of CTAs that nothing hides.
static constexpr double kNorm = 2.97, kLastWave = 0.65;

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
  int64_t tokens = schedule.getTileTokens();
  if (tokens > 2)
    return tokens <= 4 ? 40 : 56;
  // ptxas reads many values early where a CTA is not that large.
  int64_t warps = schedule.getProduct().getNumWarps();
  bool isEarly = schedule.getTileRows() >= kMostValues * warps;
  return isEarly && (warps == 8 || warps == 16) ? 40 : 32;
}

static double getValueCycles(const MatmulProblem &problem) {
  if (problem.bitmap->isFree)
    return kFreeCycles;
  bool isLong = problem.encoding.getWindowRows() > BitmapTile::kOutputs;
  return kValueCycles + (isLong ? kLongWindowCycles : 0.0);
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
  double stepValues = double(perWarp) * values;
  double issue = double(steps * warps) * stepValues *
                 (getValueCycles(problem) + kTokenCycles * tokens) /
                 (kSchedulers * kClock);
  double chain =
      double(steps) *
          (kLatency +
           stepValues * (kChainCycles + kChainTokenCycles * tokens) / kClock) +
      double(warps) * kSumCycles * tokens / kClock +
      (parts > 1 ? kExchangeOfCta : 0.0);

  // CTAs come in waves; the last one has an SM fewer of them, or none.
  double share = 1.0 / double(ctas);
  Bound bound = Bound::Product;
  auto predictWave = [&](int64_t perSM, int64_t all) {
    double fetch = memory * double(all) * share, work = double(perSM) * issue;
    bound = fetch >= std::max(work, chain) ? Bound::DRAM : Bound::Product;
    return combineOverlapping({fetch, work, chain}, kNorm);
  };
  int64_t resident = getResidentCtas(schedule, getRegisters(tile, schedule));
  int64_t wave = resident * chip.multiprocessors;
  int64_t rest = ctas % wave;
  double seconds = kLaunch + (parts > 1 ? kExchange : 0.0);
  if (rest > 0) {
    double last =
        predictWave(llvm::divideCeil(rest, chip.multiprocessors), rest);
    seconds += ctas < wave ? last : kLastWave * last;
  }
  if (ctas >= wave) {
    double hidden = (1.0 - kLastWave) * double(rest) / double(wave);
    seconds += (double(ctas / wave) + hidden) * predictWave(resident, wave);
  }
  return {seconds, bound};
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
          if (rows > 4096 ||
              (atOnce > 1 && atOnce * tile.values > kMostValues) ||
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
