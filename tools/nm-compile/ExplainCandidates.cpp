//===- ExplainCandidates.cpp - why a product has its schedule -------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Explain.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "nm_sparse/Analysis/CostModel.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::nm_sparse;

/// A product that is predicted to take this part of the dense one's time, or
/// more, may take longer: the ratio of the two predictions is lower than what
/// is measured by more than this in 1 of 100 layers.
static constexpr double kCaution = 0.75;

/// Whether the vendor's dense product would do better.
static std::string compareWithDense(double seconds, double dense) {
  return llvm::formatv(
      "the dense product takes {0:f1} us, {1}", dense * 1e6,
      seconds > dense
          ? "which is faster"
          : llvm::formatv("{0:f2} times as long{1}", dense / seconds,
                          seconds > kCaution * dense ? ", so it may be as fast"
                                                     : "")
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

/// What a product takes, at which power, what takes most of that, and what the
/// dense one takes.
static void explainEnergy(llvm::raw_ostream &os,
                          const std::optional<CombinedEnergy> &energy,
                          const std::optional<CombinedEnergy> &dense) {
  if (!energy)
    return;
  os << llvm::formatv(
      "    {0} mJ at {1:f0} W{2}, most of it {3}; the dense product takes {4} "
      "mJ\n",
      printMillijoules(energy->joules), energy->getWatts(),
      energy->isLimited ? ", the limit of the GPU" : "",
      getName(energy->getLargest()), printMillijoules(dense->joules));
}

void nm_sparse::explainCandidates(llvm::raw_ostream &os, ModuleOp module,
                                  const Chip &chip, int64_t tokens,
                                  Objective objective) {
  constexpr size_t shown = 5;
  module.walk([&](MatmulOp op) {
    ScheduleAttr schedule = op.getScheduleAttr();
    if (!schedule)
      return;
    MatmulProblem problem =
        MatmulProblem::get(op, getExpectedTokens(op, tokens));
    Prediction chosen = predict(problem, schedule, chip);
    double dense = predictDense(problem, chip);
    SmallVector<Ranked> ranked = rankSchedules(problem, chip, objective);
    os << llvm::formatv(
        "  @{0}, {1} tokens: {2:f1} us predicted, bound by {3}; {4}\n",
        op->getParentOfType<func::FuncOp>().getSymName(), problem.tokens,
        chosen.seconds * 1e6, chosen.bound,
        compareWithDense(chosen.seconds, dense));
    explainEnergy(os, predictEnergy(problem, schedule, chosen, chip),
                  predictDenseEnergy(problem, dense, chip));
    os << llvm::formatv("    best of {0} schedules:\n", ranked.size());
    bool listed = false;
    for (const Ranked &entry : takeDistinct(ranked, shown, /*ofEach=*/false)) {
      bool isChosen = entry.first == schedule;
      listed |= isChosen;
      explainCandidate(os, entry, isChosen);
    }
    if (!listed)
      explainCandidate(os, {schedule, chosen}, /*isChosen=*/true);
  });
}

void nm_sparse::warnOfSlowProducts(llvm::raw_ostream &os, ModuleOp module,
                                   const Chip &chip, int64_t tokens) {
  module.walk([&](MatmulOp op) {
    if (!op.getScheduleAttr())
      return;
    ChosenTime chosen = predictChosen(op, chip, tokens);
    double seconds = chosen.seconds, dense = chosen.dense;
    if (seconds > kCaution * dense)
      os << llvm::formatv(
          "nm-compile: warning: @{0}, {1} tokens: {2:f1} us "
          "predicted{3}; {4}\n",
          op->getParentOfType<func::FuncOp>().getSymName(),
          MatmulProblem::get(op, getExpectedTokens(op, tokens)).tokens,
          seconds * 1e6,
          chosen.before.empty() ? "" : (" with the " + chosen.before).str(),
          compareWithDense(seconds, dense));
  });
}
