//===- ScheduleEnumerator.cpp - schedules of one tile ---------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Analysis/ScheduleEnumerator.h"
#include "nm_sparse/Analysis/CostTable.h"
#include "nm_sparse/Analysis/CountWork.h"
#include "nm_sparse/Analysis/ProductCost.h"
#include "nm_sparse/Chip/Occupancy.h"
#include "nm_sparse/Dialect/NMTile/IR/ClusterPieces.h"
#include "nm_sparse/Dialect/NMTile/IR/TileLayout.h"

#include "llvm/Support/MathExtras.h"
#include <numeric>

using namespace mlir;
using namespace mlir::nm_sparse;

ArrayRef<ScheduleEnumerator::Modes> ScheduleEnumerator::gathered() {
  static constexpr Modes modes[] = {{"gather", "resident"}};
  return modes;
}

SmallVector<int64_t> ScheduleEnumerator::getRows(int64_t low, int64_t high,
                                                 int64_t unit) const {
  int64_t n = encoding.getKeptRows();
  SmallVector<int64_t> choices;
  if (problem.raggedRows) {
    for (int64_t rows = low; rows <= high; rows *= 2)
      if (problem.raggedRows % rows == 0)
        choices.push_back(rows);
    return choices;
  }
  for (int64_t rows = low; rows <= high; rows *= 2) {
    int64_t windows = std::max<int64_t>(1, rows / n);
    // Whole units waste nothing.
    if (windows * n % unit != 0) {
      int64_t whole = unit / std::gcd<int64_t>(unit, n);
      windows = std::max(whole, windows / whole * whole);
      if (windows * n > 2 * high)
        windows = std::max<int64_t>(1, rows / n);
    }
    windows = std::min(windows, problem.windows);
    if (!llvm::is_contained(choices, windows * n))
      choices.push_back(windows * n);
  }
  return choices;
}

/// Steps of 64 kept rows for which a table of rows pays, if it is not needed.
static constexpr int64_t kTableSteps = 8;

void ScheduleEnumerator::addPartsOfWindows(
    SmallVectorImpl<int64_t> &rows) const {
  constexpr int64_t step = 64;
  if (problem.raggedRows)
    return;
  // Where whole windows are multiples of 16 too, a table for fewer steps costs
  // 1 to 2 % of a product of less than 10 us.
  bool hasChoice = llvm::any_of(rows, [](int64_t n) { return n % 16 == 0; });
  int64_t least = hasChoice ? kTableSteps * step : step;
  if (!llvm::is_contained(rows, step) && step % encoding.getBlockK() == 0 &&
      problem.windows * encoding.getKeptRows() >= least)
    rows.push_back(step);
}

void ScheduleEnumerator::addPartsOfLongWindows(SmallVectorImpl<int64_t> &rows,
                                               int64_t unit) const {
  constexpr int64_t longRows = 256, step = 64;
  if (problem.raggedRows || encoding.getKeptRows() < longRows)
    return;
  int64_t whole = std::lcm(encoding.getBlockK(), unit);
  int64_t part = llvm::alignTo(step, whole);
  if (!llvm::is_contained(rows, part))
    rows.push_back(part);
}

void ScheduleEnumerator::addShapesOfPanels(SmallVectorImpl<Shape> &shapes,
                                           int64_t outputUnit) const {
  int64_t bn = encoding.getBlockN();
  auto isAligned = [bn](int64_t outputs) {
    return outputs % bn == 0 || bn % outputs == 0;
  };
  if (llvm::any_of(shapes, [&](Shape s) { return isAligned(s.outputs); }))
    return;
  for (int64_t outputs = outputUnit; outputs <= 256; outputs += outputUnit) {
    if (!isAligned(outputs))
      continue;
    int64_t warps = 1;
    for (int64_t w : {2, 4})
      if (outputs % (w * outputUnit) == 0)
        warps = w;
    for (int64_t tokens : {64, 16})
      if (tokens / 8 * outputs / (outputUnit * warps) <= 128)
        shapes.push_back({tokens, outputs, 1, warps});
  }
}

