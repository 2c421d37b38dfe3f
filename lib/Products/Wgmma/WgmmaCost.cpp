//===- WgmmaCost.cpp - what products of warpgroups cost -------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../ProductAttrs.h"
#include "WgmmaCandidates.h"

#include "nm_sparse/Analysis/ProductCost.h"
#include <numeric>

using namespace mlir;
using namespace mlir::nm_sparse;

// Fitted to bench/results/h200-random-fit.json to -fit-4, and among those of
// one layer to h200-model.json, -overlap, -split, -steps, -panels, -prefetch,
// -stream and -mma. The seconds of a tile of warps that also copy are raised
// from 0.4e-6: of small products that were measured with producers alone they
// came out too short. mathShare, l2Share, shown, step, copy, latency, tile,
// written, index
static constexpr FamilyCosts h200 = {0.773,    0.649,   0.163, 0.142e-6, 8e-9,
                                     0.417e-6, 0.65e-6, 0.958, 0.15e-9};
static constexpr FamilyCosts h200Producers = {
    1, 0.583, 0.0788, 0.0502e-6, 33.8e-9, 0.4e-6, 1.26e-6, 0.886, 0.0913e-9};
static constexpr FamilyCosts h200Persistent = {
    1.05, 0.609, 0.0711, 0.0737e-6, 28.6e-9, 0.919e-6, 0.388e-6, 1.09, 0.05e-9};

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

  double countFlops(Attribute, const MatmulProblem &,
                    const ScheduleAttr &schedule, double) const {
    return 2.0 * double(schedule.getTileTokens()) *
           double(schedule.getTileOutputs()) * double(schedule.getStepRows());
  }

  double countSharedReads(Attribute attribute, const MatmulProblem &problem,
                          const ScheduleAttr &schedule) const {
    // Each product reads 64 outputs and the tokens of its warpgroup, or, for a
    // token-major result or one that is transposed, 64 tokens and outputs of
    // one panel.
    auto product = cast<WgmmaAttr>(attribute);
    auto rows = double(schedule.getStepRows());
    int64_t tokens = schedule.getTileTokens();
    int64_t outputs = schedule.getTileOutputs();
    int64_t panel = problem.encoding.getBlockN();
    int64_t columns = product.getWarpgroupTokens(schedule);
    if (!problem.yFeatureMajor ||
        (problem.yTransposable &&
         product.getSumOwners(schedule, problem.encoding).tokensByPanel))
      columns = std::gcd(product.getWarpgroupOutputs(schedule),
                         panel < outputs ? panel : 256);
    double products =
        double(tokens) * double(outputs) / (64.0 * double(columns));
    return rows * 2.0 * products * (64.0 + double(columns));
  }

  StringRef getFamily(Attribute, const ScheduleAttr &schedule) const {
    if (schedule.getProducers() == 0)
      return "wgmma";
    return schedule.isPersistent() ? "wgmma, persistent" : "wgmma, producers";
  }

  const FamilyCosts &getCosts(Attribute, const ScheduleAttr &schedule,
                              const Chip &) const {
    if (schedule.getProducers() == 0)
      return h200;
    return schedule.isPersistent() ? h200Persistent : h200Producers;
  }

  double getExchangeStall(Attribute) const { return 6.0; }
};
} // namespace

void nm_sparse::registerWgmmaCost(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, NMTileDialect *dialect) {
    WgmmaAttr::attachInterface<WgmmaCost>(*context);
    addScheduleProposer(*dialect, proposeWgmma);
  });
}
