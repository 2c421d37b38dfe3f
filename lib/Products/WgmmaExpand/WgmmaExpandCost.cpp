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

#include "KeptBounds.h"
#include "WgmmaExpandCandidates.h"
#include "nm_sparse/Analysis/Occupancy.h"
#include "nm_sparse/Analysis/ProductCost.h"
#include "nm_sparse/Analysis/ScheduleEnumerator.h"
#include "nm_sparse/Products/Registration.h"
#include "llvm/Support/MathExtras.h"
#include <cmath>
#include <initializer_list>

using namespace mlir;
using namespace mlir::nm_sparse;

// Fitted to 275 kernels of 66 layers on an H200, most of them drawn at random
// (bench/results/h200-expand-kernels.json).

static constexpr double kClock = 1.7e9;
/// Clocks of an SM for the product of 64 outputs and 16 rows, and for each
/// token of it; for the fragments of these; and for what a K step of 64 rows
/// takes one after the other.
static constexpr double kProductClocks = 25.6, kTokenClocks = 0.4,
                        kFragmentClocks = 59.6, kChainClocks = 593;
static constexpr double kChainRows = 64;
/// The part of the clocks of fragments that those of segments take: that of the
/// instructions. None has been timed.
static constexpr double kSegmentShare = 0.68;
/// The part by which a product of feature-major activations takes longer, and
/// fragments whose values lie in pieces that are known at run time.
static constexpr double kFeatureMajor = 0.0682, kSeveralPieces = 0.679;
/// Seconds of the first copies of a tile, of a launch, and of an exchange of
/// parts; of a byte of a result, and of one of a part.
static constexpr double kTile = 1.85e-6, kLaunch = 1.9e-6, kParts = 0.472e-6,
                        kResultByte = 34.8e-12, kPartByte = 18e-12;
/// Seconds of an exchange between persistent CTAs, and the part of the time of
/// tiles by which those that CTAs share along the contraction take longer.
static constexpr double kStream = 8.16e-6, kSharedPart = 0.0555;
/// Seconds of a barrier before shares of a tile are added, and of a byte of
/// one.
static constexpr double kShares = 0.5e-6, kSharedByte = 9e-12;
/// Rates that are reached, of those of device memory and of L2: CTAs of a wave
/// read the same activations.
static constexpr double kMemoryShare = 0.95, kL2Share = 1.66;
/// What takes longest hides the others the better the higher these are.
static constexpr double kStepNorm = 2.81, kNorm = 4;

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

static CombinedTime predictExpand(const MatmulProblem &problem,
                                  ScheduleAttr schedule, const Chip &chip) {
  BitmapTile tile = *problem.bitmap;
  int64_t tokens = schedule.getTileTokens();
  int64_t outputs = schedule.getTileOutputs();
  int64_t present = std::min(tokens, problem.tokens);
  int64_t stepTiles = llvm::divideCeil(schedule.getTileRows(), tile.values);
  auto stepRows = double(stepTiles * tile.rows);
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

  // One K step of the CTAs of an SM.
  double fragments = double(outputs) / kProductOutputs * stepRows / 16.0;
  double product = fragments *
                   (kProductClocks + kTokenClocks * double(tokens)) / kClock *
                   (problem.xFeatureMajor ? 1.0 + kFeatureMajor : 1.0);
  double pieces =
      schedule.getProduct().readsSegments()
          ? kSegmentShare
          : 1.0 + kSeveralPieces * getSeveralPieces(problem.encoding, tile);
  double expansion = fragments * kFragmentClocks / kClock * pieces;
  auto shares = double(schedule.getProduct().getNumShares());
  double chain = stepRows / shares / kChainRows * kChainClocks / kClock;
  auto laneBytes = double(tile.values * problem.elementBytes + tile.words * 4);
  double bytes = double(outputs * stepTiles) * laneBytes +
                 stepRows * double(present * problem.elementBytes);
  double l2 = bytes * double(sms) / (kL2Share * chip.l2Bytes);
  double step = combineOverlapping(
      {product * perSM, expansion * perSM, chain, l2 * perSM}, kStepNorm);

  double elements = double(present) * double(outputs);
  auto written =
      double(problem.epilogue.writtenBytes + problem.epilogue.readBytes);
  double result = elements * (parts > 1 ? 4.0 : written) * kResultByte;
  double wave = steps * step + kTile + result;
  if (shares > 1)
    wave += kShares + shares * elements * 4.0 * kSharedByte;
  double onChip = waves * wave;
  if (schedule.isStreamK()) {
    double all = double(ctas) / double(sms);
    double shared = all - double(std::max<int64_t>(0, ctas / sms - 1));
    onChip = (all + kSharedPart * shared) * wave + kStream;
  }
  if (parts > 1)
    onChip += kParts + double(parts) * elements * 4.0 * kPartByte;

  double weight =
      double(problem.batch * tiles * BitmapTile::kOutputs) *
      double(llvm::divideCeil(problem.outputs, BitmapTile::kOutputs)) *
      laneBytes;
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
                           const Chip &chip) const {
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
  registry.addExtension(+[](MLIRContext *context, NMSparseDialect *dialect) {
    WgmmaExpandAttr::attachInterface<WgmmaExpandCost>(*context);
    dialect->addProposer(proposeWgmmaExpand);
  });
}
