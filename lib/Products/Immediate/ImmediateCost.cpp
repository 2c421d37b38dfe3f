//===- ImmediateCost.cpp - what immediate costs ---------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Code that is executed once is bound by how it comes to the warps: an SM gets
// about an instruction a cycle from its cache, and less than half of one from
// memory, where all SMs together get a dozen. So the number of tokens that one
// copy of an instruction serves counts, and that of panels on an SM.
//
//===----------------------------------------------------------------------===//

#include "../ProductAttrs.h"

#include "nm_sparse/Analysis/CountWork.h"
#include "nm_sparse/Analysis/ProductCost.h"
#include "nm_sparse/Analysis/ScheduleEnumerator.h"
#include "nm_sparse/Support/DefaultCodeBytes.h"
#include "llvm/Support/MathExtras.h"
#include <cmath>

using namespace mlir;
using namespace mlir::nm_sparse;

/// Warps of an SM, its registers and shared memory.
static constexpr int64_t kWarpsPerSM = 64, kRegistersPerSM = 65536,
                         kSharedPerSM = 227 << 10;
/// Registers of a thread beside its sums, activations that a lane reads at
/// once, and lanes of a warp.
static constexpr int64_t kOtherRegisters = 44, kActivationsAtOnce = 16,
                         kLanes = 32;

/// Bytes of the code of a panel that its next CTA still finds.
static constexpr double kCachedBytes = 200e3;

namespace {
/// The size of the code of a panel, for all shares.
struct PanelCode {
  double instructions, rows, bytes;
};
} // namespace

static int64_t getLaneTokens(ScheduleAttr schedule) {
  auto product = cast<ImmediateAttr>(schedule.getProduct());
  return schedule.getTileTokens() / (product.getTokenWarps() * kLanes);
}

static PanelCode countPanel(const MatmulProblem &problem,
                            ScheduleAttr schedule) {
  auto rows = double(problem.getDenseRows());
  auto outputs = double(std::min(schedule.getTileOutputs(), problem.outputs));
  auto tokens = double(getLaneTokens(schedule));
  PanelCode code;
  code.rows = rows * (1 - std::pow(1 - problem.density, outputs));
  // In an image, the tokens of a lane need not be neighbours. Registers of rows
  // that may lie outside of the image are zeroed before they are read.
  double reads = 1;
  if (problem.patchShare)
    reads = tokens * (1 + problem.guardedRows);
  code.instructions =
      problem.density * rows * outputs * tokens + code.rows * reads;
  // Each is made an f32.
  if (problem.elementBytes < 4)
    code.instructions += code.rows * tokens;
  code.bytes = kInstructionBytes * code.instructions;
  return code;
}

static int64_t countPanels(const MatmulProblem &problem,
                           ScheduleAttr schedule) {
  return llvm::divideCeil(problem.outputs, schedule.getTileOutputs());
}

static int64_t getResidentCtas(ScheduleAttr schedule) {
  auto product = cast<ImmediateAttr>(schedule.getProduct());
  int64_t registers =
      kOtherRegisters + schedule.getTileOutputs() * getLaneTokens(schedule);
  int64_t warps = std::min(kWarpsPerSM, kRegistersPerSM / (registers * kLanes));
  int64_t ctas = warps / product.getWarps();
  if (product.getShares() > 1)
    ctas =
        std::min<int64_t>(ctas, kSharedPerSM / (4 * product.getShares() *
                                                    schedule.getTileTokens() *
                                                    schedule.getTileOutputs() +
                                                1024));
  return std::max<int64_t>(1, ctas);
}

/// How often an SM gets the code of a panel, where `perSM` CTAs run on it and
/// `perPanel` CTAs have the code of one: those of a panel follow each other.
static double countFetches(int64_t panels, int64_t perPanel, int64_t perSM,
                           int64_t resident, double bytes, const Chip &chip) {
  if (perPanel <= chip.multiprocessors)
    return double(perSM);
  int64_t times =
      bytes <= kCachedBytes
          ? 1
          : llvm::divideCeil(perPanel, chip.multiprocessors * resident);
  return double(std::min(perSM, panels * times));
}

static Work countImmediate(const MatmulProblem &problem, ScheduleAttr schedule,
                           const Chip &chip) {
  auto product = cast<ImmediateAttr>(schedule.getProduct());
  PanelCode code = countPanel(problem, schedule);
  int64_t panels = countPanels(problem, schedule);
  int64_t perPanel = problem.batch *
                     llvm::divideCeil(problem.tokens, schedule.getTileTokens());
  int64_t resident = getResidentCtas(schedule);
  Work work = countWhole(problem, schedule, resident, chip);
  work.steps = 1;
  work.stages = 0;
  constexpr double schedulers = 4;
  work.issued =
      double(product.getTokenWarps()) * code.instructions / schedulers;
  auto tokens = double(getLaneTokens(schedule));
  work.waits =
      std::ceil(code.rows * tokens /
                (double(product.getShares()) * double(kActivationsAtOnce)));
  if (product.getShares() > 1)
    work.sums = double(schedule.getTileOutputs()) * tokens;
  // The CTAs of an SM that follow each other find the code of their panel.
  int64_t perSM = llvm::divideCeil(panels * perPanel, chip.multiprocessors);
  double fetches =
      countFetches(panels, perPanel, perSM, resident, code.bytes, chip);
  work.weight = getL2Seconds(code.bytes * fetches / double(perSM), chip);
  work.x = getL2Seconds(double(schedule.getTileTokens()) * code.rows *
                            double(problem.elementBytes),
                        chip);
  return work;
}

