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
static constexpr double kProductClocks = 23.5, kTokenClocks = 0.409,
                        kFragmentClocks = 58.6, kChainClocks = 580;
static constexpr double kChainRows = 64;
/// Seconds of the first copies of a tile, of a launch, and of an exchange of
/// parts; of a byte of a result, and of one of a part.
static constexpr double kTile = 1.77e-6, kLaunch = 1.96e-6, kParts = 0.413e-6,
                        kResultByte = 51.2e-12, kPartByte = 15.7e-12;
/// Seconds of an exchange between persistent CTAs, and the part of the time of
/// tiles by which those that CTAs share along the contraction take longer.
static constexpr double kStream = 9e-6, kSharedPart = 0.06;
/// Rates that are reached, of those of device memory and of L2: CTAs of a wave
/// read the same activations.
static constexpr double kMemoryShare = 0.95, kL2Share = 2.25;
/// What takes longest hides the others the better the higher these are.
static constexpr double kStepNorm = 2.48, kNorm = 4;

static constexpr int64_t kWarpgroup = 128, kProductOutputs = 64;

/// The root of the sum of powers of `seconds`.
static double combine(std::initializer_list<double> seconds, double norm) {
  double sum = 0;
  for (double part : seconds)
    sum += std::pow(part, norm);
  return std::pow(sum, 1.0 / norm);
}

