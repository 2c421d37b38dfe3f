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
/// Instructions for a pair of rows of an output in all lanes, beside those for
/// each register that the queue of a span advances; and for a product of 16
/// outputs, 16 rows and 8 tokens.
static constexpr double kPair = 8, kAdvance = 3, kFragment = 4;
static constexpr int64_t kWarpsPerSM = 16;

/// Registers by which the queues of a span advance, in all.
static double countAdvances(const Segment &segment) {
  int64_t pairs = segment.spanRows / 2, count = 0;
  for (int64_t end : {pairs / 2, pairs - pairs / 2})
    for (int64_t done = 1; done < end; ++done)
      count += std::min(end - done, (segment.spanValues + 1) / 2);
  return double(count);
}

static Work countExpanded(const MatmulProblem &problem, ScheduleAttr schedule,
                          const Chip &chip) {
  const BitmapTile &tile = *problem.bitmap;
  Segment segment = Segment::get(problem.encoding, tile);
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
  double instructions = double(Segment::kLaneOutputs) *
                            (kPair * double(segment.rows) / 2.0 +
                             kAdvance * spans * countAdvances(segment)) +
                        fragments * kFragment * double(segment.rows) / 2.0;
  work.issued = double(warps) / kSchedulers * units * instructions;
  work.waits = units;
  work.links = units * instructions;
  // Lanes read activations of 16 bits, and each wavefront has 128 bytes.
  double chunks = fragments * double(segment.rows) / Segment::kChunkRows;
  work.shared = getSharedSeconds(double(warps) * units * chunks * 128.0, chip);
  work.sums = double(shares) * fragments;
  int64_t passes = llvm::divideCeil(problem.tokens, tokens);
  work.again =
      double(passes - 1) * countWeightBytes(problem, schedule) / chip.l2Bytes;
  return work;
}

/// 2 to 16 tokens of rows that are read 16 bytes at a time; more tokens are for
/// warpgroups.
static void proposeMmaExpand(ScheduleEnumerator &to) {
  const MatmulProblem &problem = to.problem;
  constexpr int64_t mostTokens = 16, valuesAtOnce = 32;
  if (!problem.bitmap || problem.bitmap->isFree || !problem.tensorCores ||
      problem.xFeatureMajor || problem.tokens < 2 ||
      problem.tokens > mostTokens)
    return;
  const BitmapTile &tile = *problem.bitmap;
  Segment segment = Segment::get(problem.encoding, tile);
  if (segment.values > MmaExpandAttr::kMostValues ||
      segment.rows > MmaExpandAttr::kMostRows)
    return;
  MLIRContext *context = to.encoding.getContext();
  auto transfers =
      TransfersAttr::getNamed(context, "direct", "direct", "direct");
  if (!transfers)
    return;
  int64_t perLane = std::max<int64_t>(1, valuesAtOnce / segment.values);
  int64_t tokens = problem.tokens <= 8 ? 8 : mostTokens;
  for (auto [outputs, warps, shares] :
       {std::tuple<int64_t, int64_t, int64_t>{32, 4, 4},
        {32, 8, 8},
        {32, 16, 16},
        {64, 8, 4},
        {64, 16, 8}}) {
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
