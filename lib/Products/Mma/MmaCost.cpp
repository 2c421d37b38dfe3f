//===- MmaCost.cpp - what mma.sync costs ----------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../ProductAttrs.h"

#include "nm_sparse/Analysis/CountWork.h"
#include "nm_sparse/Analysis/ProductCost.h"
#include "nm_sparse/Analysis/ScheduleEnumerator.h"
#include "nm_sparse/Chip/Occupancy.h"

using namespace mlir;
using namespace mlir::nm_sparse;

using Shape = ScheduleEnumerator::Shape;
using Choices = ScheduleEnumerator::Choices;

//===----------------------------------------------------------------------===//
// Cost
//===----------------------------------------------------------------------===//

// Outputs of a tile from which on it is none of the narrow ones.
static constexpr int64_t kNarrowOutputs = 64;

// Tokens of tiles whose steps are short, at most.
static constexpr int64_t kFewTokens = 32;

/// Panels that share a fragment have a product of it each.
static double countFragmentProducts(const MatmulProblem &problem) {
  return std::max(1.0, 8.0 / double(problem.encoding.getBlockN()));
}

namespace {
struct MmaCost : public ProductCostInterface::ExternalModel<MmaCost, MmaAttr> {
  MathCeiling getCeiling(Attribute, const Chip &chip) const {
    return {chip.mma, "mma.sync"};
  }
  MathUse getMathUse(Attribute, const MatmulProblem &problem) const {
    return {MathUnit::TensorCores,
            countFragmentProducts(problem) * problem.getStoredRows()};
  }

  Work countWork(Attribute attribute, const MatmulProblem &problem,
                 const ScheduleAttr &schedule, const Chip &chip) const {
    ArrayRef<int64_t> grid = cast<MmaAttr>(attribute).getWarps();
    auto rows = double(schedule.getStepRows());
    int64_t tokens = schedule.getTileTokens();
    int64_t outputs = schedule.getTileOutputs();
    double flops = countFragmentProducts(problem) * 2.0 * double(tokens) *
                   double(outputs) * rows;
    auto warps = double(grid[0] * grid[1]);
    int64_t warpOutputs = outputs / grid[1];
    double groups = std::max(1.0, double(warpOutputs) /
                                      double(problem.encoding.getBlockN()));
    // With whole windows, each thread looks up its rows. This takes twice as
    // long, and four times as long if the thread reads their elements one by
    // one.
    double lookUp = problem.xFeatureMajor ? 2.0 : 4.0;
    double gather = schedule.gathersX() ? 1.0 : lookUp;
    double reads =
        rows * 2.0 * warps *
        (double(tokens / grid[0]) * groups * gather + double(warpOutputs));
    return countTiles(problem, schedule, chip, flops, reads);
  }

  StringRef getFamily(Attribute, const ScheduleAttr &schedule) const {
    if (schedule.getProducers() > 0)
      return schedule.isPersistent() ? "mma, persistent" : "mma, producers";
    if (schedule.getTileTokens() > kFewTokens)
      return "mma";
    bool isStaged = !schedule.getTransfers().getIndex().getUse().isResident;
    return isStaged ? "mma, few tokens, staged" : "mma, few tokens";
  }
};
} // namespace

//===----------------------------------------------------------------------===//
// Candidates
//===----------------------------------------------------------------------===//

// Warps of 64 x 64 read each fragment from shared memory less often than
// smaller ones. A token-major x, put together from 2-byte loads, leaves no
// registers for their 128 accumulators, nor do panels that share a fragment.
static constexpr Shape tokenMajorShapes[] = {
    {128, 128, 2, 4}, {64, 128, 2, 4}, {128, 64, 4, 2}, {64, 64, 2, 2},
    {32, 128, 1, 4},  {16, 128, 1, 4}, {16, 64, 1, 4}};
static constexpr Shape shapes[] = {
    {256, 128, 4, 2}, {128, 128, 2, 2}, {64, 128, 1, 2}, {128, 64, 2, 1},
    {64, 64, 2, 2},   {32, 128, 1, 4},  {16, 128, 1, 4}, {16, 64, 1, 4}};
// One long window may leave room for the smallest tiles only.
static constexpr Shape smallShapes[] = {
    {16, 32, 1, 1}, {16, 16, 1, 1}, {16, 8, 1, 1}};

static constexpr ScheduleEnumerator::Modes modes[] = {
    {"gather", "resident"}, {"copy", "resident"}, {"copy", "staged"}};