namespace {
struct ImmediateCost
    : public ProductCostInterface::ExternalModel<ImmediateCost, ImmediateAttr> {
  LogicalResult verifyChip(Attribute,
                           function_ref<InFlightDiagnostic()> emitError,
                           const MatmulProblem &problem, const Chip &) const {
    if (!problem.xFeatureMajor)
      return emitError() << "has a schedule with product = immediate, which "
                            "reads feature-major activations, but they are "
                            "token-major";
    return success();
  }
  MathCeiling getCeiling(Attribute, const Chip &chip) const {
    return {chip.ffma, "instructions"};
  }
  MathUse getMathUse(Attribute, const MatmulProblem &problem) const {
    // Smaller elements are made f32 first.
    return {problem.elementBytes == 4 ? MathUnit::FFMA : MathUnit::Lanes,
            problem.getStoredRows()};
  }
  std::optional<double> countCodeBytes(Attribute, const MatmulProblem &problem,
                                       const ScheduleAttr &schedule) const {
    return double(countPanels(problem, schedule)) *
           countPanel(problem, schedule).bytes;
  }
  StringRef getFamily(Attribute, const ScheduleAttr &) const {
    return "immediate";
  }
  Work countWork(Attribute, const MatmulProblem &problem,
                 const ScheduleAttr &schedule, const Chip &chip) const {
    return countImmediate(problem, schedule, chip);
  }
};
} // namespace

/// Considers a tile, if its code and its sums are not too large.
static void add(ScheduleEnumerator &to, int64_t outputs, int64_t laneTokens,
                int64_t warps, int64_t shares) {
  const MatmulProblem &problem = to.problem;
  int64_t tokens = laneTokens * warps / shares * kLanes;
  int64_t sums = laneTokens * outputs;
  if (sums > ImmediateAttr::kMostSums ||
      warps * kLanes * (sums + kOtherRegisters) > kRegistersPerSM)
    return;
  if (shares > 1 && 4 * shares * tokens * outputs > to.chip.sharedBytes)
    return;
  // Tiles that are wider than what there is only hold idle lanes.
  if (tokens > kLanes * laneTokens && tokens >= 2 * problem.tokens)
    return;
  MLIRContext *context = to.encoding.getContext();
  auto transfers =
      TransfersAttr::getNamed(context, "direct", "direct", "direct");
  if (!transfers)
    return;
  int64_t rows = llvm::alignTo(problem.getDenseRows(), BitmapTile::kFreeRows);
  auto schedule = ScheduleAttr::get(context, {tokens, outputs, rows},
                                    ImmediateAttr::get(context, warps, shares),
                                    transfers, SequentialAttr::get(context),
                                    FlatGridAttr::get(context, 1));
  double bytes = countPanel(problem, schedule).bytes *
                 double(countPanels(problem, schedule));
  if (bytes <= double(problem.constant->maxCodeBytes))
    to.add(schedule, predict(problem, schedule, to.chip));
}

/// Each width of panels, number of tokens of a lane that one access reads, and
/// way to divide elements and tokens among warps.
static void propose(ScheduleEnumerator &to) {
  const MatmulProblem &problem = to.problem;
  if (!problem.constant || !problem.xFeatureMajor)
    return;
  for (int64_t outputs = BitmapTile::kOutputs;
       outputs <= ImmediateAttr::kMostOutputs; outputs *= 2) {
    if (outputs > BitmapTile::kOutputs && outputs / 2 >= problem.outputs)
      break;
    for (int64_t laneTokens : {1, 2, 4}) {
      bool isAligned = !problem.hasAnyTokens && !problem.patchShare &&
                       problem.tokens % laneTokens == 0;
      if (laneTokens > 1 && !isAligned)
        break;
      for (int64_t shares : {1, 2, 4, 8, 16})
        for (int64_t tokenWarps : {1, 2, 4, 8})
          if (shares * tokenWarps <= 16)
            add(to, outputs, laneTokens, shares * tokenWarps, shares);
    }
  }
}

void nm_sparse::registerImmediateCost(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, NMTileDialect *dialect) {
    ImmediateAttr::attachInterface<ImmediateCost>(*context);
    addScheduleProposer(*dialect, propose);
  });
}
