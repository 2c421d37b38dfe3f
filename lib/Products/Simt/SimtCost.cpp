//===- SimtCost.cpp - what FFMA products cost -----------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../ProductAttrs.h"
#include "SimtLanes.h"
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

namespace {
struct SimtCost
    : public ProductCostInterface::ExternalModel<SimtCost, SimtAttr> {
  MathCeiling getCeiling(Attribute, const Chip &chip) const {
    return {chip.ffma, "FFMA"};
  }
  MathUse getMathUse(Attribute, const MatmulProblem &problem) const {
    return {MathUnit::FFMA, problem.getStoredRows()};
  }

  /// Flops of a CTA in a K step. Other instructions that issue in place of a
  /// product count like one.
  static double countFlops(Attribute attribute, const MatmulProblem &problem,
                           const ScheduleAttr &schedule) {
    auto rows = double(schedule.getStepRows());
    int64_t outputs = schedule.getTileOutputs();
    double flops =
        2.0 * double(schedule.getTileTokens()) * double(outputs) * rows;
    // Looking a row up in the index takes about 4 instructions for each panel
    // that a thread has outputs of.
    if (!schedule.gathersX()) {
      int64_t threadOutputs =
          outputs / cast<SimtAttr>(attribute).getWarps()[1] / 4;
      int64_t accumulators =
          schedule.getTileTokens() * outputs / schedule.getNumThreads();
      flops *= 1.0 + 4.0 *
                         double(llvm::divideCeil(
                             threadOutputs, problem.encoding.getBlockN())) /
                         double(accumulators);
    }
    // A thread spends 3 instructions on 16 bytes that it copies, and as much
    // as 8 on those of a gather, which wait for their position.
    auto [xRows, xColumns] = getXTile(problem, schedule);
    double gathered =
        double(xRows * xColumns) / 4.0 * (schedule.gathersX() ? 8.0 : 3.0);
    return flops + 2.0 * (gathered + rows * double(outputs) / 4.0 * 3.0);
  }

  static double countSharedReads(Attribute attribute,
                                 const MatmulProblem &problem,
                                 const ScheduleAttr &schedule) {
    // Half a warp of 16-byte reads is one wavefront, broadcasts included.
    ArrayRef<int64_t> grid = cast<SimtAttr>(attribute).getWarps();
    auto rows = double(schedule.getStepRows());
    auto warps = double(grid[0] * grid[1]);
    int64_t warpTokens = schedule.getTileTokens() / grid[0];
    int64_t warpOutputs = schedule.getTileOutputs() / grid[1];
    int64_t threadOutputs = warpOutputs / 4;
    int64_t group =
        std::min<int64_t>(threadOutputs, problem.encoding.getBlockN());
    double groups = double(threadOutputs) / double(group);
    // Where pairs of lanes read different rows of x, those of a quarter of a
    // warp are a wavefront. There are no conflicts of banks.
    double wavefronts =
        doLanePairsShareRows(schedule, problem.encoding, warpOutputs) ? 1.0
                                                                      : 2.0;
    return rows * warps * 16.0 * 4.0 *
           (double(warpTokens) / 8.0 * groups * wavefronts +
            double(warpOutputs) / 4.0);
  }

  Work countWork(Attribute attribute, const MatmulProblem &problem,
                 const ScheduleAttr &schedule, const Chip &chip) const {
    return countTiles(problem, schedule, chip,
                      countFlops(attribute, problem, schedule),
                      countSharedReads(attribute, problem, schedule));
  }

  StringRef getFamily(Attribute, const ScheduleAttr &schedule) const {
    if (schedule.getProducers() > 0)
      return "simt, producers";
    return schedule.getTileTokens() <= 8 ? "simt, few tokens" : "simt";
  }
};
} // namespace

//===----------------------------------------------------------------------===//
// Candidates
//===----------------------------------------------------------------------===//

// Warps of 64 x 32 (64 accumulators of a thread). Where each output or two has
// its own rows, the positions take registers too: fewer CTAs.
static constexpr Shape shapes[] = {
    {128, 128, 2, 4}, {64, 128, 1, 4}, {128, 64, 2, 2}, {64, 64, 1, 2},
    {32, 64, 1, 2},   {32, 32, 1, 1},  {8, 128, 1, 4}};
