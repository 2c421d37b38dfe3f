//===- WgmmaRsCost.cpp - what register operands cost ----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../ProductAttrs.h"

#include "nm_sparse/Analysis/CountWork.h"
#include "nm_sparse/Analysis/ProductCost.h"
#include "nm_sparse/Analysis/ScheduleEnumerator.h"
#include "nm_sparse/Chip/Occupancy.h"
#include "nm_sparse/Dialect/NMTile/IR/TileLayout.h"
#include "nm_sparse/Products/WarpgroupTile.h"

using namespace mlir;
using namespace mlir::nm_sparse;

using Shape = ScheduleEnumerator::Shape;
using Role = ScheduleEnumerator::Role;
using Choices = ScheduleEnumerator::Choices;

/// Tokens and kept rows of an instruction.
static constexpr double kProductTokens = 64, kProductRows = 32;

/// Tiles that lie in one panel, with 128 accumulators of a thread or fewer.
static constexpr Shape shapes[] = {
    {256, 128, 8, 1}, {128, 256, 8, 1}, {128, 128, 8, 1}, {128, 128, 4, 1},
    {256, 64, 8, 1},  {128, 64, 4, 1},  {256, 64, 4, 1}};

/// Persistent CTAs come first: where both are predicted to take the same time,
/// their epilogues overlap with the next tile, which takes 6 to 22 % less.
static constexpr Role roles[] = {{4, true}, {4, false}};

/// K steps of each CTA of a cluster that divides the contraction.
static constexpr int64_t kLeastPartSteps = 8;

static void propose(ScheduleEnumerator &to) {
  if (!to.problem.valuesKMajor || to.chip.wgmma == 0 ||
      to.problem.elementBytes != 1 || !to.problem.xFeatureMajor)
    return;
  Choices choices;
  // A table finds the rows of steps that are no whole windows.
  choices.rows = {kSwizzledLineBytes};
  choices.stages = {6, 5, 4, 3, 2};
  // Parts that are added in memory take 5 us longer, and parts of a cluster
  // twice the time where each has fewer steps (decision 111).
  choices.splits = {1};
  int64_t steps =
      to.problem.windows * to.encoding.getKeptRows() / kSwizzledLineBytes;
  for (int64_t parts : {2, 3, 4, 5, 6, 8})
    if (steps >= parts * kLeastPartSteps)
      choices.clusterSplits.push_back(parts);
  choices.mayCopyInBulk = true;
  choices.gathersWords = true;
  choices.tabulatesRows = true;
  for (Shape shape : shapes) {
    if (to.encoding.getBlockN() % shape.outputs != 0)
      continue;
    for (Role role : roles) {
      int64_t threads = shape.warpsTokens * shape.warpsOutputs * 32;
      if (role.persistent &&
          !getRegisterShares(threads, role.producers * 32, to.chip))
        continue;
      to.addShape(WgmmaRsAttr::get(to.encoding.getContext(),
                                   {shape.warpsTokens, shape.warpsOutputs}),
                  shape, role, choices);
    }
  }
}

namespace {
struct WgmmaRsCost
    : public ProductCostInterface::ExternalModel<WgmmaRsCost, WgmmaRsAttr> {
  LogicalResult verifyChip(Attribute,
                           function_ref<InFlightDiagnostic()> emitError,
                           const MatmulProblem &, const Chip &chip) const {
    if (chip.wgmma == 0)
      return emitError() << "has a schedule with product = wgmma_rs, which "
                         << chip.name
                         << " has no products of warpgroups for; sm_90a has "
                            "them";
    return success();
  }

  /// Elements of 8 bits are multiplied at twice the rate of 16.
  MathCeiling getCeiling(Attribute, const Chip &chip) const {
    return {2 * chip.wgmma, "wgmma_rs"};
  }
  MathUse getMathUse(Attribute, const MatmulProblem &problem) const {
    return {MathUnit::TensorCores, problem.getStoredRows()};
  }

  Work countWork(Attribute attribute, const MatmulProblem &problem,
                 const ScheduleAttr &schedule, const Chip &chip) const {
    auto product = cast<WgmmaRsAttr>(attribute);
    auto rows = double(schedule.getStepRows());
    auto tokens = double(schedule.getTileTokens());
    auto outputs = double(schedule.getTileOutputs());
    // Each instruction reads the values anew, and each warpgroup its tokens.
    double columns = double(product.getWarpgroupOutputs(schedule));
    double products = tokens / kProductTokens * outputs / columns;
    Work work =
        countTiles(problem, schedule, chip, 2.0 * tokens * outputs * rows,
                   rows * products * (kProductTokens + columns));
    work.products = products * rows / kProductRows;
    work.ownProducts =
        work.products * kWarpgroupWarps / double(product.getNumWarps());
    return work;
  }

  StringRef getFamily(Attribute, const ScheduleAttr &schedule) const {
    return schedule.isPersistent() ? "wgmma_rs, persistent" : "wgmma_rs";
  }
};
} // namespace

void nm_sparse::registerWgmmaRsCost(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, NMTileDialect *dialect) {
    WgmmaRsAttr::attachInterface<WgmmaRsCost>(*context);
    addScheduleProposer(*dialect, propose);
  });
}
