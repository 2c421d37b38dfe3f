//===- WgmmaSpCost.cpp - what products of sparse tensor cores cost --------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../ProductAttrs.h"
#include "WgmmaSpCandidates.h"
#include "WgmmaSpCosts.h"

#include "nm_sparse/Analysis/ProductCost.h"
#include "nm_sparse/Chip/Occupancy.h"
#include "nm_sparse/Dialect/NMTile/IR/TileLayout.h"
#include "nm_sparse/Products/WarpgroupTile.h"
#include "llvm/Support/MathExtras.h"

#include <numeric>

using namespace mlir;
using namespace mlir::nm_sparse;

static constexpr double kClock = 1.7e9;

static const FormCosts &getCosts(ScheduleAttr schedule) {
  return schedule.gathersX() ? kGathered : kBulk;
}

/// The part of the copies by which activations take longer whose rows are no
/// whole lines.
static constexpr double kMisalignedRows = 1.03;
/// Lines that are gathered for several panels take so much longer.
static constexpr double kSeveralPanels = 1.1;
/// SMs that share a port to L2.
static constexpr int64_t kPortSMs = 2;
/// Registers of a thread beside the accumulators of its warpgroup, where it is
/// the only one.
static constexpr int64_t kLoneRegisters = 38;
/// Clocks of a CTA whose threads copy activations as they are: for a K step,
/// and for each piece of them, of so many bytes at most; beside four warpgroups
/// that multiply they take longer. An H100 took 1.0 to 1.3 times as many for 12
/// convolutions drawn at random (bench/results/h100-convolutions-2to4.json).
static constexpr double kCopyStepClocks = 300, kPieceClocks = 0.72,
                        kFourWarpgroups = 1.12;
static constexpr int64_t kMostPieceBytes = 16;
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
  constexpr int64_t mostGathering = 2;
  if (schedule.isPersistent() ||
      schedule.getProduct().getNumWarps() > kWarpgroupWarps)
    return 1;
  int64_t most = mostGathering;
  if (!schedule.gathersX()) {
    int64_t accumulators = schedule.getTileTokens() *
                           schedule.getTileOutputs() / (kWarpgroupWarps * 32);
    most = std::min(kMostLoneCtas,
                    getCtasByRegisters(schedule.getBlockThreads(),
                                       accumulators + kLoneRegisters));
  }
  return std::clamp<int64_t>(
      getCtasBySharedMemory(getSharedBytes(problem, schedule), chip), 1, most);
}

/// Bytes of the values and bits of an output in a tile of the weight.
static double getLaneBytes(const MatmulProblem &problem) {
  return double(problem.bitmap->values * problem.elementBytes +
                problem.bitmap->words * 4);
}

namespace {
/// The work of a problem under a schedule.
struct Work {
  Work(const MatmulProblem &problem, ScheduleAttr schedule, const Chip &chip);

  int64_t stepTiles, ctas;
  /// K steps of a CTA; waves of CTAs, and those that an SM runs at a time.
  double steps, waves, perSM;
  /// CTAs that run at a time.
  double running;
  /// Bytes of the weight for a K step of a CTA.
  double stepWeight;
};
} // namespace

Work::Work(const MatmulProblem &problem, ScheduleAttr schedule,
           const Chip &chip) {
  BitmapTile tile = *problem.bitmap;
  stepTiles = llvm::divideCeil(schedule.getTileRows(), tile.values);
  int64_t tiles = llvm::divideCeil(getInnermostRows(problem), tile.rows);
  int64_t parts = schedule.getSplitK();
  steps = double(llvm::divideCeil(llvm::divideCeil(tiles, stepTiles), parts));
  ctas = problem.batch * parts *
         llvm::divideCeil(problem.tokens, schedule.getTileTokens()) *
         llvm::divideCeil(problem.outputs, schedule.getTileOutputs());
  int64_t sms = chip.multiprocessors;
  int64_t resident = getResidentCtas(problem, schedule, chip);
  waves = double(llvm::divideCeil(ctas, sms * resident));
  perSM = double(std::min<int64_t>(resident, llvm::divideCeil(ctas, sms)));
  running = double(std::min(ctas, sms * resident));
  stepWeight =
      double(schedule.getTileOutputs() * stepTiles) * getLaneBytes(problem);
}

