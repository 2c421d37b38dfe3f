//===- WgmmaCost.cpp - what products of warpgroups cost -------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../ProductAttrs.h"
#include "WgmmaCandidates.h"

#include "nm_sparse/Analysis/CountWork.h"
#include "nm_sparse/Analysis/ProductCost.h"
#include <numeric>

using namespace mlir;
using namespace mlir::nm_sparse;

/// Products of 64 outputs of a tile, or of as many tokens where these are rows,
/// and the columns that each has.
static std::pair<double, double> countProducts(WgmmaAttr product,
                                               const MatmulProblem &problem,
                                               ScheduleAttr schedule) {
  int64_t tokens = schedule.getTileTokens();
  int64_t outputs = schedule.getTileOutputs();
  int64_t panel = problem.encoding.getBlockN();
  int64_t columns = product.getWarpgroupTokens(schedule);
  if (!problem.yFeatureMajor ||
      (problem.yTransposable &&
       product.getSumOwners(schedule, problem.encoding).tokensByPanel))
    columns = std::gcd(product.getWarpgroupOutputs(schedule),
                       panel < outputs ? panel : 256);
  return {double(tokens) * double(outputs) / (64.0 * double(columns)),
          double(columns)};
}

namespace {
struct WgmmaCost
    : public ProductCostInterface::ExternalModel<WgmmaCost, WgmmaAttr> {
  LogicalResult verifyChip(Attribute,
                           function_ref<InFlightDiagnostic()> emitError,
                           const MatmulProblem &, const Chip &chip) const {
    if (chip.wgmma == 0)
      return emitError() << "has a schedule with product = wgmma, which "
                         << chip.name
                         << " has no products of warpgroups for; sm_90a has "
                            "them";
    return success();
  }

  MathCeiling getCeiling(Attribute, const Chip &chip) const {
    return {chip.wgmma, "wgmma"};
  }
  MathUse getMathUse(Attribute, const MatmulProblem &problem) const {
    return {MathUnit::TensorCores, problem.getStoredRows()};
  }

  Work countWork(Attribute attribute, const MatmulProblem &problem,
                 const ScheduleAttr &schedule, const Chip &chip) const {
    auto product = cast<WgmmaAttr>(attribute);
    auto rows = double(schedule.getStepRows());
    double flops = 2.0 * double(schedule.getTileTokens()) *
                   double(schedule.getTileOutputs()) * rows;
    auto [products, columns] = countProducts(product, problem, schedule);
    Work work =
        countTiles(problem, schedule, chip, flops,
                   /*sharedReads=*/rows * 2.0 * products * (64.0 + columns));
    // An instruction multiplies 16 rows.
    work.products = products * rows / 16.0;
    work.ownProducts = work.products * 4.0 / double(product.getNumWarps());
    return work;
  }

  StringRef getFamily(Attribute, const ScheduleAttr &schedule) const {
    if (schedule.getProducers() == 0)
      return "wgmma";
    return schedule.isPersistent() ? "wgmma, persistent" : "wgmma, producers";
  }
};
} // namespace

void nm_sparse::registerWgmmaCost(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, NMTileDialect *dialect) {
    WgmmaAttr::attachInterface<WgmmaCost>(*context);
    addScheduleProposer(*dialect, proposeWgmma);
  });
}
