//===- PanelDotCost.cpp - what panel_dot costs ----------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Device memory bounds a product of one token, the instructions of the rows one
// of several, and where there are few CTAs, what each group of lanes does one
// after the other.
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Analysis/Occupancy.h"
#include "nm_sparse/Analysis/ProductCost.h"
#include "nm_sparse/Analysis/ScheduleEnumerator.h"
#include "nm_sparse/Products/Registration.h"
#include "llvm/Support/MathExtras.h"
#include <numeric>

using namespace mlir;
using namespace mlir::nm_sparse;

/// Tokens above which no number of passes over the weight pays.
static constexpr int64_t kMostTokens = 16;

/// Bytes of a kept row that a lane reads at once.
static constexpr int64_t kReadBytes = 16;

// Fitted to 469 kernels of 31 layers on an H200, of 1 to 8 tokens and 12 to
// 62 % kept, whose lanes waited for each row
// (bench/results/h200-panel-dot.json); kRowWait is what is left of that wait
// where 8 rows are read at once.

/// Warps of an SM, and registers of its threads.
static constexpr int64_t kWarpsPerSM = 64, kRegistersPerSM = 65536;
static constexpr double kSchedulers = 4, kClock = 1.75e9;
/// Cycles of a scheduler for one row of 8 outputs of all lanes of a warp, and
/// beside that for each token.
static constexpr double kRowCycles = 26, kTokenCycles = 18;
/// Cycles from one row of a group of lanes to the next where nothing else has
/// the SM, and those for the sum of one output of a token, of each warp.
/// Rows of a step that is not whole are read one after the other.
static constexpr double kRowWait = 280, kPartRowWait = 690, kSumCycles = 6;
/// Seconds of a launch, and of the exchange between CTAs of one tile; the part
/// of the rate of device memory that is reached, where what a group of lanes
/// reads of a row is long: rows take as long as if they had so many bytes more.
static constexpr double kLaunch = 3.4e-6, kExchange = 0.87e-6, kShare = 0.94,
                        kRowLoss = 16;
/// What takes longest hides the others the better the higher this is.
static constexpr double kNorm = 2.5;

/// CTAs that an SM holds.
static int64_t getResidentCtas(const MatmulProblem &problem,
                               ScheduleAttr schedule, const Chip &chip) {
  int64_t sums = schedule.getTileTokens() * kReadBytes / problem.elementBytes;
  int64_t registers = int64_t(llvm::alignTo(56 + sums, 8));
  int64_t warps = std::min(kWarpsPerSM, kRegistersPerSM / (registers * 32));
  return std::max<int64_t>(
      1,
      std::min(warps / schedule.getProduct().getNumWarps(),
               getCtasBySharedMemory(getSharedBytes(problem, schedule), chip)));
}

static CombinedTime predictPanelDot(const MatmulProblem &problem,
                                    ScheduleAttr schedule, const Chip &chip) {
  int64_t parts = schedule.getSplitK();
  int64_t panel = problem.encoding.getBlockN();
  int64_t outputs = llvm::divideCeil(problem.outputs, panel) * panel;
  int64_t rows = problem.windows * problem.encoding.getKeptRows();
  int64_t passes = llvm::divideCeil(problem.tokens, schedule.getTileTokens());
  int64_t tiles =
      problem.batch * llvm::divideCeil(outputs, schedule.getTileOutputs());
  int64_t ctas = passes * tiles * parts;
  int64_t warps = schedule.getProduct().getNumWarps();
  auto tokens = double(schedule.getTileTokens());
  double eighths = double(kReadBytes) / double(problem.elementBytes) / 8.0;

  double positions = double(problem.encoding.getIndexBitWidth()) / 8.0 /
                     double(panel * problem.encoding.getBlockK());
  double weight = double(problem.batch * rows * outputs) *
                  (double(problem.elementBytes) + positions);
  double results =
      double(problem.batch * problem.tokens * problem.outputs) *
      double(problem.epilogue.writtenBytes + problem.epilogue.readBytes);
  // Each pass over the weight reads all of it anew, from L2 at best.
  double run = double(schedule.getTileOutputs() * problem.elementBytes);
  double share = kShare * run / (run + kRowLoss);
  double memory = (weight + results) / (share * chip.dramBytes) +
                  double(passes - 1) * weight / (share * chip.l2Bytes);

  // A step has as many rows for each group of lanes, also where there are
  // fewer.
  int64_t shares = schedule.getProduct().getNumShares();
  int64_t perGroup = llvm::divideCeil(schedule.getStepRows(), shares);
  int64_t steps =
      llvm::divideCeil(llvm::divideCeil(rows, schedule.getStepRows()), parts);
  double perSM = double(llvm::divideCeil(ctas, int64_t(chip.multiprocessors)));
  double issue = perSM * double(steps * perGroup * warps) *
                 (kRowCycles + kTokenCycles * tokens) * eighths /
                 (kSchedulers * kClock);

  // Groups of a warp add their sums first, then the warps.
  auto groups = double(llvm::Log2_64(std::max<int64_t>(1, shares / warps)));
  double sums =
      (double(warps) + 2.0 * groups) * kSumCycles * tokens * 8.0 * eighths;
  double rounds =
      std::max(1.0, double(ctas) / double(chip.multiprocessors) /
                        double(getResidentCtas(problem, schedule, chip)));
  bool isWhole = rows % (schedule.getStepRows() * parts) == 0;
  double lastRows = isWhole ? 0.0 : double(perGroup);
  double waits = (double(steps * perGroup) - lastRows) * kRowWait +
                 lastRows * kPartRowWait;
  double chain = rounds * (waits + sums) / kClock;

  double seconds = kLaunch + combineOverlapping({memory, issue, chain}, kNorm);
  if (parts > 1)
    seconds += kExchange;
  return {seconds,
          memory >= std::max(issue, chain) ? Bound::DRAM : Bound::Product};
}

namespace {
struct PanelDotCost
    : public ProductCostInterface::ExternalModel<PanelDotCost, PanelDotAttr> {
  MathCeiling getCeiling(Attribute, const Chip &chip) const {
    return {chip.ffma, "instructions"};
  }
  StringRef getFamily(Attribute, const ScheduleAttr &) const {
    return "panel_dot";
  }
  std::optional<CombinedTime> predictDirect(Attribute,
                                            const MatmulProblem &problem,
                                            const ScheduleAttr &schedule,
                                            const Chip &chip) const {
    return predictPanelDot(problem, schedule, chip);
  }
};
} // namespace

/// Each number of tokens, of warps, of lanes in a group, of rows that a lane
/// reads at once, and of CTAs that share a tile.
static void propose(ScheduleEnumerator &to) {
  int64_t perLane = kReadBytes / to.problem.elementBytes;
  if (to.problem.bitmap || to.problem.tokens > kMostTokens ||
      to.problem.elementBytes > 4 || to.problem.elementBytes < 2 ||
      to.encoding.getBlockN() % perLane != 0)
    return;
  MLIRContext *context = to.encoding.getContext();
  auto transfers =
      TransfersAttr::get(context, XTransfer::Direct, ValuesTransfer::Direct,
                         IndexTransfer::Direct);
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
  registry.addExtension(+[](MLIRContext *context, NMSparseDialect *dialect) {
    PanelDotAttr::attachInterface<PanelDotCost>(*context);
    dialect->addProposer(propose);
  });
}
