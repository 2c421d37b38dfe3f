//===- WgmmaExpandCost.cpp - what products of expanded weights cost -------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A CTA multiplies, expands and copies at the same time. Many tokens are bound
// by the products, few by the weights of device memory or, where these are
// small, by what it takes to expand them.
//
//===----------------------------------------------------------------------===//

#include "../ProductAttrs.h"
#include "KeptBounds.h"
#include "WgmmaExpandCandidates.h"
#include "nm_sparse/Analysis/ProductCost.h"
#include "nm_sparse/Analysis/ScheduleEnumerator.h"
#include "nm_sparse/Chip/Occupancy.h"
#include "llvm/Support/MathExtras.h"
#include <cmath>
#include <initializer_list>

using namespace mlir;
using namespace mlir::nm_sparse;

// Fitted to 400 kernels of 150 layers, most of them drawn at random, on an H200
// (bench/results/h200-latency.json); the clock, the rates, the time of a launch
// and that of parts anew to 462 others of up to 64 tokens
// (docs/decisions/082-times-of-few-tokens.md).

static constexpr double kClock = 1.62e9;
/// Clocks of an SM for the product of 64 outputs and 16 rows, and for each
/// token of it, which is what tensor cores take.
static constexpr double kProductClocks = 4, kTokenClocks = 0.5;
/// Clocks for the fragments of these: to issue their instructions, and what a
/// single warp waits for others of its own, which several of them share.
static constexpr double kFragmentClocks = 60, kWaitClocks = 124;
/// Clocks from a fragment of a warpgroup to its next one: with loads before
/// each, with loads ahead, and for each token.
static constexpr double kLoadClocks = 215, kAheadClocks = 124,
                        kTokenWaitClocks = 0.27;
/// How many times as long steps of more warps than these take; and those of
/// feature-major activations whose tiles begin within lines.
static constexpr double kManyWarpsTime = 1.06, kWithinLinesTime = 1.1;
static constexpr int64_t kManyWarps = 16;
/// The part by which fragments take longer whose values lie in pieces that are
/// known at run time.
static constexpr double kSeveralPieces = 0.477;
/// Seconds from a copy to its use, which the stages of a ring share; of the
/// first copies of a tile, and of a launch; of a byte of a result, and of one
/// of a part.
static constexpr double kFlight = 2.77e-6, kTile = 0.8e-6, kLaunch = 0.75e-6,
                        kResultByte = 49e-12, kPartByte = 28e-12;
/// Seconds of an exchange between CTAs that share a tile, and those of each of
/// them.
static constexpr double kExchange = 1.2e-6, kPart = 0.15e-6;
/// Seconds of an exchange between persistent CTAs, and the part of the time of
/// tiles by which those that CTAs share along the contraction take longer.
static constexpr double kStream = 1.1e-6, kSharedPart = 0.121;
/// Seconds of a byte of a share that is added.
static constexpr double kSharedByte = 55e-12;
/// Rates that are reached, of those of device memory and of L2: CTAs of a wave
/// read the same activations.
static constexpr double kMemoryShare = 0.94, kL2Share = 1.32;
/// The higher these are, the better the longest part hides the others.
static constexpr double kStepNorm = 5, kNorm = 4;
/// Tokens whose activations lie side by side in shared memory where they are
/// feature-major; and in memory, where rows are aligned to 16 bytes.
static constexpr uint64_t kLineTokens = 64, kRowTokens = 8;

static constexpr int64_t kWarpgroup = 128, kProductOutputs = 64;

/// CTAs that an SM holds. Those that pass registers on have it alone.
static int64_t getResidentCtas(const MatmulProblem &problem,
                               ScheduleAttr schedule, const Chip &chip) {
  if (schedule.isPersistent() ||
      getRegisterShares(schedule.getNumThreads(), kWarpgroup, chip,
                        /*lean=*/true))
    return 1;
  int64_t accumulators = schedule.getTileTokens() * schedule.getTileOutputs() /
                         schedule.getNumThreads();
  return getCtasPerSM(getSharedBytes(problem, schedule),
                      schedule.getBlockThreads(), accumulators, chip);
}

