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

/// Passes above which none has been measured: kernels of more are taken to be
/// as slow as several of so many.
static constexpr int64_t kMostPasses = 16;

/// Bytes of a kept row that a lane reads at once.
static constexpr int64_t kReadBytes = 16;

static constexpr int64_t kRegistersPerSM = 65536;

// Fitted to 450 kernels of 67 layers on an H200, of 1 to 64 tokens and 12 to 50
// % kept (docs/decisions/081-registers-of-panel-dot.md).

static constexpr double kSchedulers = 4, kClock = 1.75e9;
/// Instructions of a warp for one row beside those for each output of a lane;
/// for each token of it beside those; and where K steps are not whole or kept
/// rows of a window are no power of two, to find the row of an activation.
static constexpr double kRowInstructions = 1, kTokenInstructions = 9.3,
                        kPlaceInstructions = 15;
/// Cycles that a group of lanes waits for rows that it reads at once; for each
/// row, with each token of it; and where a place takes longer to find.
static constexpr double kBatchWait = 745, kRowWait = 90, kTokenWait = 13,
                        kPlaceWait = 25;
/// Cycles for the sum of one output of a token: of each warp, and of each CTA
/// that shares the tile.
static constexpr double kSumCycles = 7.8, kPartCycles = 12.4;
/// Seconds of a launch, and of the exchange between CTAs of one tile.
static constexpr double kLaunch = 1.5e-6, kExchange = 1.75e-6;
/// Where a lane's neighbours in memory are tokens, it exchanges 4 bytes at a
/// time, lanes far from each other: seconds for each word, part and output.
static constexpr double kScatter = 25e-15;
/// The part of the rate of device memory that is reached where what a group of
/// lanes reads of a row is very long: rows take as long as if they had so many
/// bytes more.
static constexpr double kShare = 1.3, kRowLoss = 49;
/// The higher this is, the better the longest part hides the others.
static constexpr double kNorm = 1.95;

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

/// Seconds of memory: of the device for the first pass over the weight, and of
/// L2, at best, for further ones.
static std::pair<double, double> predictMemory(const MatmulProblem &problem,
                                               ScheduleAttr schedule,
                                               const PanelDotCounts &counts,
                                               const Chip &chip) {
  double panel =
      double(problem.encoding.getBlockN() * problem.encoding.getBlockK());
  double positions = double(problem.encoding.getIndexBitWidth()) / 8.0 / panel;
  double weight = double(problem.batch * counts.rows * counts.columns) *
                  (double(problem.elementBytes) + positions);
  double results =
      double(problem.batch * problem.tokens * problem.outputs) *
      double(problem.epilogue.writtenBytes + problem.epilogue.readBytes);
  double run = double(schedule.getTileOutputs() * problem.elementBytes);
  double share = kShare * run / (run + kRowLoss);
  return {(weight + results) / (share * chip.dramBytes),
          double(counts.passes - 1) * weight / (share * chip.l2Bytes)};
}

/// Seconds of what a group of lanes does one after the other.
static double predictChain(const MatmulProblem &problem, ScheduleAttr schedule,
                           const PanelDotCounts &counts, const Chip &chip) {
  double row = kRowWait + kTokenWait * double(counts.tokens) +
               kPlaceWait * counts.slowPlaces;
  double waits =
      double(counts.getBatches()) * kBatchWait + double(counts.getRows()) * row;
  // Groups of a warp add their sums first, then the warps, then the CTAs.
  int64_t groups = std::max<int64_t>(1, counts.shares / counts.warps);
  double sums = (double(counts.warps) + 2.0 * double(llvm::Log2_64(groups))) *
                kSumCycles * counts.getSums();
  if (counts.parts > 1)
    sums += kPartCycles * double(counts.parts) * counts.getSums();
  int64_t resident = std::max<int64_t>(
      1,
      std::min(getCtasByRegisters(counts.warps * 32,
                                  counts.getLane().getRegisters()),
               getCtasBySharedMemory(getSharedBytes(problem, schedule), chip)));
  // The last round may be a part of one: half of what it lacks is waited for.
  double rounds = std::max(1.0, double(counts.getCtas()) /
                                    double(chip.multiprocessors * resident));
  return (rounds + std::ceil(rounds)) / 2.0 * (waits + sums) / kClock;
}

static CombinedTime predictPanelDot(const MatmulProblem &problem,
                                    ScheduleAttr schedule, const Chip &chip) {
  PanelDotCounts counts(problem, schedule);
  auto [memory, l2] = predictMemory(problem, schedule, counts, chip);
  double instructions =
      kRowInstructions + double(counts.outputs) +
      double(counts.tokens) * (kTokenInstructions + double(counts.outputs)) +
      kPlaceInstructions * counts.slowPlaces;
  double perSM =
      double(llvm::divideCeil(counts.getCtas(), int64_t(chip.multiprocessors)));
  double issue = perSM * double(counts.getRows() * counts.warps) *
                 instructions / (kSchedulers * kClock);
  double chain = predictChain(problem, schedule, counts, chip);

  double seconds =
      kLaunch + combineOverlapping({memory, l2, issue, chain}, kNorm);
  if (counts.parts > 1) {
    seconds += kExchange;
    int64_t words =
        counts.getCtas() * counts.tokens * schedule.getTileOutputs();
    if (problem.yFeatureMajor && counts.tokens > 1)
      seconds += kScatter * double(words) *
                 double(counts.parts * schedule.getTileOutputs());
  }
  return {seconds, memory >= std::max({l2, issue, chain}) ? Bound::DRAM
                                                          : Bound::Product};
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
  std::optional<CombinedTime> predictDirect(Attribute,
                                            const MatmulProblem &problem,
                                            const ScheduleAttr &schedule,
                                            const Chip &chip) const {
    int64_t most = kMostPasses * schedule.getTileTokens();
    MatmulProblem turn = problem;
    turn.tokens = std::min(problem.tokens, most);
    CombinedTime time = predictPanelDot(turn, schedule, chip);
    time.seconds *= double(llvm::divideCeil(problem.tokens, most));
    return time;
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
  if (to.problem.bitmap || to.problem.raggedRows ||
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
