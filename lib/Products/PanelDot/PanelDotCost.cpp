//===- PanelDotCost.cpp - what panel_dot costs ----------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Device memory bounds a product of one token, and where there are few CTAs or
// several tokens, what each group of lanes does one after the other: it waits
// for rows, adds sums, and exchanges them where CTAs share a tile.
//
//===----------------------------------------------------------------------===//

#include "../ProductAttrs.h"
#include "PanelDotRegisters.h"
#include "nm_sparse/Analysis/CountWork.h"
#include "nm_sparse/Analysis/ProductCost.h"
#include "nm_sparse/Analysis/ScheduleEnumerator.h"
#include "nm_sparse/Chip/Occupancy.h"
#include "llvm/Support/MathExtras.h"
#include <cmath>
#include <numeric>

using namespace mlir;
using namespace mlir::nm_sparse;

/// Tokens above which no number of passes over the weight pays.
static constexpr int64_t kMostTokens = 48;

/// Bytes of a kept row that a lane reads at once.
static constexpr int64_t kReadBytes = 16;

static constexpr int64_t kRegistersPerSM = 65536;

static constexpr double kSchedulers = 4;
/// Instructions of a warp for one row beside those for each output of a lane;
/// for each token of it beside those; and where K steps are not whole or kept
/// rows of a window are no power of two, to find the row of an activation.
static constexpr double kRow = 1, kToken = 9, kPlace = 15;
/// Those of a row that wait for each other, and of such a place.
static constexpr double kChained = 7, kChainedPlace = 2;

/// The work of a problem under a schedule.
struct PanelDotCounts {
  PanelDotCounts(const MatmulProblem &problem, ScheduleAttr schedule)
      : parts(schedule.getSplitK()),
        shares(schedule.getSumOwners(problem.encoding).shares),
        warps(schedule.getProduct().getNumWarps()),
        tokens(schedule.getTileTokens()),
        outputs(kReadBytes / problem.elementBytes) {
    EncodingAttr encoding = problem.encoding;
    int64_t kept = encoding.getKeptRows(), stepRows = schedule.getStepRows();
    columns = int64_t(llvm::alignTo(problem.outputs, encoding.getBlockN()));
    rows = problem.windows * kept;
    passes = llvm::divideCeil(problem.tokens, tokens);
    tiles =
        problem.batch * llvm::divideCeil(columns, schedule.getTileOutputs());
    int64_t most = llvm::divideCeil(llvm::divideCeil(rows, stepRows), parts);
    steps = std::min(most, rows / stepRows);
    rowsOfGroup = llvm::divideCeil(stepRows, shares);
    rowsOfRest = steps < most ? llvm::divideCeil(rows % stepRows, shares) : 0;
    int64_t denseStep =
        std::max<int64_t>(1, stepRows / kept) * encoding.getWindowRows();
    checksRows = problem.getDenseRows() % denseStep != 0;
    slowPlaces =
        (checksRows ? 1.0 : 0.0) + (llvm::isPowerOf2_64(kept) ? 0.0 : 1.0);
  }

  int64_t getCtas() const { return passes * tiles * parts; }
  /// Rows of a group for which a lane waits together, and all that it
  /// multiplies, of the CTA that has most of them.
  int64_t getBatches() const {
    return steps * int64_t(llvm::divideCeil(rowsOfGroup,
                                            getPanelRowsAtOnce(tokens))) +
           int64_t(llvm::divideCeil(rowsOfRest, kPanelRowsOfPart));
  }
  int64_t getRows() const {
    return steps * rowsOfGroup +
           std::min<int64_t>(rowsOfGroup,
                             llvm::alignTo(rowsOfRest, kPanelRowsOfPart));
  }
  /// Sums of a lane.
  double getSums() const { return double(tokens * outputs); }
  PanelLane getLane() const {
    return {tokens, outputs, rowsOfGroup, checksRows};
  }

  int64_t parts, shares, warps, tokens, outputs, columns, rows, passes, tiles;
  /// Whole K steps of the CTA that has most, and rows of a group in each of
  /// them and in the part of one behind them.
  int64_t steps, rowsOfGroup, rowsOfRest;
  bool checksRows;   ///< As PanelLane has it.
  double slowPlaces; ///< Reasons why places of activations take longer.
};

/// CTAs that an SM holds.
static int64_t getResidentCtas(const MatmulProblem &problem,
                               ScheduleAttr schedule,
                               const PanelDotCounts &counts, const Chip &chip) {
  return std::max<int64_t>(
      1,
      std::min(getCtasByRegisters(counts.warps * 32,
                                  counts.getLane().getRegisters()),
               getCtasBySharedMemory(getSharedBytes(problem, schedule), chip)));
}

