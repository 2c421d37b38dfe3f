//===- MmaExpandCost.cpp - what mma_expand costs --------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Memory bounds few tokens where an SM has warps enough; where it has not, a
// warp waits for what it reads of each unit, 32 outputs by the segments of four
// lanes.
//
//===----------------------------------------------------------------------===//

#include "../ProductAttrs.h"

#include "nm_sparse/Analysis/CountWork.h"
#include "nm_sparse/Analysis/ProductCost.h"
#include "nm_sparse/Analysis/ScheduleEnumerator.h"
#include "nm_sparse/Dialect/NMTile/IR/Segment.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::nm_sparse;

static constexpr double kSchedulers = 4;
/// Instructions for a register of rows of an output in all lanes, beside those
/// for each register that the queue of a span advances; and for a product of 16
/// outputs, 32 bytes of rows and 8 tokens.
static constexpr double kRegister = 8, kAdvance = 3, kFragment = 4;
static constexpr int64_t kWarpsPerSM = 16;
/// Tokens for which elements of 16 bits are proposed at most.
static constexpr int64_t kFewTokens = 16;

/// Registers by which the queues of a span advance, in all.
static double countAdvances(const Segment &segment) {
  int64_t registers = segment.spanRows / segment.registerRows, count = 0;
  for (int64_t end : {registers / 2, registers - registers / 2})
    for (int64_t done = 1; done < end; ++done)
      count +=
          std::min<int64_t>(end - done, llvm::divideCeil(segment.spanValues,
                                                         segment.registerRows));
  return double(count);
}

static Work countExpanded(const MatmulProblem &problem, ScheduleAttr schedule,
                          const Chip &chip) {
  const BitmapTile &tile = *problem.bitmap;
  Segment segment = Segment::get(problem.encoding, tile, problem.elementBytes);
  int64_t tokens = schedule.getTileTokens();
  int64_t warps = schedule.getProduct().getNumWarps();
  int64_t shares = schedule.getSumOwners(problem.encoding).shares;
  Work work = countWhole(problem, schedule,
                         std::max<int64_t>(1, kWarpsPerSM / warps), chip);
  auto [steps, stepTiles] =
      countBitmapSteps(problem, schedule, problem.getDenseRows());
  work.steps = steps;
  work.stages = 0;
  // A unit: 32 outputs, the segments of four lanes, all tokens of the tile.
  auto units = double(segment.countOfLane(stepTiles, shares));
  auto fragments = double(tokens) / Segment::kFragmentTokens;
  double spans = double(segment.rows) / double(segment.spanRows);
  double registers = double(segment.rows) / double(segment.registerRows);
  double instructions =
      double(Segment::kLaneOutputs) *
          (kRegister * registers + kAdvance * spans * countAdvances(segment)) +
      fragments * kFragment * registers;
  work.issued = double(warps) / kSchedulers * units * instructions;
  work.waits = units;
  work.links = units * instructions;
  // Lanes read activations, and each wavefront has 128 bytes.
  double chunks =
      fragments * double(segment.rows) / double(segment.getChunkRows());
  work.shared = getSharedSeconds(double(warps) * units * chunks * 128.0, chip);
  work.sums = double(shares) * fragments;
  int64_t passes = llvm::divideCeil(problem.tokens, tokens);
  work.again =
      double(passes - 1) * countWeightBytes(problem, schedule) / chip.l2Bytes;
  return work;
}

/// 2 to 16 tokens of 16 bits, whose rows are read 16 bytes at a time; more are
/// for warpgroups. Any number of 8 bits on chips that have none: where they do,
/// theirs took less time for each number that was measured (decision 113).
static bool suits(const MatmulProblem &problem, const Chip &chip) {
  if (problem.elementBytes == 1)
    return chip.wgmma == 0;
  return problem.elementBytes == 2 && problem.tokens >= 2 &&
         problem.tokens <= kFewTokens;
}

static void proposeMmaExpand(ScheduleEnumerator &to) {
  const MatmulProblem &problem = to.problem;
  constexpr int64_t bytesAtOnce = 64;
  if (!problem.bitmap || problem.bitmap->isFree || problem.xFeatureMajor ||
      !suits(problem, to.chip) || !problem.format->mma->existsOn(to.chip.name))
    return;
  const BitmapTile &tile = *problem.bitmap;
  Segment segment = Segment::get(problem.encoding, tile, problem.elementBytes);
  int64_t bytes = problem.elementBytes;
  if (segment.values * bytes > MmaExpandAttr::kMostValueBytes ||
      segment.rows * bytes > MmaExpandAttr::kMostRowBytes)
    return;
  MLIRContext *context = to.encoding.getContext();
  auto transfers =
      TransfersAttr::getNamed(context, "direct", "direct", "direct");
  if (!transfers)
    return;
  // Registers hold the values of a lane beside the sums of all tokens.
  constexpr int64_t mostTokens = 32, fullWarps = 8;
  int64_t tokens = llvm::PowerOf2Ceil(std::clamp<int64_t>(
      problem.tokens, Segment::kFragmentTokens, mostTokens));
  int64_t atOnce = tokens > kFewTokens ? bytesAtOnce / 4 : bytesAtOnce;
  int64_t perLane = std::max<int64_t>(1, atOnce / (segment.values * bytes));
  for (auto [outputs, warps, shares] :
       {std::tuple<int64_t, int64_t, int64_t>{32, 4, 4},
        {32, 8, 8},
        {32, 16, 16},
        {64, 8, 4},
        {64, 16, 8}}) {
    if (tokens > kFewTokens && warps > fullWarps)
      continue;
    int64_t stepTiles = Segment::kLanes * shares * perLane / segment.perTile;
    int64_t tiles = llvm::divideCeil(problem.getDenseRows(), tile.rows);
    for (int64_t parts : {1, 2, 4}) {
      if (stepTiles == 0 || stepTiles * parts > tiles)
        continue;
      auto schedule = ScheduleAttr::get(
          context, {tokens, outputs, stepTiles * tile.values},
          MmaExpandAttr::get(context, warps, shares), transfers,
          SequentialAttr::get(context), FlatGridAttr::get(context, parts));
      to.add(schedule, predict(problem, schedule, to.chip));
    }
  }
}

namespace {
struct MmaExpandCost
    : public ProductCostInterface::ExternalModel<MmaExpandCost, MmaExpandAttr> {
  LogicalResult verifyChip(Attribute,
                           function_ref<InFlightDiagnostic()> emitError,
                           const MatmulProblem &problem,
                           const Chip &chip) const {
    auto instruction = problem.format->mma;
    if (instruction && !instruction->existsOn(chip.name))
      return emitError() << "has a schedule with product = mma_expand, which "
                         << chip.name << " has no products of "
                         << problem.format->name << " for; "
                         << instruction->chip << " and newer have them";
    return success();
  }
  MathCeiling getCeiling(Attribute, const Chip &chip) const {
    return {chip.mma, "mma"};
  }
  MathUse getMathUse(Attribute, const MatmulProblem &problem) const {
    return {MathUnit::TensorCores, double(problem.getDenseRows())};
  }
  StringRef getFamily(Attribute, const ScheduleAttr &) const {
    return "mma_expand";
  }
  Work countWork(Attribute, const MatmulProblem &problem,
                 const ScheduleAttr &schedule, const Chip &chip) const {
    return countExpanded(problem, schedule, chip);
  }
};
} // namespace

void nm_sparse::registerMmaExpandCost(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, NMTileDialect *dialect) {
    MmaExpandAttr::attachInterface<MmaExpandCost>(*context);
    addScheduleProposer(*dialect, proposeMmaExpand);
  });
}
