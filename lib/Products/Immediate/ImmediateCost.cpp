//===- ImmediateCost.cpp - what immediate costs ---------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Instructions are issued once by each warp of tokens, but come to an SM from
// memory as those of each panel, of which an instruction is used a few times.
// Where there are few warps, what one of them waits for decides.
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Analysis/ProductCost.h"
#include "nm_sparse/Analysis/ScheduleEnumerator.h"
#include "nm_sparse/Products/Registration.h"
#include "llvm/Support/MathExtras.h"
#include <cmath>

using namespace mlir;
using namespace mlir::nm_sparse;

/// Warps of an SM, its registers, and warps that issue at once.
static constexpr int64_t kWarpsPerSM = 64, kRegistersPerSM = 65536;
static constexpr double kSchedulers = 4, kClock = 1.75e9;
/// Registers of a thread beside its sums.
static constexpr int64_t kOtherRegisters = 44;
/// Activations that a lane reads at once.
static constexpr int64_t kActivationsAtOnce = 16;
/// Lanes of a warp.
static constexpr int64_t kLanes = 32;

/// Cycles of a scheduler for an instruction of a warp; bytes of code that an SM
/// gets in a cycle; cycles until a batch of activations is there, and of a warp
/// for one instruction after the other; cycles for a sum of each share.
static constexpr double kIssueCycles = 1.1, kCodeBytes = 32, kLatency = 500,
                        kChainCycles = 3, kSumCycles = 14;
/// Seconds of a launch; part of the rates of memory that is reached.
static constexpr double kLaunch = 2.0e-6, kShare = 0.7;
/// What takes longest hides the others the better the higher this is.
static constexpr double kNorm = 3;

namespace {
/// What the code of a panel has.
struct PanelCode {
  double elements, rows, bytes;
};

/// What a CTA that has an SM to itself takes.
struct Work {
  int64_t ctas, resident;
  double issue, fetch, l2, chain;
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
  PanelCode code;
  code.elements = problem.density * rows * outputs;
  code.rows = rows * (1 - std::pow(1 - problem.density, outputs));
  code.bytes = double(ImmediateAttr::kInstructionBytes) *
               (code.elements * double(getLaneTokens(schedule)) + code.rows);
  return code;
}

static int64_t countPanels(const MatmulProblem &problem,
                           ScheduleAttr schedule) {
  return llvm::divideCeil(problem.outputs, schedule.getTileOutputs());
}

static int64_t getResidentCtas(ScheduleAttr schedule, const Chip &chip) {
  auto product = cast<ImmediateAttr>(schedule.getProduct());
  int64_t registers =
      kOtherRegisters + schedule.getTileOutputs() * getLaneTokens(schedule);
  int64_t warps = std::min(kWarpsPerSM, kRegistersPerSM / (registers * kLanes));
  int64_t ctas = warps / product.getWarps();
  if (product.getShares() > 1)
    ctas =
        std::min<int64_t>(ctas, chip.sharedBytes / (4 * product.getShares() *
                                                    schedule.getTileTokens() *
                                                    schedule.getTileOutputs()));
  return std::max<int64_t>(1, ctas);
}

static Work countWork(const MatmulProblem &problem, ScheduleAttr schedule,
                      const Chip &chip) {
  auto product = cast<ImmediateAttr>(schedule.getProduct());
  PanelCode code = countPanel(problem, schedule);
  auto tokens = double(getLaneTokens(schedule));
  auto shares = double(product.getShares());
  double instructions = code.elements * tokens + code.rows;
  Work work;
  work.ctas = problem.batch * countPanels(problem, schedule) *
              llvm::divideCeil(problem.tokens, schedule.getTileTokens());
  work.resident = getResidentCtas(schedule, chip);
  work.issue = double(product.getTokenWarps()) * instructions * kIssueCycles /
               (kSchedulers * kClock);
  work.fetch = code.bytes / (kCodeBytes * kClock);
  double bytes =
      double(schedule.getTileTokens()) *
      (code.rows * double(problem.elementBytes) +
       double(schedule.getTileOutputs() *
              (problem.epilogue.writtenBytes + problem.epilogue.readBytes)));
  work.l2 = bytes * double(chip.multiprocessors) / (kShare * chip.l2Bytes);
  double batches =
      std::ceil(code.rows * tokens / (shares * double(kActivationsAtOnce)));
  work.chain =
      (batches * kLatency + instructions / shares * kChainCycles +
       (shares > 1 ? tokens * double(schedule.getTileOutputs()) * kSumCycles
                   : 0)) /
      kClock;
  return work;
}

static CombinedTime predictImmediate(const MatmulProblem &problem,
                                     ScheduleAttr schedule, const Chip &chip) {
  Work work = countWork(problem, schedule, chip);
  Bound bound = Bound::Product;
  auto predictWave = [&](double perSM) {
    double l2 = perSM * work.l2, issue = perSM * work.issue,
           fetch = perSM * work.fetch;
    bound =
        l2 > std::max({issue, fetch, work.chain}) ? Bound::L2 : Bound::Product;
    return combineOverlapping({l2, issue, fetch, work.chain}, kNorm);
  };
  int64_t wave = work.resident * chip.multiprocessors;
  int64_t waves = work.ctas / wave, rest = work.ctas % wave;
  double seconds = double(waves) * predictWave(double(work.resident));
  if (rest > 0)
    seconds +=
        predictWave(double(llvm::divideCeil(rest, chip.multiprocessors)));
  double written = double(problem.batch * problem.tokens * problem.outputs) *
                   double(problem.epilogue.writtenBytes);
  return {kLaunch + std::max(seconds, written / (kShare * chip.dramBytes)),
          bound};
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
  StringRef getFamily(Attribute, const ScheduleAttr &) const {
    return "immediate";
  }
  std::optional<CombinedTime> predictDirect(Attribute,
                                            const MatmulProblem &problem,
                                            const ScheduleAttr &schedule,
                                            const Chip &chip) const {
    return predictImmediate(problem, schedule, chip);
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
  int64_t rows = llvm::alignTo(problem.getDenseRows(), BitmapTile::kFreeRows);
  auto schedule = ScheduleAttr::get(
      context, {tokens, outputs, rows},
      ImmediateAttr::get(context, warps, shares),
      TransfersAttr::get(context, XTransfer::Direct, ValuesTransfer::Direct,
                         IndexTransfer::Direct),
      SequentialAttr::get(context), FlatGridAttr::get(context, 1));
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
      bool isAligned =
          !problem.hasAnyTokens && problem.tokens % laneTokens == 0;
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
  registry.addExtension(+[](MLIRContext *context, NMSparseDialect *dialect) {
    ImmediateAttr::attachInterface<ImmediateCost>(*context);
    dialect->addProposer(propose);
  });
}
