//===- ExplainCandidates.cpp - why a product has its schedule -------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Explain.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "nm_sparse/Analysis/CostModel.h"
#include "nm_sparse/Dialect/NMTile/Utils/RowOrigin.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::nm_sparse;

/// A product that is predicted to take this part of the dense one's time, or
/// more, may take longer: the ratio of the two predictions is lower than what
/// is measured by more than this in 1 of 100 layers.
static constexpr double kCaution = 0.75;

/// The time of a product and where it is from, with its share of a kernel
/// before.
static std::string describeTime(const ChosenTime &chosen, const Chip &chip) {
  if (const auto &measured = chosen.measured)
    return llvm::formatv("{0:f1} us measured", measured->seconds * 1e6);
  std::string before =
      chosen.before.empty() ? "" : (" with the " + chosen.before).str();
  std::string estimate = llvm::formatv(" (an estimate: {0} was not measured)",
                                       StringRef(chip.gpu).upper());
  return llvm::formatv("{0:f1} us predicted{1}{2}", chosen.seconds * 1e6,
                       before, chip.isEstimated ? estimate : "");
}

/// The seconds of a product and of the dense one, each measured or, where it
/// was not, predicted.
static std::pair<double, double> getTimes(const ChosenTime &chosen) {
  const auto &measured = chosen.measured;
  if (!measured)
    return {chosen.seconds, chosen.dense};
  return {measured->seconds,
          measured->dense > 0 ? measured->dense : chosen.dense};
}

/// The product may take longer than the dense one.
static bool maybeSlower(const ChosenTime &chosen) {
  auto [seconds, dense] = getTimes(chosen);
  bool isMeasured = chosen.measured && chosen.measured->dense > 0;
  return seconds > (isMeasured ? 1.0 : kCaution) * dense;
}

/// Says in words if the vendor's dense product would be faster.
static std::string compareWithDense(const ChosenTime &chosen) {
  auto [seconds, dense] = getTimes(chosen);
  return llvm::formatv(
      "the dense product takes {0:f1} us, {1}", dense * 1e6,
      seconds > dense
          ? "which is faster"
          : llvm::formatv("{0:f2} times as long{1}", dense / seconds,
                          maybeSlower(chosen) ? ", so it may be as fast" : "")
                .str());
}

static void explainCandidate(llvm::raw_ostream &os, const Ranked &entry,
                             bool isChosen) {
  const auto &[schedule, prediction] = entry;
  std::string joules =
      prediction.joules > 0
          ? llvm::formatv("{0,9} mJ, ", printMillijoules(prediction.joules))
                .str()
          : "";
  os << llvm::formatv("    {0} {1,9:f1} us, {2}{3,-13} {4}\n",
                      isChosen ? "*" : " ", prediction.seconds * 1e6, joules,
                      prediction.bound, schedule);
}

/// Prints the energy of a product, its power, its largest part, and the energy
/// of the dense product.
static void explainEnergy(llvm::raw_ostream &os, const ChosenTime &chosen) {
  const auto &energy = chosen.energy;
  if (!energy)
    return;
  std::string limit = llvm::formatv(
      ", the limit of the GPU ({0:f1} us become {1:f1} us in a loop)",
      chosen.seconds * 1e6, energy->seconds * 1e6);
  os << llvm::formatv("    {0} mJ at {1:f0} W{2}, mostly {3}; the dense "
                      "product takes {4} mJ\n",
                      printMillijoules(energy->joules), energy->getWatts(),
                      energy->isLimited ? limit : "",
                      getName(energy->getLargest()),
                      printMillijoules(chosen.denseEnergy->joules));
}

void nm_sparse::explainCandidates(llvm::raw_ostream &os, ModuleOp module,
                                  const Chip &chip, int64_t tokens,
                                  Objective objective) {
  constexpr size_t shown = 5;
  module.walk([&](MatmulOp op) {
    ScheduleAttr schedule = getSchedule(op);
    if (!schedule)
      return;
    MatmulProblem problem =
        MatmulProblem::get(op, getExpectedTokens(op, tokens));
    problem.canCopyInBulk = canCopyInBulk(op.getX());
    ChosenTime chosen = predictChosen(op, chip, tokens);
    SmallVector<Ranked> ranked = rankSchedules(problem, chip, objective);
    os << llvm::formatv("  @{0}, {1} tokens: {2}, bound by {3}; {4}\n",
                        op->getParentOfType<func::FuncOp>().getSymName(),
                        problem.tokens, describeTime(chosen, chip),
                        chosen.bound, compareWithDense(chosen));
    explainEnergy(os, chosen);
    os << llvm::formatv("    best of {0} schedules:\n", ranked.size());
    auto explain = [&](ScheduleAttr candidate) {
      explainCandidate(os,
                       {candidate, predictWhole(op, candidate, chip, tokens)},
                       candidate == schedule);
    };
    bool listed = false;
    for (const Ranked &entry : takeDistinct(ranked, shown, /*ofEach=*/false)) {
      listed |= entry.first == schedule;
      explain(entry.first);
    }
    if (!listed)
      explain(schedule);
  });
}

void nm_sparse::warnOfSlowProducts(llvm::raw_ostream &os, ModuleOp module,
                                   const Chip &chip, int64_t tokens) {
  module.walk([&](MatmulOp op) {
    if (!getSchedule(op))
      return;
    ChosenTime chosen = predictChosen(op, chip, tokens);
    if (maybeSlower(chosen))
      os << llvm::formatv(
          "nm-compile: warning: @{0}, {1} tokens: {2}; {3}\n",
          op->getParentOfType<func::FuncOp>().getSymName(),
          MatmulProblem::get(op, getExpectedTokens(op, tokens)).tokens,
          describeTime(chosen, chip), compareWithDense(chosen));
  });
}
