//===- Candidates.cpp - the schedules that the model compares -------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Explain.h"
#include "Recommend.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "nm_sparse/Analysis/CostModel.h"
#include "nm_sparse/Analysis/ProductCost.h"
#include "nm_sparse/Analysis/TransposeCost.h"
#include "nm_sparse/Dialect/NMSparse/Utils/Buffers.h"
#include "nm_sparse/Dialect/NMTile/IR/NMTile.h"
#include "llvm/Support/FormatVariadic.h"
#include <map>
#include <set>
#include <tuple>
#include <vector>

using namespace mlir;
using namespace mlir::nm_sparse;

static std::string print(Attribute attribute) {
  std::string text;
  llvm::raw_string_ostream(text) << attribute;
  return text;
}

using Ranked = std::pair<ScheduleAttr, Prediction>;

/// The `count` best of `ranked`, of each family where `ofEach`. Schedules that
/// differ in their ring and index alone run alike: of those, the best counts.
static SmallVector<Ranked> takeDistinct(ArrayRef<Ranked> ranked, size_t count,
                                        bool ofEach) {
  // Without its ring and the place of its index.
  auto getKey = [](ScheduleAttr schedule) {
    return std::make_tuple(
        schedule.getTile().vec(),
        Attribute(schedule.getProduct()).getAsOpaquePointer(),
        Attribute(schedule.getGrid()).getAsOpaquePointer(),
        schedule.getProducers(), schedule.hasBulkValues(), schedule.gathersX());
  };
  std::set<decltype(getKey(ScheduleAttr()))> seen;
  std::map<StringRef, size_t> taken;
  SmallVector<Ranked> chosen;
  for (const auto &[schedule, prediction] : ranked) {
    size_t &number =
        taken[ofEach ? getCost(schedule).getFamily(schedule) : StringRef()];
    if (number == count)
      continue;
    if (!seen.insert(getKey(schedule)).second)
      continue;
    chosen.emplace_back(schedule, prediction);
    ++number;
  }
  return chosen;
}

template <typename T, size_t N>
static llvm::json::Object toObject(const T &numbers,
                                   const NamedField<T> (&fields)[N]) {
  llvm::json::Object object;
  for (const NamedField<T> &field : fields)
    object[field.name] = numbers.*field.field;
  return object;
}

/// What a kernel before a product makes of its activations, for all products
/// that read the same.
struct Preparation {
  StringRef kind; ///< Empty where there is none.
  double bytes = 0, readers = 1;
};

static Preparation getPreparation(MatmulOp op, int64_t tokens) {
  Operation *before = findPreparation(op);
  if (!isa_and_nonnull<linalg::TransposeOp, AlignRowsOp>(before))
    return {};
  auto readers = double(findReaders(before).size());
  double bytes = countActivations(op, tokens);
  auto align = dyn_cast<AlignRowsOp>(before);
  if (!align)
    return {"transposition", bytes, readers};
  // What is aligned already is not copied.
  if (!align.copiesRows(tokens))
    return {};
  return {"row copy", bytes, readers};
}

/// Predicts `schedule` together with its share of the kernel before it.
static Prediction predictWhole(const MatmulProblem &problem,
                               ScheduleAttr schedule, const Chip &chip,
                               const Preparation &before) {
  Prediction result = predict(problem, schedule, chip);
  double seconds = 2.0 * before.bytes / chip.dramBytes;
  if (before.kind == "transposition")
    result.terms.transposed = seconds;
  else if (before.kind == "row copy")
    result.terms.aligned = seconds;
  result.seconds +=
      combineKernelsBefore(result.terms, getSharedCosts(chip)) / before.readers;
  return result;
}

ChosenTime nm_sparse::predictChosen(MatmulOp op, const Chip &chip,
                                    int64_t tokens) {
  int64_t expected = getExpectedTokens(op, tokens);
  MatmulProblem problem = MatmulProblem::get(op, expected);
  Preparation before = getPreparation(op, expected);
  Prediction whole = predictWhole(problem, op.getScheduleAttr(), chip, before);
  return {whole.seconds, predictDense(problem, chip), whole.bound, before.kind};
}