// A token-major x is copied element by element: warps of 128 x 32 copy half
// as many for each product.
static constexpr Shape tokenMajorShapes[] = {
    {128, 128, 1, 4}, {256, 64, 2, 2}, {64, 128, 1, 4}, {128, 64, 2, 2},
    {64, 64, 1, 2},   {32, 64, 1, 2},  {32, 32, 1, 1},  {8, 128, 1, 4}};
static constexpr Shape narrowShapes[] = {
    {128, 128, 2, 4}, {32, 64, 1, 2}, {32, 32, 1, 1}, {8, 128, 1, 4}};
// One long window may leave room for the smallest tiles only.
static constexpr Shape smallShapes[] = {
    {8, 32, 1, 1}, {8, 8, 1, 1}, {8, 4, 1, 1}};

static constexpr ScheduleEnumerator::Modes modes[] = {
    {"gather", "resident"}, {"copy", "resident"}, {"copy", "staged"}};

static void add(ScheduleEnumerator &to, Shape shape,
                ScheduleEnumerator::Role role, const Choices &choices) {
  to.addShape(SimtAttr::get(to.encoding.getContext(),
                            {shape.warpsTokens, shape.warpsOutputs}),
              shape, role, choices);
}

/// Warps that copy and multiply.
static void proposeOrdinary(ScheduleEnumerator &to, const Choices &choices) {
  int64_t bn = to.encoding.getBlockN();
  ArrayRef<Shape> base(shapes);
  if (bn < 4)
    base = narrowShapes;
  else if (!to.problem.xFeatureMajor)
    base = tokenMajorShapes;
  SmallVector<Shape> all(base);
  to.addShapesOfPanels(all, /*outputUnit=*/4);
  for (Shape shape : all)
    add(to, shape, {}, choices);
  if (!to.ranked.empty())
    return;
  for (Shape shape : smallShapes)
    add(to, shape, {}, choices);
}

/// Warps that only copy, which leave the others 128 accumulators and issue
/// slots for FFMAs alone. Smaller tiles have nobody to hide their waits, and in
/// a ring of two stages the copies stop together with the products.
static void proposeProducers(ScheduleEnumerator &to, Choices choices) {
  if (!to.problem.xFeatureMajor || to.encoding.getBlockN() < 4 ||
      !getRegisterShares(256, 128, to.chip))
    return;
  ScheduleEnumerator::Role role{/*producers=*/4, /*persistent=*/false};
  choices.modes = ArrayRef(modes).take_front(2);
  choices.stages = {4, 3};
  choices.addsLargeParts = to.chip.wgmma != 0;
  // A thread that has outputs of several panels takes whole windows, of which
  // two stages fit: 2.06 ms instead of 2.30 (blocks of 4 x 4, 4096^3, 50 %;
  // docs/decisions/029-f32-blocks-of-four.md).
  if (to.encoding.getBlockN() < 8) {
    choices.modes = modes;
    choices.stages = {3, 2};
    add(to, {128, 256, 1, 8}, role, choices);
  }
  add(to, {256, 128, 2, 4}, role, choices);
}

static void propose(ScheduleEnumerator &to) {
  // Only for f32: elements of 8 bits have no tensor cores here, either.
  if (to.problem.tensorCores || to.problem.bitmap || to.problem.valuesKMajor ||
      to.problem.elementBytes != 4)
    return;
  Choices choices;
  choices.rows = to.getRows(8, 32, /*unit=*/1);
  to.addPartsOfLongWindows(choices.rows, /*unit=*/1);
  choices.modes = modes;
  // Where products take long beside the exchange of parts, each way to fill the
  // last wave counts.
  choices.splits = {1, 2, 3, 4, 5, 6, 8};
  choices.alignsPanels = false;
  proposeOrdinary(to, choices);
  proposeProducers(to, choices);
}

void nm_sparse::registerSimtCost(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, NMTileDialect *dialect) {
    SimtAttr::attachInterface<SimtCost>(*context);
    addScheduleProposer(*dialect, propose);
  });
}
