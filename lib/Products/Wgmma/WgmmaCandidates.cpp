//===- WgmmaCandidates.cpp - schedules worth comparing --------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "WgmmaCandidates.h"
#include "../ProductAttrs.h"

#include "nm_sparse/Chip/Occupancy.h"
#include "nm_sparse/Dialect/NMTile/IR/TileLayout.h"

using namespace mlir;
using namespace mlir::nm_sparse;

using Shape = ScheduleEnumerator::Shape;
using Role = ScheduleEnumerator::Role;
using Choices = ScheduleEnumerator::Choices;

/// One or two warpgroups, side by side along tokens or outputs, with 128
/// accumulators of a thread or fewer: more leave no registers for the rest.
static constexpr Shape shapes[] = {
    {128, 256, 1, 8}, {256, 128, 1, 8}, {256, 128, 2, 4}, {128, 128, 1, 8},
    {128, 128, 2, 4}, {64, 256, 1, 8},  {256, 64, 2, 4},  {64, 128, 1, 8},
    {128, 64, 2, 4},  {256, 64, 1, 4},  {128, 128, 1, 4}, {64, 64, 1, 4}};

/// Warps that only copy are a warpgroup, so that registers can be moved.
static constexpr Role roles[] = {{0, false}, {4, false}, {4, true}};

/// The shapes for the encoding and the layout of `problem`.
static SmallVector<Shape> getShapes(const MatmulProblem &problem) {
  SmallVector<Shape> all(std::begin(shapes), std::end(shapes));
  // Products of 64 tokens and all 256 outputs of a panel take up to 5 % less
  // time than those of 64 outputs and 128 tokens.
  if (problem.encoding.getBlockN() % 256 == 0 &&
      (problem.yTransposable || !problem.yFeatureMajor))
    all.insert(all.begin(), {128, 256, 2, 4});
  // Whole tiles of 128 or 256 tokens waste up to half of the products of 131 to
  // 192 tokens, and a quarter of those of 260 to 384 and 520 to 576.
  all.append({{192, 128, 1, 8}, {192, 128, 3, 4}, {192, 64, 1, 4}});
  return all;
}

/// Kept rows of a K step: 32 to 64, or 96, for which the largest tile has room
/// in three stages.
static SmallVector<int64_t> getRows(const ScheduleEnumerator &to) {
  SmallVector<int64_t> rows = to.getRows(32, 64, /*unit=*/16);
  int64_t kept = to.encoding.getKeptRows();
  if (!to.problem.raggedRows && 96 % kept == 0 &&
      to.problem.windows % (96 / kept) == 0)
    rows.push_back(96);
  // A token-major x lies in lines of 64 kept rows.
  if (!to.problem.xFeatureMajor)
    llvm::erase_if(rows,
                   [](int64_t count) { return count % kSwizzledColumns != 0; });
  to.addPartsOfWindows(rows);
  return rows;
}

/// Returns true if threads have the registers for `shape` in `role`.
static bool hasRegisters(const ScheduleEnumerator &to, Shape shape, Role role) {
  int64_t consumers = shape.warpsTokens * shape.warpsOutputs * 32;
  int64_t accumulators = shape.tokens * shape.outputs / consumers;
  // One warpgroup that multiplies beside one that copies has the registers it
  // needs from the start. Such small tiles are for few tokens, where no CTA has
  // a second tile.
  if (role.persistent &&
      !getRegisterShares(consumers, role.producers * 32, to.chip))
    return false;
  // Threads that also gather for several panels spill up to 150 bytes beside so
  // many accumulators.
  return role.producers > 0 || accumulators <= 64 ||
         shape.outputs <= to.encoding.getBlockN();
}

/// Returns true if tiles of 256 x 64 take less time in a ring of 5 steps than
/// in one of 4. It leaves 32 KB less of L1: blocks of several rows, of
/// activations that stay in L2, take 1 to 6 % less time, single rows up to 10 %
/// more, and 64 x 64 blocks at 8192^3 up to 7 % more.
static bool gainsFromFive(const ScheduleEnumerator &to) {
  static constexpr int64_t kL2Bytes = 50 << 20;
  const MatmulProblem &problem = to.problem;
  int64_t features = problem.windows * to.encoding.getWindowRows();
  int64_t xBytes =
      problem.batch * problem.tokens * features * problem.elementBytes;
  return to.encoding.getBlockK() > 1 && xBytes <= kL2Bytes;
}

