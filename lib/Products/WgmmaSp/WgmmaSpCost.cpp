//===- WgmmaSpCost.cpp - what products of sparse tensor cores cost --------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "WgmmaSpCandidates.h"

#include "nm_sparse/Analysis/Occupancy.h"
#include "nm_sparse/Analysis/ProductCost.h"
#include "nm_sparse/Dialect/NMSparse/IR/TileLayout.h"
#include "nm_sparse/Products/Registration.h"
#include "nm_sparse/Products/WarpgroupTile.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::nm_sparse;

// Fitted to 1311 kernels of some 200 layers, most of them drawn at random, on
// an H200 (bench/results/h200-sparse.json, runs 4, 6, and 8 to 12): to how
// those of a layer compare, the fastest of it counting most.

static constexpr double kClock = 1.7e9;
namespace {
/// What differs between activations that the tensor memory accelerator copies
/// and those that threads gather.
struct FormCosts {
  /// Clocks of an SM for each token of the product of 64 outputs and 32 rows,
  /// while copies are written to the shared memory that it reads; and where
  /// metadata is ready before.
  double tokenClocks, aheadTokenClocks;
  /// Clocks of it for each line of 128 bytes that threads copy.
  double lineClocks;
  /// Clocks of a warpgroup for a K step beside its products: to wait for the
  /// copies and make the metadata, ahead or not.
  double stepClocks, aheadStepClocks;
  /// Seconds from a copy to its use, which the stages of a ring share; for each
  /// row of feature-major or gathered activations; of each wave of CTAs after
  /// the first; and of a byte of a result.
  double flight, row, wave, resultByte;
  /// Shares of the rate of L2 that are reached for activations and for weights:
  /// many CTAs of a wave read the same ones.
  double l2Share, weightL2Share;
  /// What takes longest in a step hides the others the better the higher it is.
  double stepNorm;
  /// The part of the time of tiles by which those that CTAs share along the
  /// contraction take longer.
  double sharedPart;
};
} // namespace

static constexpr FormCosts kBulk = {0.6,     0.52,    0,       183,      368,
                                    1.36e-6, 0.36e-9, 2.22e-6, 31.6e-12, 5.19,
                                    1.54,    2.5,     0.391};
// Fitted to 122 kernels of 25 layers, 6 of them drawn at random
// (bench/results/h200-vnm.json, runs 7 to 9), and sharedPart to the same.
static constexpr FormCosts kGathered = {
    0.685,   0.7,      0.72, 800,  867, 2.2e-6, 1.14e-9,
    2.28e-6, 26.9e-12, 1.34, 4.55, 6.9, 0.6};

static const FormCosts &getCosts(ScheduleAttr schedule) {
  return schedule.gathersX() ? kGathered : kBulk;
}

/// Clocks of a product beside those of its tokens.
static constexpr double kProductClocks = 5.0;
/// Three warpgroups multiply more slowly than two or four.
static constexpr double kThreeWarpgroups = 1.07;
/// Seconds of a launch; of a byte of a part; and of adding parts up.
static constexpr double kLaunch = 2.37e-6, kPartByte = 29.1e-12,
                        kParts = 1.47e-6;
/// The part of the time of the copies by which activations take longer whose
/// rows are no whole lines.
static constexpr double kMisalignedRows = 1.03;
/// Lines that are gathered for several panels take so much longer.
static constexpr double kSeveralPanels = 1.1;
/// The share of the rate of device memory that is reached.
static constexpr double kMemoryShare = 0.897;
/// Device memory takes so much longer for a weight of which CTAs read several
/// parts of the contraction at a time.
static constexpr double kPartsMemory = 1.11;
/// What takes longest hides the other the better the higher it is.
static constexpr double kNorm = 3.16;
/// Tokens whose activations lie side by side in shared memory where they are
/// feature-major; and in memory, where rows are aligned to 16 bytes.
static constexpr int64_t kLineTokens = 64, kRowTokens = 8;

int64_t nm_sparse::getInnermostRows(const MatmulProblem &problem) {
  return problem.encoding.hasInnerLevel()
             ? problem.windows * problem.encoding.getKeptRows()
             : problem.getDenseRows();
}

/// CTAs that an SM holds. Those that pass registers on have it alone.
static int64_t getResidentCtas(const MatmulProblem &problem,
                               ScheduleAttr schedule, const Chip &chip) {
  constexpr int64_t most = 2;
  if (schedule.isPersistent() ||
      schedule.getProduct().getNumWarps() > kWarpgroupWarps)
    return 1;
  return std::clamp<int64_t>(
      getCtasBySharedMemory(getSharedBytes(problem, schedule), chip), 1, most);
}

/// Bytes of the values and bits of an output in a tile of the weight.
static double getLaneBytes(const MatmulProblem &problem) {
  return double(problem.bitmap->values * problem.elementBytes +
                problem.bitmap->words * 4);
}

