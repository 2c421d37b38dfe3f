//===- MmaSpCost.cpp - what sparse products of warps cost -----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../ProductAttrs.h"
#include "MmaSpCandidates.h"

#include "nm_sparse/Analysis/CountWork.h"
#include "nm_sparse/Analysis/ProductCost.h"

using namespace mlir;
using namespace mlir::nm_sparse;

/// Products in whose place the instructions issue that make a word of metadata
/// of bits; a guess as well.
static constexpr double kMetadataProducts = 1.0;

/// Lanes of a warp, and bytes of a word that each reads.
static constexpr int64_t kLanes = 32, kWordBytes = 4;

namespace {
/// The work of the warps of a CTA in a K step.
struct StepCounts {
  StepCounts(MmaSpAttr product, const MatmulProblem &problem,
             ScheduleAttr schedule)
      : kept(double(schedule.getTileRows())),
        rows(kept / double(problem.bitmap->values) *
             double(problem.bitmap->rows)),
        warps(double(product.getNumWarps())),
        warpTokens(double(schedule.getTileTokens()) /
                   double(product.getWarps()[0])),
        warpOutputs(double(schedule.getTileOutputs()) /
                    double(product.getWarps()[1])),
        words(warpOutputs / MmaSpAttr::kFragmentOutputs * rows /
              MmaSpAttr::kPairRows) {}

  /// Rows of the weight that are kept, and all of them.
  double kept, rows;
  double warps, warpTokens, warpOutputs;
  /// Words of metadata in each lane of a warp.
  double words;
};

struct MmaSpCost
    : public ProductCostInterface::ExternalModel<MmaSpCost, MmaSpAttr> {
  LogicalResult verifyChip(Attribute,
                           function_ref<InFlightDiagnostic()> emitError,
                           const MatmulProblem &problem,
                           const Chip &chip) const {
    auto instruction = problem.format->sparseMma;
    if (instruction && !instruction->existsOn(chip.name))
      return emitError() << "has a schedule with product = mma_sp, which "
                         << chip.name << " has no products of "
                         << problem.format->name << " for; "
                         << instruction->chip << " and newer have them";
    return success();
  }
  MathCeiling getCeiling(Attribute, const Chip &chip) const {
    return {2 * chip.mma, "mma_sp"};
  }
  MathUse getMathUse(Attribute, const MatmulProblem &problem) const {
    return {MathUnit::SparseTensorCores, problem.getStoredRows()};
  }

  Work countWork(Attribute attribute, const MatmulProblem &problem,
                 const ScheduleAttr &schedule, const Chip &chip) const {
    StepCounts step(cast<MmaSpAttr>(attribute), problem, schedule);
    auto bytes = double(problem.elementBytes);
    // Elements of 8 bits are multiplied at twice the rate of 16.
    double products =
        2.0 * step.warpTokens * step.warpOutputs * step.rows * bytes / 2.0;
    double product = 2.0 * MmaSpAttr::kFragmentOutputs *
                     MmaSpAttr::kFragmentTokens * MmaSpAttr::kPairRows / 2.0;
    double flops =
        step.warps * (products + kMetadataProducts * product * step.words);
    // A word of metadata is made of one of bits or, of 16-bit elements, two.
    double reads =
        step.warps *
        (bytes * (step.warpTokens * step.rows + step.warpOutputs * step.kept) +
         bytes * step.words * double(kLanes * kWordBytes));
    return countTiles(problem, schedule, chip, flops, reads);
  }

  StringRef getFamily(Attribute, const ScheduleAttr &) const {
    return "mma_sp";
  }
};
} // namespace

void nm_sparse::registerMmaSpCost(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, NMTileDialect *dialect) {
    MmaSpAttr::attachInterface<MmaSpCost>(*context);
    addScheduleProposer(*dialect, proposeMmaSp);
  });
}