/// The part of the groups of rows of a tile whose values lie in several pieces.
static double getSeveralPieces(EncodingAttr encoding, BitmapTile tile) {
  constexpr int64_t pieceValues = 8, groupRows = KeptBounds::kGroupRows;
  int64_t count = 0;
  for (int64_t row = 0; row < tile.rows; row += groupRows)
    if (!KeptBounds::get(encoding, row).getPiece(pieceValues))
      ++count;
  return double(count * groupRows) / double(tile.rows);
}

/// Bytes of the values and bits of an output in a tile of the weight.
static double getLaneBytes(const MatmulProblem &problem) {
  return double(problem.bitmap->values * problem.elementBytes +
                problem.bitmap->words * 4);
}

/// Seconds of one K step of the CTAs of an SM, `perSM` of them.
static double predictStep(const MatmulProblem &problem, ScheduleAttr schedule,
                          const Chip &chip, double perSM) {
  BitmapTile tile = *problem.bitmap;
  int64_t tokens = schedule.getTileTokens();
  int64_t outputs = schedule.getTileOutputs();
  int64_t stepTiles = llvm::divideCeil(schedule.getTileRows(), tile.values);
  auto stepRows = double(stepTiles * tile.rows);
  double fragments = double(outputs) / kProductOutputs * stepRows / 16.0;
  double product =
      fragments * (kProductClocks + kTokenClocks * double(tokens)) / kClock;
  double pieces =
      schedule.getOperandTiles().isSegmented()
          ? 1.0
          : 1.0 + kSeveralPieces * getSeveralPieces(problem.encoding, tile);
  auto warps = double(schedule.getProduct().getNumWarps());
  double expansion =
      fragments * (kFragmentClocks + kWaitClocks / warps) / kClock * pieces;
  auto shares = double(schedule.getSumOwners(problem.encoding).shares);
  bool isAhead = cast<WgmmaExpandAttr>(schedule.getProduct()).getAhead();
  double warpgroups = warps / 4.0 / shares;
  double chain = fragments / shares / warpgroups *
                 ((isAhead ? kAheadClocks : kLoadClocks) +
                  kTokenWaitClocks * double(tokens)) /
                 kClock;
  int64_t copied = std::min(tokens, problem.tokens);
  if (problem.xFeatureMajor)
    copied = static_cast<int64_t>(
        std::min(llvm::alignTo(tokens, kLineTokens),
                 llvm::alignTo(problem.tokens, kRowTokens)));
  double bytes = double(outputs * stepTiles) * getLaneBytes(problem) +
                 stepRows * double(copied * problem.elementBytes);
  double l2 = bytes * double(chip.multiprocessors) / (kL2Share * chip.l2Bytes);
  int64_t stages = schedule.getPipeline().getNumStages();
  double flight = kFlight / double(stages);
  // With two slots, one is multiplied while the other is being copied, so
  // products and copies take turns (bench/results/h200-vnm.json, run 11).
  if (stages == 2)
    flight += product * perSM / double(stages);
  double seconds = combineOverlapping(
      {product * perSM, expansion * perSM, chain, l2 * perSM, flight},
      kStepNorm);
  if (warps > kManyWarps)
    seconds *= kManyWarpsTime;
  if (problem.xFeatureMajor && tokens < problem.tokens &&
      tokens > int64_t(kLineTokens) && tokens % int64_t(kLineTokens) != 0)
    seconds *= kWithinLinesTime;
  return seconds;
}