/// Seconds of one K step of the CTAs of an SM, `perSM` of them, while `busy` of
/// all SMs have any.
static double predictStep(const MatmulProblem &problem, ScheduleAttr schedule,
                          const Chip &chip, double perSM, double busy) {
  BitmapTile tile = *problem.bitmap;
  int64_t tokens = schedule.getTileTokens();
  int64_t outputs = schedule.getTileOutputs();
  int64_t stepTiles = llvm::divideCeil(schedule.getTileRows(), tile.values);
  auto stepRows = double(stepTiles * tile.rows);
  // One multiplies 32 bytes of each output.
  double products = double(outputs) / kWarpgroupOutputs * double(stepTiles) *
                    double(problem.elementBytes) / 2;
  const FormCosts &costs = getCosts(schedule);
  bool isAhead = cast<WgmmaSpAttr>(schedule.getProduct()).getAhead();
  double tokenClocks = isAhead ? costs.aheadTokenClocks : costs.tokenClocks;
  double product =
      products * (kProductClocks + tokenClocks * double(tokens)) / kClock;
  int64_t warpgroups = schedule.getProduct().getNumWarps() / kWarpgroupWarps;
  if (warpgroups == 3)
    product *= kThreeWarpgroups;
  // Rows that are gathered are those of each panel.
  double rows = stepRows;
  if (schedule.gathersX())
    rows *= double(schedule.getTilePanels(problem.encoding));
  double lines = rows * double(llvm::divideCeil(tokens, kLineTokens));
  if (rows > stepRows)
    lines *= kSeveralPanels;
  product += costs.lineClocks * lines / kClock;
  double chain = ((isAhead ? costs.aheadStepClocks : costs.stepClocks) +
                  products / double(warpgroups) * kProductClocks) /
                 kClock;
  double shared = 1.0 / double(schedule.getClusterCTAs());
  double bytes = rows * double(problem.elementBytes);
  double weight = double(outputs * stepTiles) * getLaneBytes(problem);
  double flight = costs.flight / double(schedule.getPipeline().getNumStages());
  // The CTAs of a cluster share one or the other.
  (schedule.gathersX() ? weight : bytes) *= shared;
  if (problem.xFeatureMajor) {
    flight += costs.row * rows;
    bytes *= double(std::min(llvm::alignTo(tokens, kLineTokens),
                             llvm::alignTo(problem.tokens, kRowTokens)));
  } else {
    bytes *= double(std::min(tokens, problem.tokens));
    if (problem.getDenseRows() * problem.elementBytes % kSwizzledLineBytes != 0)
      bytes *= 1.0 + kMisalignedRows;
  }
  double l2 = busy * double(chip.multiprocessors) *
              (bytes / costs.l2Share + weight / costs.weightL2Share) /
              chip.l2Bytes;
  return combineOverlapping({product * perSM, chain, l2 * perSM, flight},
                            costs.stepNorm);
}

static CombinedTime predictSparse(const MatmulProblem &problem,
                                  ScheduleAttr schedule, const Chip &chip) {
  BitmapTile tile = *problem.bitmap;
  int64_t tokens = schedule.getTileTokens();
  int64_t outputs = schedule.getTileOutputs();
  int64_t present = std::min(tokens, problem.tokens);
  int64_t stepTiles = llvm::divideCeil(schedule.getTileRows(), tile.values);
  int64_t tiles = llvm::divideCeil(getInnermostRows(problem), tile.rows);
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
  double result =
      elements * (parts > 1 ? 4.0 : written) * getCosts(schedule).resultByte;
  double busy = std::min(1.0, double(ctas) / double(sms * resident));
  double step = predictStep(problem, schedule, chip, perSM, busy);
  double wave = steps * step + result;
  double onChip = waves * wave;
  if (schedule.isStreamK() && ctas > sms) {
    double all = double(ctas) / double(sms);
    double shared = all - double(std::max<int64_t>(0, ctas / sms - 1));
    onChip = (all + getCosts(schedule).sharedPart * shared) * wave;
  }
  if (!schedule.isPersistent())
    onChip += (waves - 1.0) * getCosts(schedule).wave;
  if (parts > 1)
    onChip += kParts + double(parts) * elements * 4.0 * kPartByte;

  double weight =
      double(problem.batch * tiles * BitmapTile::kOutputs) *
      double(llvm::divideCeil(problem.outputs, BitmapTile::kOutputs)) *
      getLaneBytes(problem);
  double rest = double(problem.batch * problem.tokens) *
                (double(problem.outputs) * written +
                 double(problem.getDenseRows() * problem.elementBytes));
  double memory = (weight + rest) / (kMemoryShare * chip.dramBytes);
  if (parts > 1)
    memory *= kPartsMemory;
  return {kLaunch + combineOverlapping({onChip, memory}, kNorm),
          memory > onChip ? Bound::DRAM : Bound::Product};
}

namespace {
struct WgmmaSpCost
    : public ProductCostInterface::ExternalModel<WgmmaSpCost, WgmmaSpAttr> {
  LogicalResult verifyChip(Attribute,
                           function_ref<InFlightDiagnostic()> emitError,
                           const MatmulProblem &, const Chip &chip) const {
    if (chip.wgmma == 0)
      return emitError() << "has a schedule with product = wgmma_sp, which "
                         << chip.name
                         << " has no products of warpgroups for; sm_90a has "
                            "them";
    return success();
  }
  MathCeiling getCeiling(Attribute, const Chip &chip) const {
    return {2 * chip.wgmma, "wgmma_sp"};
  }
  StringRef getFamily(Attribute, const ScheduleAttr &schedule) const {
    return schedule.isPersistent() ? "wgmma_sp, persistent" : "wgmma_sp";
  }
  std::optional<CombinedTime> predictDirect(Attribute,
                                            const MatmulProblem &problem,
                                            const ScheduleAttr &schedule,
                                            const Chip &chip) const {
    if (!problem.bitmap)
      return std::nullopt;
    return predictSparse(problem, schedule, chip);
  }
};
} // namespace

void nm_sparse::registerWgmmaSpCost(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, NMSparseDialect *dialect) {
    WgmmaSpAttr::attachInterface<WgmmaSpCost>(*context);
    dialect->addProposer(proposeWgmmaSp);
  });
}
