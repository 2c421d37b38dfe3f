//===- ScheduleEnumerator.h - schedules of one tile -------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// For a tile and a product over it, which the product proposes, all schedules
// that the later stages can lower and that are not known to lose.
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_ANALYSIS_SCHEDULEENUMERATOR_H
#define NM_SPARSE_ANALYSIS_SCHEDULEENUMERATOR_H

#include "nm_sparse/Analysis/CostModel.h"

namespace mlir::nm_sparse {

class ScheduleEnumerator {
public:
  /// A CTA tile and the warps over it.
  struct Shape {
    int64_t tokens, outputs, warpsTokens, warpsOutputs;
  };

  /// The producers of a CTA, and the persistence of CTAs.
  struct Role {
    int64_t producers = 0;
    bool persistent = false;
  };

  /// How activations and positions come: names of transfers.
  struct Modes {
    StringLiteral x, index;
  };

  /// The choices of a product for a tile, which are enumerated in each
  /// combination.
  struct Choices {
    /// Kept rows of a K step.
    SmallVector<int64_t> rows;
    ArrayRef<Modes> modes = gathered();
    SmallVector<int64_t> stages = {4, 3, 2};
    SmallVector<int64_t> splits = {1, 2, 4, 8};
    /// CTAs of a cluster that divide the contraction of a tile, tried where its
    /// tiles leave SMs without one.
    SmallVector<int64_t> clusterSplits = {};
    /// Values may come through the tensor memory accelerator.
    bool mayCopyInBulk = false;
    /// The parts of more than 64 accumulators of a thread can be added: that
    /// takes registers, which producers may leave to the others.
    bool addsLargeParts = false;
    /// Gathers look rows up in a table, where L1 need not shrink for it.
    bool tabulatesRows = false;
    /// Activations must come 16 bytes at a time.
    bool gathersWords = false;
    /// A tile must be whole panels, or lie inside one.
    bool alignsPanels = true;
  };

  /// Gathers of activations; the index is resident for them.
  static ArrayRef<Modes> gathered();

  /// Returns true if clusters of `parts` CTAs, each with a part of a tile of
  /// `tokens` x `outputs`, leave fewer SMs without work than CTAs with a tile
  /// each do, and run all at once.
  bool gainsFromClusters(int64_t tokens, int64_t outputs, int64_t parts) const;
  /// Returns true if each CTA of a cluster has rows of a tile to add up, where
  /// clusters share tiles.
  bool haveRowsInCluster(ScheduleAttr schedule) const;

  ScheduleEnumerator(const MatmulProblem &problem, const Chip &chip)
      : problem(problem), chip(chip), encoding(problem.encoding) {}

  /// Kept rows of a K step of whole windows, `low` to `high` of them, as far as
  /// possible a multiple of `unit`.
  SmallVector<int64_t> getRows(int64_t low, int64_t high, int64_t unit) const;
  /// Adds steps of 64 kept rows where no whole windows make 64: for gathers,
  /// which find rows in a table then.
  void addPartsOfWindows(SmallVectorImpl<int64_t> &rows) const;
  /// Adds a step that is part of a window where whole ones are so long that
  /// shared memory has no room for two of them beside usual tiles.
  void addPartsOfLongWindows(SmallVectorImpl<int64_t> &rows,
                             int64_t unit) const;
  /// If none of `shapes` aligns with the panels, such as those of 96 outputs,
  /// adds tiles of whole panels. For panels wider than any tile, it adds tiles
  /// of divisors of them, in multiples of `outputUnit`.
  void addShapesOfPanels(SmallVectorImpl<Shape> &shapes,
                         int64_t outputUnit) const;
  /// Considers all `choices` for `product`, whose warps share `shape`.
  void addShape(ProductAttrInterface product, Shape shape, Role role,
                const Choices &choices);
  /// Considers `schedule` alone, unless its product knows one level and the
  /// encoding has two.
  void add(ScheduleAttr schedule, const Prediction &prediction) {
    if (!encoding.hasInnerLevel() || schedule.getOperandTiles().innerLevels)
      ranked.emplace_back(schedule, prediction);
  }

  /// The schedules that were considered so far and fit, in that order.
  SmallVector<std::pair<ScheduleAttr, Prediction>> ranked;

  const MatmulProblem &problem;
  const Chip &chip;
  EncodingAttr encoding;

private:
  bool keepsL1(ScheduleAttr schedule, StringRef index) const;
  bool isTableWorthwhile(ScheduleAttr schedule) const;
  bool isIndexWorthwhile(ScheduleAttr schedule) const;
  /// False where the schedule is not legal, does not fit, or is no use.
  bool addOne(ProductAttrInterface product, Shape shape, Role role,
              int64_t rows, int64_t stages, GridAttrInterface grid, Modes modes,
              const Choices &choices);
  /// As addOne, positions as they are best found; false where all are.
  bool addModes(ProductAttrInterface product, Shape shape, Role role,
                int64_t rows, int64_t stages, GridAttrInterface grid,
                const Choices &choices);
  void addClusterSplits(ProductAttrInterface product, Shape shape, Role role,
                        int64_t rows, const Choices &choices);
};

/// Proposes schedules of one product for the problem of an enumerator.
using ScheduleProposer = void (*)(ScheduleEnumerator &);

/// Adds `proposer` to those that rankSchedules() asks, behind the others. A
/// product does so when it is registered.
void addScheduleProposer(NMTileDialect &dialect, ScheduleProposer proposer);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_ANALYSIS_SCHEDULEENUMERATOR_H