static void add(ScheduleEnumerator &to, Shape shape,
                ScheduleEnumerator::Role role, const Choices &choices) {
  to.addShape(MmaAttr::get(to.encoding.getContext(),
                           {shape.warpsTokens, shape.warpsOutputs}),
              shape, role, choices);
}

/// Warps that copy and multiply.
static void proposeOrdinary(ScheduleEnumerator &to) {
  Choices choices;
  choices.rows = to.getRows(16, 64, /*unit=*/16);
  to.addPartsOfLongWindows(choices.rows, /*unit=*/16);
  choices.modes = modes;
  SmallVector<Shape> all(to.problem.xFeatureMajor &&
                                 to.encoding.getBlockN() >= 8
                             ? ArrayRef<Shape>(shapes)
                             : ArrayRef<Shape>(tokenMajorShapes));
  to.addShapesOfPanels(all, /*outputUnit=*/8);
  int64_t bn = to.encoding.getBlockN();
  // A tile of ragged panels lies inside one: narrow ones need many tokens for
  // as many products of each value.
  if (to.problem.raggedRows && bn % 8 == 0 && bn < kNarrowOutputs)
    for (int64_t tokens : {256, 128, 64})
      all.push_back({tokens, bn, tokens / 64, 1});
  for (Shape shape : all)
    add(to, shape, {}, choices);
  // Gathered words leave the registers that single elements need.
  if (!to.problem.xFeatureMajor && to.problem.gathersWords()) {
    Choices gathered = choices;
    gathered.modes = ScheduleEnumerator::gathered();
    for (Shape shape : shapes)
      add(to, shape, {}, gathered);
  }
  if (!to.ranked.empty())
    return;
  for (Shape shape : smallShapes)
    add(to, shape, {}, choices);
}

/// Warps that only copy, one CTA an SM: copies no longer stand between the
/// products of a warp, which take 19 % longer so on an H200. Chips whose shared
/// memory does not hold three steps of 64 rows have no use for them, and with
/// gathered tokens as rows such warps spill.
static void proposeProducers(ScheduleEnumerator &to) {
  if (!to.problem.xFeatureMajor || !to.problem.gathersWords() ||
      to.encoding.getBlockN() % 8 != 0 || !getRegisterShares(256, 128, to.chip))
    return;
  SmallVector<Shape> all = {{256, 128, 4, 2}};
  // All outputs of a panel share one gather, of half as many tokens: 142 us
  // instead of 147 (f16, 4096^3, 50 %; bench/results/h200-mma.json).
  if (to.encoding.getBlockN() % 256 == 0)
    all.insert(all.begin(), {128, 256, 2, 4});
  Choices choices;
  choices.rows = to.getRows(64, 64, /*unit=*/16);
  to.addPartsOfWindows(choices.rows);
  choices.stages = {4, 3};
  choices.mayCopyInBulk = true;
  // For sm_100a ptxas spills up to 48 bytes in CTAs of one tile.
  bool spillsFlat = to.chip.wgmma == 0;
  for (Shape shape : all)
    for (bool persistent : {false, true})
      if (persistent || !spillsFlat)
        add(to, shape, {/*producers=*/4, persistent}, choices);
}

/// The same for ragged panels that are narrower than the tiles above. 4 warps
/// multiply what as many copy of 128 tokens, and twice as many of 256.
static void proposeNarrowProducers(ScheduleEnumerator &to) {
  int64_t bn = to.encoding.getBlockN();
  if (!to.problem.raggedRows || bn >= kNarrowOutputs || bn % 8 != 0 ||
      !to.problem.xFeatureMajor || !to.problem.gathersWords() ||
      !getRegisterShares(128, 256, to.chip))
    return;
  Choices choices;
  choices.rows = to.getRows(64, 64, /*unit=*/16);
  for (int64_t tokens : {256, 128}) {
    choices.stages = {tokens == 256 ? 5 : 8, 4, 3};
    for (bool persistent : {false, true})
      add(to, {tokens, bn, /*warpsTokens=*/4, /*warpsOutputs=*/1},
          {/*producers=*/tokens / 32, persistent}, choices);
  }
}

static void propose(ScheduleEnumerator &to) {
  if (!to.problem.tensorCores || to.problem.bitmap || to.problem.valuesKMajor)
    return;
  proposeOrdinary(to);
  proposeProducers(to);
  proposeNarrowProducers(to);
}

void nm_sparse::registerMmaCost(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, NMTileDialect *dialect) {
    MmaAttr::attachInterface<MmaCost>(*context);
    addScheduleProposer(*dialect, propose);
  });
}