/// Clocks in which the threads of a CTA copy the activations of a K step.
static double getCopyClocks(const MatmulProblem &problem, ScheduleAttr schedule,
                            double rows) {
  if (schedule.isBulk() || schedule.gathersX())
    return 0;
  // Neighbours in the image are its last dimension.
  int64_t run = problem.patches ? problem.image.getShape().back() : 0;
  int64_t bytes = kMostPieceBytes;
  if (run > 0)
    bytes = std::gcd(bytes, run * problem.elementBytes);
  double pieces = rows * double(schedule.getTileTokens()) *
                  double(problem.elementBytes) / double(bytes);
  bool isCrowded = schedule.getProduct().getNumWarps() >= 4 * kWarpgroupWarps;
  return (kCopyStepClocks + kPieceClocks * pieces) *
         (isCrowded ? kFourWarpgroups : 1);
}

/// Seconds of one K step of the CTAs of an SM.
static double predictStep(const MatmulProblem &problem, ScheduleAttr schedule,
                          const Chip &chip, const Work &work) {
  int64_t tokens = schedule.getTileTokens();
  auto stepRows = double(work.stepTiles * problem.bitmap->rows);
  // One multiplies 32 bytes of each output.
  double products = double(schedule.getTileOutputs()) / kWarpgroupOutputs *
                    double(work.stepTiles) * double(problem.elementBytes) / 2;
  const FormCosts &costs = getCosts(schedule);
  bool isAhead = cast<WgmmaSpAttr>(schedule.getProduct()).getAhead();
  double tokenClocks =
      (isAhead ? costs.aheadTokenClocks : costs.tokenClocks) * double(tokens);
  double product = products * (costs.productClocks + tokenClocks) / kClock;
  int64_t warpgroups = schedule.getProduct().getNumWarps() / kWarpgroupWarps;
  if (warpgroups == 3)
    product *= costs.threeWarpgroups;
  // Rows that are gathered are those of each panel.
  double rows = stepRows;
  if (schedule.gathersX())
    rows *= double(schedule.getTilePanels(problem.encoding));
  double lines = rows * double(llvm::divideCeil(tokens, kLineTokens));
  if (rows > stepRows)
    lines *= kSeveralPanels;
  product += costs.lineClocks * lines / kClock;
  double chain = ((isAhead ? costs.aheadStepClocks : costs.stepClocks) +
                  products / double(warpgroups) *
                      (costs.beginClocks + costs.ownProducts * tokenClocks)) /
                 kClock * (1.0 + costs.crowding * (work.perSM - 1.0));
  double shared = 1.0 / double(schedule.getClusterCTAs());
  double bytes = rows * double(problem.elementBytes);
  double weight = work.stepWeight;
  double flight =
      costs.flight /
      (double(schedule.getPipeline().getNumStages()) - costs.slotsInUse);
  double outside = 0;
  // The CTAs of a cluster share one or the other.
  (schedule.gathersX() ? weight : bytes) *= shared;
  if (problem.xFeatureMajor) {
    flight += costs.row * rows;
    bytes *= double(std::min(llvm::alignTo(tokens, kLineTokens),
                             llvm::alignTo(problem.tokens, kRowTokens)));
  } else {
    int64_t tiles = llvm::divideCeil(problem.tokens, tokens);
    outside = work.running / double(tiles) *
              double(tiles * tokens - problem.tokens) * bytes /
              costs.outsideBytes;
    bytes *= double(std::min(tokens, problem.tokens));
    if (problem.getDenseRows() * problem.elementBytes % kSwizzledLineBytes != 0)
      bytes *= 1.0 + kMisalignedRows;
  }
  double l2 = work.running *
              (bytes / costs.l2Share + weight / costs.weightL2Share) /
              chip.l2Bytes;
  double copies = getCopyClocks(problem, schedule, rows) / kClock * work.perSM;
  return combineOverlapping(
      {product * work.perSM, chain, l2, flight, outside, copies},
      costs.stepNorm);
}