/// Returns true if the SM sets aside as much of L1 with `schedule` as with
/// `index` instead of its own.
bool ScheduleEnumerator::keepsL1(ScheduleAttr schedule, StringRef index) const {
  MLIRContext *context = encoding.getContext();
  auto positions =
      context->getLoadedDialect<NMTileDialect>()->getTransfer(index);
  if (!positions)
    return true;
  TransfersAttr transfers = schedule.getTransfers();
  auto other =
      ScheduleAttr::get(context, schedule.getTile(), schedule.getProduct(),
                        TransfersAttr::get(context, transfers.getX(),
                                           transfers.getValues(), positions),
                        schedule.getPipeline(), schedule.getGrid());
  return getSharedCarveout(getSharedBytes(problem, schedule), chip) ==
         getSharedCarveout(getSharedBytes(problem, other), chip);
}

/// Where positions would do, a table of rows must not take memory from L1: with
/// 32 KB less, products take up to 10 % longer. What gains less than 1 % from
/// one keeps positions: tiles of several panels, steps of more than 64 rows,
/// and products of few steps, of more where CTAs have a tile each and wait for
/// it.
bool ScheduleEnumerator::isTableWorthwhile(ScheduleAttr schedule) const {
  if (problem.raggedRows ||
      schedule.getTileRows() % encoding.getKeptRows() != 0)
    return true;
  int64_t rows = problem.windows * encoding.getKeptRows();
  int64_t least = (schedule.isPersistent() ? 1 : 2) * kTableSteps * 64 + 1;
  return schedule.getTilePanels(encoding) == 1 &&
         schedule.getTileRows() <= 64 && rows >= least &&
         keepsL1(schedule, "resident");
}

/// Returns true if all positions of a panel are worth the shared memory that
/// they take beside those of a ring: f32 blocks of 4 x 4 take 1 % longer where
/// an SM's only CTA leaves less of L1 for them.
bool ScheduleEnumerator::isIndexWorthwhile(ScheduleAttr schedule) const {
  if (schedule.hasRowTable())
    return isTableWorthwhile(schedule);
  bool hasChoice = schedule.hasResidentIndex() && !schedule.gathersX();
  bool fillsSM = getSharedBytes(problem, schedule) > 196 * 1024;
  return !hasChoice || !fillsSM || keepsL1(schedule, "staged");
}

bool ScheduleEnumerator::addOne(ProductAttrInterface product, Shape shape,
                                Role role, int64_t rows, int64_t stages,
                                GridAttrInterface grid, Modes modes,
                                const Choices &choices) {
  // For sm_100a ptxas still spills 12 bytes with what producers leave.
  int64_t accumulators = shape.tokens * shape.outputs /
                         (shape.warpsTokens * shape.warpsOutputs * 32);
  // One window may have more.
  if (rows > ScheduleAttr::kMostExtent)
    return false;
  if (grid.getParts() > 1 && !grid.exchangesInCluster() && accumulators > 64 &&
      !choices.addsLargeParts)
    return false;
  // A box of the accelerator is all rows of a step, 64 outputs wide.
  bool isBulk = choices.mayCopyInBulk && role.producers > 0 && rows % 16 == 0 &&
                rows <= 256 && shape.outputs % 64 == 0;
  MLIRContext *context = encoding.getContext();
  auto transfers = TransfersAttr::getNamed(
      context, modes.x, isBulk ? "bulk" : "copy", modes.index);
  if (!transfers)
    return false;
  PipelineAttrInterface pipeline = AsyncGroupsAttr::get(context, stages);
  if (role.producers > 0)
    pipeline = RingAttr::get(context, stages, role.producers);
  auto schedule =
      ScheduleAttr::get(context, {shape.tokens, shape.outputs, rows}, product,
                        transfers, pipeline, grid);
  if (!haveRowsInCluster(schedule))
    return false;
  // A gather of rows needs their positions at once: the index is resident.
  bool aligned = schedule.isPanelAligned(encoding);
  if (!aligned && (choices.alignsPanels || schedule.gathersX()))
    return false;
  if (schedule.gathersX() && !schedule.hasResidentIndex() &&
      !schedule.hasRowTable())
    return false;
  int64_t unit =
      schedule.hasRowTable()
          ? std::lcm(encoding.getBlockK(), product.getOperandTiles().rowUnit)
          : encoding.getKeptRows();
  if (rows % unit != 0)
    return false;
  // Gathering a token-major x element by element takes longer than multiplying.
  if (choices.gathersWords && !problem.xFeatureMajor &&
      !keepsTokensAsRows(schedule, encoding, problem.elementBytes))
    return false;
  if (getSharedBytes(problem, schedule) > chip.sharedBytes - 1024 ||
      !isIndexWorthwhile(schedule))
    return false;
  Work work = getCost(schedule).countWork(problem, schedule, chip);
  // Beyond 16 copies of a step, producers that gather copy in a loop: 24 take
  // three times as long as 16.
  if (isBulk && work.copies > 16)
    return false;
  Prediction prediction = predict(problem, schedule, chip, work);
  // The large tiles of persistent CTAs have enough bytes on the way: 8 steps of
  // 32 rows take up to 8 % longer than 4 of 64.
  if (role.persistent && stages > 4 && rows <= 32)
    return false;
  // A persistent CTA with one tile has none to fetch ahead, and parts of tiles
  // on the way from one to the next take twice the time of CTAs of their own.
  if (role.persistent &&
      (prediction.ctas <= chip.multiprocessors || grid.getParts() > 1))
    return false;
  add(schedule, prediction);
  return true;
}