static Work countPanelDots(const MatmulProblem &problem, ScheduleAttr schedule,
                           const Chip &chip) {
  PanelDotCounts counts(problem, schedule);
  Work work =
      countWhole(problem, schedule,
                 getResidentCtas(problem, schedule, counts, chip), chip);
  // Whole K steps and a part of one are counted together.
  work.steps = 1;
  work.stages = 0;
  auto rows = double(counts.getRows());
  auto tokens = double(counts.tokens), outputs = double(counts.outputs);
  work.issued = double(counts.warps) / kSchedulers * rows *
                (kRow + outputs + tokens * (kToken + outputs) +
                 kPlace * counts.slowPlaces);
  work.waits = double(counts.getBatches());
  work.links = rows * (kChained + tokens + kChainedPlace * counts.slowPlaces);
  // Lanes of one panel read a row's tokens together, a sector of 32 bytes at a
  // time, or one for each token where these are not neighbours.
  double panels = std::max(1.0, double(schedule.getTileOutputs()) /
                                    double(problem.encoding.getBlockN()));
  double sectors = problem.xFeatureMajor
                       ? std::ceil(tokens * double(problem.elementBytes) / 32.0)
                       : tokens;
  work.x = getL2Seconds(32.0 * sectors * panels * rows * double(counts.shares),
                        chip);
  // Groups of a warp add their sums first, then the warps.
  int64_t groups = std::max<int64_t>(1, counts.shares / counts.warps);
  work.sums = (double(counts.warps) + 2.0 * double(llvm::Log2_64(groups))) *
              counts.getSums();
  work.exchanged = counts.parts > 1 ? counts.getSums() : 0.0;

  // A run is what a group of lanes reads of a row. Each pass over the weight
  // reads all of it anew, from L2 at best.
  double run = double(schedule.getTileOutputs() * problem.elementBytes);
  double weight = countWeightBytes(problem, schedule);
  work.runs = 32.0 * weight / run / chip.dramBytes;
  work.again = double(counts.passes - 1) * weight / chip.l2Bytes;
  return work;
}

namespace {
struct PanelDotCost
    : public ProductCostInterface::ExternalModel<PanelDotCost, PanelDotAttr> {
  MathCeiling getCeiling(Attribute, const Chip &chip) const {
    return {chip.ffma, "instructions"};
  }
  MathUse getMathUse(Attribute, const MatmulProblem &problem) const {
    return {MathUnit::Lanes, problem.getStoredRows(), /*decodesOnce=*/true};
  }
  StringRef getFamily(Attribute, const ScheduleAttr &) const {
    return "panel_dot";
  }
  Work countWork(Attribute, const MatmulProblem &problem,
                 const ScheduleAttr &schedule, const Chip &chip) const {
    return countPanelDots(problem, schedule, chip);
  }
};
} // namespace

/// Returns true if one CTA has the registers for what its lanes hold, of few
/// sums but for places that are checked: with less, lanes wait for each row.
/// With 64 of them, those of 16 sums take up to 1.8 times as long as predicted.
static bool fitsRegisters(const PanelDotCounts &counts) {
  constexpr int64_t fewSums = 8, leastOfMany = 72;
  PanelLane lane = counts.getLane();
  int64_t registers = lane.getRegisters();
  if (lane.tokens * lane.outputs > fewSums)
    registers = std::max(leastOfMany, lane.getNeeded());
  return registers * counts.warps * 32 <= kRegistersPerSM;
}

/// Each number of tokens, of warps, of lanes in a group, of rows that a lane
/// reads at once, and of CTAs that share a tile.
static void propose(ScheduleEnumerator &to) {
  int64_t perLane = kReadBytes / to.problem.elementBytes;
  if (to.problem.bitmap || to.problem.valuesKMajor || to.problem.raggedRows ||
      to.problem.tokens > kMostTokens || to.problem.elementBytes > 4 ||
      to.problem.elementBytes < 2 || to.encoding.getBlockN() % perLane != 0)
    return;
  MLIRContext *context = to.encoding.getContext();
  auto transfers =
      TransfersAttr::getNamed(context, "direct", "direct", "direct");
  if (!transfers)
    return;
  int64_t kept = to.encoding.getKeptRows();
  auto consider = [&](int64_t tokens, int64_t warps, int64_t lanes,
                      int64_t atOnce) {
    int64_t shares = warps * 32 / lanes;
    // K steps are whole windows, of which each group has as many rows.
    int64_t rows =
        shares * int64_t(llvm::alignTo(atOnce, kept / std::gcd(kept, shares)));
    if (rows > 4096 || shares * tokens * lanes * perLane * 4 > (64 << 10))
      return;
    for (int64_t parts : {1, 2, 4, 8}) {
      auto schedule = ScheduleAttr::get(
          context, {tokens, lanes * perLane, rows},
          PanelDotAttr::get(context, warps, shares), transfers,
          SequentialAttr::get(context), FlatGridAttr::get(context, parts));
      if (fitsRegisters(PanelDotCounts(to.problem, schedule)))
        to.add(schedule, predict(to.problem, schedule, to.chip));
    }
  };
  for (int64_t tokens : {1, 2, 4, 8}) {
    if (tokens > 1 && tokens / 2 >= to.problem.tokens)
      break;
    for (int64_t warps : {8, 16, 4, 32})
      for (int64_t lanes : {32, 16, 8, 4})
        for (int64_t atOnce : {8, 4})
          consider(tokens, warps, lanes, atOnce);
  }
}

void nm_sparse::registerPanelDotCost(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, NMTileDialect *dialect) {
    PanelDotAttr::attachInterface<PanelDotCost>(*context);
    addScheduleProposer(*dialect, propose);
  });
}
