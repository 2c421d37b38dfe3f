//===- WgmmaExpandCost.cpp - what products of expanded weights cost -------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A CTA multiplies, expands and copies at the same time. Many tokens are bound
// by the products, few by the weights of device memory or, where these are
// small, by what it takes to expand them.
//
//===----------------------------------------------------------------------===//

#include "../ProductAttrs.h"
#include "KeptBounds.h"
#include "WgmmaExpandCandidates.h"
#include "nm_sparse/Analysis/CountWork.h"
#include "nm_sparse/Analysis/ProductCost.h"
#include "nm_sparse/Analysis/ScheduleEnumerator.h"
#include "nm_sparse/Chip/Occupancy.h"
#include "llvm/Support/MathExtras.h"
#include <cmath>
#include <initializer_list>

using namespace mlir;
using namespace mlir::nm_sparse;

/// Instructions of each scheduler for a fragment, 64 outputs by 16 rows of 16
/// bits, or 32 of 8; and the part by which those have more whose values lie in
/// pieces that are known at run time.
static constexpr double kFragmentInstructions = 60, kSeveralPieces = 0.5;

static constexpr int64_t kWarpgroup = 128, kProductOutputs = 64;

/// CTAs that an SM holds. Those that pass registers on have it alone.
static int64_t getResidentCtas(const MatmulProblem &problem,
                               ScheduleAttr schedule, const Chip &chip) {
  if (schedule.isPersistent() ||
      getRegisterShares(schedule.getNumThreads(), kWarpgroup, chip,
                        /*lean=*/true))
    return 1;
  int64_t accumulators = schedule.getTileTokens() * schedule.getTileOutputs() /
                         schedule.getNumThreads();
  return getCtasPerSM(getSharedBytes(problem, schedule),
                      schedule.getBlockThreads(), accumulators, chip);
}

/// The part of the groups of rows of a tile whose values lie in several pieces.
static double getSeveralPieces(EncodingAttr encoding, BitmapTile tile,
                               int64_t elementBytes) {
  int64_t pieceValues = BitmapTile::kPieceBytes / elementBytes;
  int64_t registerRows = 4 / elementBytes, groupRows = 4 * registerRows;
  int64_t count = 0;
  for (int64_t row = 0; row < tile.rows; row += groupRows)
    if (!KeptBounds::get(encoding, row, registerRows).getPiece(pieceValues))
      ++count;
  return double(count * groupRows) / double(tile.rows);
}

static Work countExpanded(const MatmulProblem &problem, ScheduleAttr schedule,
                          const Chip &chip) {
  const BitmapTile &tile = *problem.bitmap;
  Work work = countWhole(problem, schedule,
                         getResidentCtas(problem, schedule, chip), chip);
  auto [steps, stepTiles] =
      countBitmapSteps(problem, schedule, problem.getDenseRows());
  work.steps = steps;
  int64_t tokens = schedule.getTileTokens();
  auto outputs = double(schedule.getTileOutputs());
  auto bytes = double(problem.elementBytes);
  auto rows = double(stepTiles * tile.rows);
  // Elements of 8 bits are multiplied at twice the rate of 16.
  work.math =
      getMathSeconds(double(tokens) * outputs * rows * bytes, chip.wgmma, chip);
  double fragments = outputs / kProductOutputs * rows * bytes / 32.0;
  work.products = fragments;
  double pieces =
      schedule.getOperandTiles().isSegmented()
          ? 1.0
          : 1.0 + kSeveralPieces * getSeveralPieces(problem.encoding, tile,
                                                    problem.elementBytes);
  work.issued = fragments * kFragmentInstructions * pieces;
  // Warpgroups that share a tile divide its rows.
  double warpgroups = double(schedule.getProduct().getNumWarps()) / 4.0;
  work.ownMath = work.math / warpgroups;
  work.ownProducts = work.waits = fragments / warpgroups;

  int64_t copied = countBulkTokens(problem, tokens);
  double weight =
      double(stepTiles * tile.values) * outputs * getValueBytes(problem);
  work.x = getL2Seconds(rows * double(copied) * bytes, chip);
  work.weight = getL2Seconds(weight, chip);
  work.shared = getSharedSeconds(rows * double(tokens) * bytes + weight, chip);
  int64_t shares = schedule.getSumOwners(problem.encoding).shares;
  if (shares > 1)
    work.sums = double(shares * std::min(tokens, problem.tokens)) * outputs /
                double(schedule.getNumThreads());
  return work;
}

namespace {
struct WgmmaExpandCost
    : public ProductCostInterface::ExternalModel<WgmmaExpandCost,
                                                 WgmmaExpandAttr> {
  LogicalResult verifyChip(Attribute,
                           function_ref<InFlightDiagnostic()> emitError,
                           const MatmulProblem &, const Chip &chip) const {
    if (chip.wgmma == 0)
      return emitError() << "has a schedule with product = wgmma_expand, which "
                         << chip.name
                         << " has no products of warpgroups for; sm_90a has "
                            "them";
    return success();
  }
  MathCeiling getCeiling(Attribute, const Chip &chip) const {
    return {chip.wgmma, "wgmma"};
  }
  MathUse getMathUse(Attribute, const MatmulProblem &problem) const {
    return {MathUnit::TensorCores, double(problem.getDenseRows())};
  }
  StringRef getFamily(Attribute attribute, const ScheduleAttr &schedule) const {
    if (schedule.isPersistent())
      return "wgmma_expand, persistent";
    return cast<WgmmaExpandAttr>(attribute).getAhead() ? "wgmma_expand, ahead"
                                                       : "wgmma_expand";
  }
  Work countWork(Attribute, const MatmulProblem &problem,
                 const ScheduleAttr &schedule, const Chip &chip) const {
    return countExpanded(problem, schedule, chip);
  }
};
} // namespace

void nm_sparse::registerWgmmaExpandCost(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, NMTileDialect *dialect) {
    WgmmaExpandAttr::attachInterface<WgmmaExpandCost>(*context);
    addScheduleProposer(*dialect, proposeWgmmaExpand);
  });
}