/// A schedule and all that the model knows of it.
static llvm::json::Object describe(const Ranked &entry, const Chip &chip) {
  const auto &[schedule, prediction] = entry;
  ProductCostInterface cost = getCost(schedule);
  const FamilyCosts &costs = cost.getCosts(schedule, chip);
  return llvm::json::Object{
      {"schedule", print(schedule)},
      {"family", cost.getFamily(schedule)},
      {"predicted_us", prediction.seconds * 1e6},
      {"bound", prediction.bound},
      {"ctas", prediction.ctas},
      {"shared_bytes", prediction.sharedBytes},
      {"terms", toObject(prediction.terms, costTermFields)},
      {"costs", toObject(costs, familyCostFields)},
      {"shared_costs", toObject(getSharedCosts(chip), sharedCostFields)}};
}

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
  os << llvm::formatv("    {0} {1,9:f1} us, {2,-13} {3}\n",
                      isChosen ? "*" : " ", entry.second.seconds * 1e6,
                      entry.second.bound, entry.first);
}

llvm::Error nm_sparse::printCandidates(ModuleOp module, const Chip &chip,
                                       int64_t tokens, int64_t count,
                                       llvm::raw_ostream &os) {
  llvm::json::Array products;
  module.walk([&](MatmulOp op) {
    int64_t expected = getExpectedTokens(op, tokens);
    MatmulProblem problem = MatmulProblem::get(op, expected);
    Preparation before = getPreparation(op, expected);
    auto describeWhole = [&](ScheduleAttr schedule) {
      Ranked entry = {schedule, predictWhole(problem, schedule, chip, before)};
      llvm::json::Object object = describe(entry, chip);
      object["clock_parts"] =
          toJSON(findClockParts(problem, schedule, entry.second.seconds, chip));
      return object;
    };
    llvm::json::Array candidates;
    for (const Ranked &entry :
         takeDistinct(rankSchedules(problem, chip), static_cast<size_t>(count),
                      /*ofEach=*/true))
      candidates.push_back(describeWhole(entry.first));
    llvm::json::Object product{
        {"function", op->getParentOfType<func::FuncOp>().getSymName().str()},
        {"encoding", print(op.getEncoding())},
        {"type", problem.format->name},
        {"batch", problem.batch},
        {"tokens", problem.tokens},
        {"outputs", problem.outputs},
        {"inputs", problem.getDenseRows()},
        {"dense_us", predictDense(problem, chip) * 1e6},
        {"before", before.kind},
        {"candidates", std::move(candidates)}};
    if (ScheduleAttr given = op.getScheduleAttr())
      product["given"] = describeWhole(given);
    products.push_back(std::move(product));
  });
  os << llvm::formatv("{0:2}\n", llvm::json::Value(std::move(products)));
  return llvm::Error::success();
}

void nm_sparse::explainCandidates(llvm::raw_ostream &os, ModuleOp module,
                                  const Chip &chip, int64_t tokens) {
  constexpr size_t shown = 5;
  module.walk([&](MatmulOp op) {
    ScheduleAttr schedule = op.getScheduleAttr();
    if (!schedule)
      return;
    MatmulProblem problem =
        MatmulProblem::get(op, getExpectedTokens(op, tokens));
    Prediction chosen = predict(problem, schedule, chip);
    double dense = predictDense(problem, chip);
    SmallVector<Ranked> ranked = rankSchedules(problem, chip);
    os << llvm::formatv(
        "  @{0}, {1} tokens: {2:f1} us predicted, bound by {3}; {4}\n",
        op->getParentOfType<func::FuncOp>().getSymName(), problem.tokens,
        chosen.seconds * 1e6, chosen.bound,
        compareWithDense(chosen.seconds, dense));
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
    auto [seconds, dense, bound, before] = predictChosen(op, chip, tokens);
    if (seconds > kCaution * dense)
      os << llvm::formatv(
          "nm-compile: warning: @{0}, {1} tokens: {2:f1} us "
          "predicted{3}; {4}\n",
          op->getParentOfType<func::FuncOp>().getSymName(),
          MatmulProblem::get(op, getExpectedTokens(op, tokens)).tokens,
          seconds * 1e6, before.empty() ? "" : (" with the " + before).str(),
          compareWithDense(seconds, dense));
  });
}