/// Small tiles need deep rings to have as many bytes on the way: those of few
/// tokens. With many, 128 x 128 tiles of persistent CTAs in rings of 6 and 8
/// take 5 to 18 % longer than 256 x 128 in one of 4. Without producers the
/// copies ahead of the loop are code of their own.
static void addTiles(ScheduleEnumerator &to) {
  SmallVector<int64_t> rows = getRows(to);
  for (Shape shape : getShapes(to.problem))
    for (Role role : roles) {
      if (!hasRegisters(to, shape, role))
        continue;
      bool isDeep = role.producers > 0 && !role.persistent;
      Choices choices;
      choices.rows = rows;
      choices.stages = {4, 3, 2};
      if (isDeep)
        choices.stages = {8, 6, 5, 4, 3, 2};
      else if (role.persistent && shape.outputs == 64 && gainsFromFive(to))
        choices.stages = {5, 4, 3, 2};
      if (role.producers > 0)
        choices.clusterSplits = {2, 3, 4, 5, 6, 8};
      choices.mayCopyInBulk = true;
      choices.gathersWords = true;
      choices.tabulatesRows = true;
      // Tiles of 64 x 64 are for products of few steps: half as many of 128
      // rows take 3 to 12 % less time. Larger tiles gain nothing from them, and
      // fewer tokens than a tile has stay with mma.sync: a token-major result
      // of 8 spills 144 bytes from such a tile.
      if (isDeep && shape.tokens * shape.outputs <= 64 * 64 &&
          to.problem.tokens >= shape.tokens)
        for (int64_t step : to.getRows(128, 128, /*unit=*/16))
          if (!llvm::is_contained(choices.rows, step) &&
              (to.problem.xFeatureMajor || step % kSwizzledColumns == 0))
            choices.rows.push_back(step);
      auto product = WgmmaAttr::get(to.encoding.getContext(),
                                    {shape.warpsTokens, shape.warpsOutputs});
      to.addShape(product, shape, role, choices);
    }
}

/// Bytes of values that L2 must keep from the time one CTA reads them until the
/// last one does that has other tokens: those at different places of the
/// contraction read them a part of a tile apart.
static double getKeptValues(const ScheduleEnumerator &to, ScheduleAttr schedule,
                            int64_t ctas) {
  const MatmulProblem &problem = to.problem;
  // The last whole wave is shared as well.
  double waves = double(ctas) / double(to.chip.multiprocessors);
  double shares = waves - std::floor(waves) + 1.0;
  auto readers =
      double(llvm::divideCeil(problem.tokens, schedule.getTileTokens()));
  double tiles = shares * double(to.chip.multiprocessors);
  double bytes = tiles / readers * double(schedule.getTileOutputs()) *
                 double(problem.windows * problem.encoding.getKeptRows() *
                        problem.elementBytes);
  return bytes * std::min(1.0, (shares - 1.0) * (readers - 1.0));
}

/// Tiles that persistent CTAs share, where else the last wave would leave many
/// without. The largest ones only: smaller ones read more from L2, which is
/// what bounds CTAs at different places of the contraction.
static void addSharedTiles(ScheduleEnumerator &to) {
  if (to.ranked.empty() || to.problem.raggedRows)
    return;
  // Values that do not stay in L2 come from DRAM again for each reader: where
  // it would have to keep 54 MB, 256 x 22016 x 8192 (50 %, tiles of 128 x 256)
  // takes 20 % longer than whole tiles, and 1024 x 5120 x 20480 (75 %) at 33 MB
  // 133 us instead of 109; at 22 MB, 2048 x 6656 x 17920 (75 %) gains 8 %. An
  // L2 of 50 MB in two halves holds twice what SMs on both sides read.
  static constexpr double kMostKept = 25e6;
  size_t count = to.ranked.size();
  for (size_t i = 0; i < count; ++i) {
    ScheduleAttr whole = to.ranked[i].first;
    if (!isa<WgmmaAttr>(Attribute(whole.getProduct())) ||
        !whole.isPersistent() ||
        whole.getTileTokens() * whole.getTileOutputs() < 256 * 128)
      continue;
    ScheduleAttr shared = whole.withGrid(PersistentGridAttr::get(
        whole.getContext(), /*splitK=*/1, /*streamK=*/true));
    Prediction prediction = predict(to.problem, shared, to.chip);
    if (getKeptValues(to, shared, prediction.ctas) < kMostKept)
      to.add(shared, prediction);
  }
}

void nm_sparse::proposeWgmma(ScheduleEnumerator &to) {
  // The 64 outputs of a product share their rows.
  if (!to.problem.tensorCores || to.problem.bitmap || to.problem.valuesKMajor ||
      to.chip.wgmma == 0 || !to.problem.gathersWords() ||
      to.encoding.getBlockN() % 64 != 0)
    return;
  addTiles(to);
  addSharedTiles(to);
}