/// Seconds to read `bytes` from device memory. Where all ports have as many
/// CTAs, it limits them. Those that have one more end later, alone: the longer
/// the queues are that their requests wait in, the less of their work is done
/// by then.
static double predictMemory(double bytes, ScheduleAttr schedule,
                            const Chip &chip, const Work &work) {
  const FormCosts &costs = getCosts(schedule);
  double rate = costs.memoryShare * chip.dramBytes;
  double even = bytes / rate, apart = even;
  if (!schedule.isStreamK() || work.ctas <= chip.multiprocessors) {
    int64_t ports = chip.multiprocessors / kPortSMs;
    int64_t last = work.ctas % ports;
    double ofCta = bytes / double(work.ctas);
    apart = double(work.ctas - last) * ofCta / rate;
    if (last > 0)
      apart += std::max(double(last) * ofCta / rate, ofCta / costs.portBytes);
  }
  double inFlight = work.perSM * work.stepWeight *
                    double(schedule.getPipeline().getNumStages());
  double seconds =
      even + (apart - even) * std::min(1.0, inFlight / costs.equalShares);
  seconds *= 1.0 + costs.queuedByte * inFlight;
  return schedule.getSplitK() > 1 ? seconds * costs.partsMemory : seconds;
}

static CombinedTime predictSparse(const MatmulProblem &problem,
                                  ScheduleAttr schedule, const Chip &chip) {
  const FormCosts &costs = getCosts(schedule);
  Work work(problem, schedule, chip);
  int64_t parts = schedule.getSplitK();
  double elements = double(std::min(schedule.getTileTokens(), problem.tokens)) *
                    double(schedule.getTileOutputs()) *
                    (costs.resultsTogether ? work.perSM : 1.0);
  auto written =
      double(problem.epilogue.writtenBytes + problem.epilogue.readBytes);
  bool inCluster = schedule.splitsInCluster();
  double result = elements * (parts > 1 && !inCluster ? 4.0 : written) *
                  costs.resultByte / (inCluster ? double(parts) : 1.0);
  double wave = (work.steps + costs.fillSteps) *
                    predictStep(problem, schedule, chip, work) +
                result;
  double onChip = work.waves * wave;
  int64_t sms = chip.multiprocessors;
  if (schedule.isStreamK() && work.ctas > sms) {
    double all = double(work.ctas) / double(sms);
    double shared = all - double(std::max<int64_t>(0, work.ctas / sms - 1));
    onChip = (all + costs.sharedPart * shared) * wave;
  }
  if (!schedule.isPersistent())
    onChip += (work.waves - 1.0) * costs.wave + work.perSM * costs.laterCta;
  if (inCluster)
    onChip += getClusterSeconds(schedule, chip);
  else if (parts > 1)
    onChip += costs.parts +
              double(parts) * (costs.part + elements * 4.0 * costs.partByte);

  int64_t tiles =
      llvm::divideCeil(getInnermostRows(problem), problem.bitmap->rows);
  double weight =
      double(problem.batch * tiles * BitmapTile::kOutputs) *
      double(llvm::divideCeil(problem.outputs, BitmapTile::kOutputs)) *
      getLaneBytes(problem);
  double share =
      problem.readsInPlace(schedule) ? problem.patchShare.value_or(1) : 1;
  double rest = double(problem.batch * problem.tokens) *
                (double(problem.outputs) * written +
                 share * double(problem.getDenseRows() * problem.elementBytes));
  double memory = predictMemory(weight + rest, schedule, chip, work);
  return {costs.launch + combineOverlapping({onChip, memory}, costs.norm),
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
  MathUse getMathUse(Attribute, const MatmulProblem &problem) const {
    return {MathUnit::SparseTensorCores, problem.getStoredRows()};
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
  registry.addExtension(+[](MLIRContext *context, NMTileDialect *dialect) {
    WgmmaSpAttr::attachInterface<WgmmaSpCost>(*context);
    addScheduleProposer(*dialect, proposeWgmmaSp);
  });
}