static int64_t getConsumers(int64_t outputs) {
  return outputs / kProductOutputs * kWarpgroup;
}

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
  double product =
      fragments * (kProductClocks + kTokenClocks * double(tokens)) / kClock;
  double expansion = fragments * kFragmentClocks / kClock;
  double chain = stepRows / kChainRows * kChainClocks / kClock;
  auto laneBytes = double(tile.values * problem.elementBytes + tile.words * 4);
  double bytes = double(outputs * stepTiles) * laneBytes +
                 stepRows * double(present * problem.elementBytes);
  double l2 = bytes * double(sms) / (kL2Share * chip.l2Bytes);
  double step = combine({product * perSM, expansion * perSM, chain, l2 * perSM},
                        kStepNorm);

  double elements = double(present) * double(outputs);
  auto written =
      double(problem.epilogue.writtenBytes + problem.epilogue.readBytes);
  double result = elements * (parts > 1 ? 4.0 : written) * kResultByte;
  double wave = steps * step + kTile + result;
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
  return {kLaunch + combine({onChip, memory}, kNorm),
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
  double countFlops(Attribute, const MatmulProblem &, const ScheduleAttr &,
                    double) const {
    return 0;
  }
  double countSharedReads(Attribute, const MatmulProblem &,
                          const ScheduleAttr &) const {
    return 0;
  }
  StringRef getFamily(Attribute, const ScheduleAttr &schedule) const {
    return schedule.isPersistent() ? "wgmma_expand, persistent"
                                   : "wgmma_expand";
  }
  const FamilyCosts &getCosts(Attribute, const ScheduleAttr &,
                              const Chip &) const {
    static constexpr FamilyCosts none = {};
    return none;
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

/// Registers of a thread beside its accumulators, without which ptxas waits for
/// each product before the next.
static constexpr int64_t kWorkingRegisters = 48, kRegistersPerSM = 65536;

/// Whether threads that multiply a tile of so many tokens have the registers.
static bool hasRegisters(int64_t tokens, int64_t outputs, const Chip &chip) {
  auto shares = getRegisterShares(getConsumers(outputs), kWarpgroup, chip,
                                  /*lean=*/true);
  int64_t atEntry = std::min<int64_t>(
      255, kRegistersPerSM / (getConsumers(outputs) + kWarpgroup));
  return tokens / 2 + kWorkingRegisters <=
         (shares ? shares->consumer : atEntry / 8 * 8);
}

/// Numbers of tokens that a tile may have: some of all sizes, and those that
/// divide the tokens of the problem evenly among few tiles.
static SmallVector<int64_t> getTileTokens(int64_t tokens) {
  constexpr int64_t unit = 8, most = 256, mostTiles = 32;
  SmallVector<int64_t> choices = {8, 16, 24, 32, 48, 64, 96, 128, 192, most};
  for (int64_t tiles = 1; tiles <= mostTiles; ++tiles) {
    int64_t even = llvm::alignTo(llvm::divideCeil(tokens, tiles), unit);
    if (even <= most && even > most / 2)
      choices.push_back(even);
  }
  llvm::sort(choices);
  choices.erase(llvm::unique(choices), choices.end());
  return choices;
}

/// As many stages as fit, each number of tokens that a tile may have, of
/// outputs, and of CTAs that share a tile.
static void propose(ScheduleEnumerator &to) {
  const MatmulProblem &problem = to.problem;
  // Rows of a single token are not aligned for the tensor memory accelerator.
  if (!problem.bitmap || !problem.tensorCores || to.chip.wgmma == 0 ||
      (problem.xFeatureMajor && problem.tokens == 1))
    return;
  BitmapTile tile = *problem.bitmap;
  MLIRContext *context = to.encoding.getContext();
  auto transfers = TransfersAttr::get(
      context, XTransfer::Bulk, ValuesTransfer::Bulk, IndexTransfer::Bulk);
  int64_t stepTiles = llvm::divideCeil(int64_t(kChainRows), tile.rows);
  constexpr int64_t mostRows = 256;
  if (stepTiles * tile.rows > mostRows)
    return;
  int64_t steps = llvm::divideCeil(
      llvm::divideCeil(problem.getDenseRows(), tile.rows), stepTiles);
  auto make = [&](int64_t tokens, int64_t outputs, int64_t stages,
                  GridAttrInterface grid) {
    return ScheduleAttr::get(
        context, {tokens, outputs, stepTiles * tile.values},
        WgmmaExpandAttr::get(context, getConsumers(outputs) / 32), transfers,
        RingAttr::get(context, stages, /*producers=*/4), grid);
  };
  auto flat = [&](int64_t parts) { return FlatGridAttr::get(context, parts); };
  // What CTAs that share tiles tell each other.
  constexpr int64_t kExchangeBytes = 128;
  auto findStages = [&](int64_t tokens, int64_t outputs) -> int64_t {
    for (int64_t stages : {8, 7, 6, 5, 4, 3, 2})
      if (getSharedBytes(problem, make(tokens, outputs, stages, flat(2))) +
              kExchangeBytes <=
          to.chip.sharedBytes - 1024)
        return stages;
    return 0;
  };
  auto add = [&](ScheduleAttr schedule) {
    Prediction prediction = predict(problem, schedule, to.chip);
    if (!schedule.isPersistent() || prediction.ctas > to.chip.multiprocessors)
      to.add(schedule, prediction);
  };
  for (int64_t tokens : getTileTokens(problem.tokens)) {
    if (tokens >= 2 * std::max<int64_t>(problem.tokens, 8))
      break;
    for (int64_t outputs : {64, 128, 256, 384, 448}) {
      int64_t stages = findStages(tokens, outputs);
      if (stages == 0 || !hasRegisters(tokens, outputs, to.chip))
        continue;
      // One warpgroup alone waits for what it expands.
      for (bool streamK : {false, true})
        if (outputs > kProductOutputs)
          add(make(tokens, outputs, stages,
                   PersistentGridAttr::get(context, /*splitK=*/1, streamK)));
      for (int64_t parts : {1, 2, 4, 8})
        if (parts == 1 || steps >= parts * stages)
          add(make(tokens, outputs, stages, flat(parts)));
    }
  }
}

void nm_sparse::registerWgmmaExpandCost(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, NMSparseDialect *dialect) {
    WgmmaExpandAttr::attachInterface<WgmmaExpandCost>(*context);
    dialect->addProposer(propose);
  });
}
