//===- MmaExpandCost.cpp - what mma_expand costs --------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Memory bounds few tokens where an SM has warps enough; where it has not, a
// warp waits for what it reads of each unit, 32 outputs by the segments of four
// lanes. Constants are fitted to the times of h200-latency.json.
//
//===----------------------------------------------------------------------===//

#include "../ProductAttrs.h"

#include "nm_sparse/Analysis/ProductCost.h"
#include "nm_sparse/Analysis/ScheduleEnumerator.h"
#include "nm_sparse/Dialect/NMTile/IR/Segment.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::nm_sparse;

static constexpr double kSchedulers = 4, kClock = 1.75e9;
/// Cycles of a scheduler for a pair of rows of an output in all lanes, beside
/// those for each register that the queue of a span advances; for a product of
/// 16 outputs, 16 rows and 8 tokens; and of an SM for the activations of 8 rows
/// and 8 tokens of a unit.
static constexpr double kPairCycles = 7.93, kAdvanceCycles = 2.82,
                        kFragmentCycles = 4.25, kChunkCycles = 20.2;
/// Cycles until a warp has read what a unit needs, and by how much the
/// instructions of one warp take longer than it takes to issue them.
static constexpr double kUnitCycles = 673, kChain = 1.66;
/// Seconds of a launch; of the exchange between CTAs of one tile; of adding a
/// share of 8 tokens; the part of the rate of memory that is reached.
static constexpr double kLaunch = 1.9e-6, kExchange = 2.37e-6,
                        kShare = 0.081e-6, kRateReached = 0.99;
/// The higher this is, the better the longest part hides the others.
static constexpr double kNorm = 3.88;
static constexpr int64_t kWarpsPerSM = 16;

/// Registers by which the queues of a span advance, in all.
static double countAdvances(const Segment &segment) {
  int64_t pairs = segment.spanRows / 2, count = 0;
  for (int64_t end : {pairs / 2, pairs - pairs / 2})
    for (int64_t done = 1; done < end; ++done)
      count += std::min(end - done, (segment.spanValues + 1) / 2);
  return double(count);
}

static CombinedTime predictMmaExpand(const MatmulProblem &problem,
                                     ScheduleAttr schedule, const Chip &chip) {
  BitmapTile tile = *problem.bitmap;
  Segment segment = Segment::get(problem.encoding, tile);
  ProductAttrInterface product = schedule.getProduct();
  int64_t tokens = schedule.getTileTokens(), parts = schedule.getSplitK();
  int64_t warps = product.getNumWarps();
  int64_t shares = schedule.getSumOwners(problem.encoding).shares;
  int64_t passes = llvm::divideCeil(problem.tokens, tokens);
  int64_t tiles = llvm::divideCeil(problem.getDenseRows(), tile.rows);
  int64_t outputTiles =
      llvm::divideCeil(problem.outputs, schedule.getTileOutputs());
  int64_t ctas = problem.batch * outputTiles * passes * parts;
  int64_t sms = chip.multiprocessors;
  int64_t resident = std::min<int64_t>(
      std::max<int64_t>(1, kWarpsPerSM / warps), llvm::divideCeil(ctas, sms));
  auto perSM = double(llvm::divideCeil(ctas, sms));
  auto rounds = double(llvm::divideCeil(ctas, sms * resident));

  // A unit: 32 outputs, the segments of four lanes, all tokens of the tile.
  auto fragments = double(tokens) / Segment::kFragmentTokens;
  double spans = double(segment.rows) / double(segment.spanRows);
  double cycles = double(Segment::kLaneOutputs) *
                      (kPairCycles * double(segment.rows) / 2.0 +
                       kAdvanceCycles * spans * countAdvances(segment)) +
                  fragments * kFragmentCycles * double(segment.rows) / 2.0;
  double chunks =
      fragments * kChunkCycles * double(segment.rows) / Segment::kChunkRows;
  int64_t stepTiles = schedule.getTileRows() / tile.values;
  int64_t steps = llvm::divideCeil(llvm::divideCeil(tiles, stepTiles), parts);
  auto units = double(steps * segment.countOfLane(stepTiles, shares));
  double chain = rounds * units * (kUnitCycles + kChain * cycles) / kClock;
  double issue = perSM * double(warps) / kSchedulers * units * cycles / kClock;
  double activations = perSM * double(warps) * units * chunks / kClock;

  double weight = double(problem.batch * tiles * problem.outputs) *
                  double(tile.values * problem.elementBytes + 4 * tile.words);
  double results =
      double(problem.batch * problem.tokens * problem.outputs) *
      double(problem.epilogue.writtenBytes + problem.epilogue.readBytes);
  double memory = (weight + results) / (kRateReached * chip.dramBytes) +
                  double(passes - 1) * weight / (kRateReached * chip.l2Bytes);
  double time = combineOverlapping({memory, chain, issue, activations}, kNorm);
  return {kLaunch + (parts > 1 ? kExchange : 0.0) +
              kShare * double(shares) * fragments * rounds + time,
          memory >= issue ? Bound::DRAM : Bound::Product};
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
  std::optional<CombinedTime> predictDirect(Attribute,
                                            const MatmulProblem &problem,
                                            const ScheduleAttr &schedule,
                                            const Chip &chip) const {
    if (!problem.bitmap)
      return std::nullopt;
    return predictMmaExpand(problem, schedule, chip);
  }
};
} // namespace

void nm_sparse::registerMmaExpandCost(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, NMTileDialect *dialect) {
    MmaExpandAttr::attachInterface<MmaExpandCost>(*context);
    addScheduleProposer(*dialect, proposeMmaExpand);
  });
}