static CombinedTime predictExpand(const MatmulProblem &problem,
                                  ScheduleAttr schedule, const Chip &chip) {
  BitmapTile tile = *problem.bitmap;
  int64_t tokens = schedule.getTileTokens();
  int64_t outputs = schedule.getTileOutputs();
  int64_t present = std::min(tokens, problem.tokens);
  int64_t stepTiles = llvm::divideCeil(schedule.getTileRows(), tile.values);
  int64_t tiles = llvm::divideCeil(problem.getDenseRows(), tile.rows);
  int64_t parts = schedule.getSplitK();
  auto steps =
      double(llvm::divideCeil(llvm::divideCeil(tiles, stepTiles), parts));
  int64_t ctas = problem.batch * parts *
                 llvm::divideCeil(problem.tokens, tokens) *
                 llvm::divideCeil(problem.outputs, outputs);
  int64_t sms = chip.multiprocessors;
  int64_t resident = getResidentCtas(problem, schedule, chip);
  auto waves = double(llvm::divideCeil(ctas, sms * resident));
  auto perSM = double(std::min<int64_t>(resident, llvm::divideCeil(ctas, sms)));

  double elements = double(present) * double(outputs);
  auto written =
      double(problem.epilogue.writtenBytes + problem.epilogue.readBytes);
  double result = elements * (parts > 1 ? 4.0 : written) * kResultByte;
  double step = predictStep(problem, schedule, chip, perSM);
  double wave = steps * step + kTile + result;
  auto shares = double(schedule.getSumOwners(problem.encoding).shares);
  if (shares > 1)
    wave += shares * elements * 4.0 * kSharedByte;
  double onChip = waves * wave;
  if (schedule.isStreamK() && ctas > sms) {
    double all = double(ctas) / double(sms);
    double shared = all - double(std::max<int64_t>(0, ctas / sms - 1));
    onChip = (all + kSharedPart * shared) * wave + kStream;
  }
  if (parts > 1)
    onChip += kExchange + double(parts) * (kPart + elements * 4.0 * kPartByte);

  double weight =
      double(problem.batch * tiles * BitmapTile::kOutputs) *
      double(llvm::divideCeil(problem.outputs, BitmapTile::kOutputs)) *
      getLaneBytes(problem);
  double rest = double(problem.batch * problem.tokens) *
                (double(problem.outputs) * written +
                 double(problem.getDenseRows() * problem.elementBytes));
  double memory = (weight + rest) / (kMemoryShare * chip.dramBytes);
  return {kLaunch + combineOverlapping({onChip, memory}, kNorm),
          memory > onChip ? Bound::DRAM : Bound::Product};
}

namespace {
struct WgmmaExpandCost
    : public ProductCostInterface::ExternalModel<WgmmaExpandCost,
                                                 WgmmaExpandAttr> {
  LogicalResult verifyChip(Attribute,
                           function_ref<InFlightDiagnostic()> emitError,
                           const MatmulProblem &, const Chip &chip) const {
    if (chip.wgmma == 0)
      return emitError() << "has a schedule with product = wgmma_expand, which "
                         << chip.name
                         << " has no products of warpgroups for; sm_90a has "
                            "them";
    return success();
  }
  MathCeiling getCeiling(Attribute, const Chip &chip) const {
    return {chip.wgmma, "wgmma"};
  }
  MathUse getMathUse(Attribute, const MatmulProblem &problem) const {
    return {MathUnit::TensorCores, double(problem.getDenseRows())};
  }
  StringRef getFamily(Attribute, const ScheduleAttr &schedule) const {
    return schedule.isPersistent() ? "wgmma_expand, persistent"
                                   : "wgmma_expand";
  }
  std::optional<CombinedTime> predictDirect(Attribute,
                                            const MatmulProblem &problem,
                                            const ScheduleAttr &schedule,
                                            const Chip &chip) const {
    if (!problem.bitmap)
      return std::nullopt;
    return predictExpand(problem, schedule, chip);
  }
};
} // namespace

void nm_sparse::registerWgmmaExpandCost(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, NMTileDialect *dialect) {
    WgmmaExpandAttr::attachInterface<WgmmaExpandCost>(*context);
    addScheduleProposer(*dialect, proposeWgmmaExpand);
  });
}
