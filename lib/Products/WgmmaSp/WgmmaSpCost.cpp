//===- WgmmaSpCost.cpp - what products of sparse tensor cores cost --------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../ProductAttrs.h"
#include "WgmmaSpCandidates.h"

#include "nm_sparse/Analysis/CountWork.h"
#include "nm_sparse/Analysis/ProductCost.h"
#include "nm_sparse/Chip/Occupancy.h"
#include "nm_sparse/Dialect/NMTile/IR/TileLayout.h"
#include "nm_sparse/Products/WarpgroupTile.h"
#include "llvm/Support/MathExtras.h"

#include <numeric>

using namespace mlir;
using namespace mlir::nm_sparse;

/// Registers of a thread beside the accumulators of its warpgroup, where it is
/// the only one.
static constexpr int64_t kLoneRegisters = 38;
/// Bytes of a piece of the activations that a thread copies, at most.
static constexpr int64_t kMostPieceBytes = 16;

int64_t nm_sparse::getInnermostRows(const MatmulProblem &problem) {
  return problem.encoding.hasInnerLevel()
             ? problem.windows * problem.encoding.getKeptRows()
             : problem.getDenseRows();
}

/// CTAs that an SM holds. Those that pass registers on have it alone.
static int64_t getResidentCtas(const MatmulProblem &problem,
                               ScheduleAttr schedule, const Chip &chip) {
  constexpr int64_t mostGathering = 2;
  if (schedule.isPersistent() ||
      schedule.getProduct().getNumWarps() > kWarpgroupWarps)
    return 1;
  int64_t most = mostGathering;
  if (!schedule.gathersX()) {
    int64_t accumulators = schedule.getTileTokens() *
                           schedule.getTileOutputs() / (kWarpgroupWarps * 32);
    most = std::min(kMostLoneCtas,
                    getCtasByRegisters(schedule.getBlockThreads(),
                                       accumulators + kLoneRegisters));
  }
  return std::clamp<int64_t>(
      getCtasBySharedMemory(getSharedBytes(problem, schedule), chip), 1, most);
}

/// Bytes of a piece of the activations that a thread copies at once.
static int64_t getPieceBytes(const MatmulProblem &problem) {
  // Neighbours in the image are its last dimension.
  int64_t run = problem.patches ? problem.image.getShape().back() : 0;
  return run > 0 ? std::gcd(kMostPieceBytes, run * problem.elementBytes)
                 : kMostPieceBytes;
}

static Work countSparse(const MatmulProblem &problem, ScheduleAttr schedule,
                        const Chip &chip) {
  Work work = countWhole(problem, schedule,
                         getResidentCtas(problem, schedule, chip), chip);
  auto [steps, stepTiles] =
      countBitmapSteps(problem, schedule, getInnermostRows(problem));
  work.steps = steps;
  int64_t tokens = schedule.getTileTokens();
  auto outputs = double(schedule.getTileOutputs());
  auto bytes = double(problem.elementBytes);
  double rows = double(stepTiles * problem.bitmap->rows);
  // Elements of 8 bits are multiplied at twice the rate of 16, 32 bytes of each
  // output at once.
  double flops = 2.0 * double(tokens) * outputs * rows * bytes / 2.0;
  double warpgroups =
      double(schedule.getProduct().getNumWarps()) / kWarpgroupWarps;
  work.math = getMathSeconds(flops, 2 * chip.wgmma, chip);
  work.ownMath = work.math / warpgroups;
  work.products = outputs / kWarpgroupOutputs * double(stepTiles) * bytes / 2.0;
  work.ownProducts = work.products / warpgroups;

  // Rows that are gathered are those of each panel.
  double xRows = rows;
  if (schedule.gathersX())
    xRows *= double(schedule.getTilePanels(problem.encoding));
  auto copied = double(countBulkTokens(problem, tokens));
  double weight = double(stepTiles * problem.bitmap->values) * outputs *
                  getValueBytes(problem);
  work.shared = getSharedSeconds(xRows * double(tokens) * bytes + weight, chip);
  // The CTAs of a cluster share one or the other.
  double share = 1.0 / double(schedule.getClusterCTAs());
  double xBytes = xRows * bytes * (schedule.gathersX() ? 1.0 : share);
  work.x = getL2Seconds(xBytes * copied, chip);
  work.zeros =
      getL2Seconds(xBytes * std::max(0.0, double(tokens) - copied), chip);
  work.weight =
      getL2Seconds(weight * (schedule.gathersX() ? share : 1.0), chip);
  if (schedule.isBulk())
    return work;
  work.singles = countSingles(problem, schedule, xRows * copied);
  work.copies = xRows * double(tokens) * bytes /
                double(getPieceBytes(problem)) /
                double(std::max<int64_t>(1, schedule.getProducers()) * 32);
  return work;
}

namespace {
struct WgmmaSpCost
    : public ProductCostInterface::ExternalModel<WgmmaSpCost, WgmmaSpAttr> {
  LogicalResult verifyChip(Attribute,
                           function_ref<InFlightDiagnostic()> emitError,
                           const MatmulProblem &, const Chip &chip) const {
    if (chip.wgmma == 0)
      return emitError() << "has a schedule with product = wgmma_sp, which "
                         << chip.name
                         << " has no products of warpgroups for; sm_90a has "
                            "them";
    return success();
  }
  MathCeiling getCeiling(Attribute, const Chip &chip) const {
    return {2 * chip.wgmma, "wgmma_sp"};
  }
  MathUse getMathUse(Attribute, const MatmulProblem &problem) const {
    return {MathUnit::SparseTensorCores, problem.getStoredRows()};
  }
  StringRef getFamily(Attribute attribute, const ScheduleAttr &schedule) const {
    if (schedule.gathersX())
      return "wgmma_sp, gathered";
    if (schedule.isPersistent())
      return "wgmma_sp, persistent";
    return cast<WgmmaSpAttr>(attribute).getAhead() ? "wgmma_sp, ahead"
                                                   : "wgmma_sp";
  }
  Work countWork(Attribute, const MatmulProblem &problem,
                 const ScheduleAttr &schedule, const Chip &chip) const {
    return countSparse(problem, schedule, chip);
  }
};
} // namespace

void nm_sparse::registerWgmmaSpCost(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, NMTileDialect *dialect) {
    WgmmaSpAttr::attachInterface<WgmmaSpCost>(*context);
    addScheduleProposer(*dialect, proposeWgmmaSp);
  });
}