bool ScheduleEnumerator::addModes(ProductAttrInterface product, Shape shape,
                                  Role role, int64_t rows, int64_t stages,
                                  GridAttrInterface grid,
                                  const Choices &choices) {
  bool needsTable = rows % encoding.getKeptRows() != 0, added = false;
  auto addMode = [&](Modes mode) {
    bool isNew =
        addOne(product, shape, role, rows, stages, grid, mode, choices);
    added |= isNew;
    return isNew;
  };
  for (Modes mode : choices.modes) {
    bool isGathered = mode.x == "gather";
    if (problem.raggedRows) {
      // The rows of a panel are where its values are.
      if (isGathered && encoding.getBlockN() % shape.outputs == 0)
        addMode({mode.x, "rows"});
      continue;
    }
    bool mayHaveTable = isGathered && (needsTable || choices.tabulatesRows);
    if (!mayHaveTable || !addMode({mode.x, "rows"}))
      addMode(mode);
  }
  return added;
}

bool ScheduleEnumerator::gainsFromClusters(int64_t tokens, int64_t outputs,
                                           int64_t parts) const {
  // Fewer tokens were not measured: reading the weight alone takes their time.
  constexpr int64_t kLeastTokens = 33;
  if (!chip.hasClusters() || problem.raggedRows ||
      problem.tokens < kLeastTokens)
    return false;
  int64_t tiles = problem.batch * llvm::divideCeil(problem.tokens, tokens) *
                  llvm::divideCeil(problem.outputs, outputs);
  return tiles <= getRunningClusters(parts, chip) &&
         2 * tiles * parts > chip.multiprocessors;
}

bool ScheduleEnumerator::haveRowsInCluster(ScheduleAttr schedule) const {
  return !schedule.splitsInCluster() ||
         ClusterPieces(schedule, problem.yFeatureMajor).haveRows();
}

/// In the deepest ring of each that fits and that the steps of a part fill.
void ScheduleEnumerator::addClusterSplits(ProductAttrInterface product,
                                          Shape shape, Role role, int64_t rows,
                                          const Choices &choices) {
  int64_t steps =
      llvm::divideCeil(problem.windows * encoding.getKeptRows(), rows);
  for (int64_t parts : choices.clusterSplits)
    if (gainsFromClusters(shape.tokens, shape.outputs, parts)) {
      auto grid = FlatGridAttr::get(encoding.getContext(), parts,
                                    /*inCluster=*/true, /*cluster=*/1);
      for (int64_t stages : choices.stages)
        if (steps >= parts * stages &&
            addModes(product, shape, role, rows, stages, grid, choices))
          break;
    }
}

void ScheduleEnumerator::addShape(ProductAttrInterface product, Shape shape,
                                  Role role, const Choices &choices) {
  MLIRContext *context = encoding.getContext();
  for (int64_t step : choices.rows) {
    for (int64_t stages : choices.stages)
      for (int64_t splitK : choices.splits) {
        int64_t steps =
            llvm::divideCeil(problem.windows * encoding.getKeptRows(), step);
        if (splitK > 1 && (steps < splitK * stages || problem.raggedRows))
          continue;
        GridAttrInterface grid = FlatGridAttr::get(context, splitK);
        if (role.persistent)
          grid = PersistentGridAttr::get(context, splitK, /*streamK=*/false);
        addModes(product, shape, role, step, stages, grid, choices);
      }
    if (!role.persistent)
      addClusterSplits(product, shape, role, step, choices);
  }
}
