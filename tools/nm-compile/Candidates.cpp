//===- Candidates.cpp - the schedules that the model compares -------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Explain.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "nm_sparse/Analysis/CostModel.h"
#include "nm_sparse/Analysis/ProductCost.h"
#include "nm_sparse/Analysis/TransposeCost.h"
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

/// Whether the vendor's dense product would do better.
static std::string compareWithDense(double seconds, double dense) {
  return llvm::formatv(
      "the dense product takes {0:f1} us, {1}", dense * 1e6,
      seconds > dense
          ? "which is faster"
          : llvm::formatv("{0:f2} times as long", dense / seconds).str());
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
    MatmulProblem problem =
        MatmulProblem::get(op, getExpectedTokens(op, tokens));
    llvm::json::Array candidates;
    for (const Ranked &entry :
         takeDistinct(rankSchedules(problem, chip), static_cast<size_t>(count),
                      /*ofEach=*/true))
      candidates.push_back(describe(entry, chip));
    llvm::json::Object product{
        {"function", op->getParentOfType<func::FuncOp>().getSymName().str()},
        {"encoding", print(op.getEncoding())},
        {"tokens", problem.tokens},
        {"outputs", problem.outputs},
        {"dense_us", predictDense(problem, chip) * 1e6},
        {"candidates", std::move(candidates)}};
    if (ScheduleAttr given = op.getScheduleAttr())
      product["given"] = describe({given, predict(problem, given, chip)}, chip);
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

/// Seconds of the transposition of `op`'s activations, shared by all products
/// that read them; 0 when they are not transposed.
static double getTransposeShare(MatmulOp op, int64_t tokens, const Chip &chip) {
  auto transpose = op.getX().getDefiningOp<linalg::TransposeOp>();
  if (!transpose)
    return 0;
  auto readers = llvm::count_if(transpose->getUsers(), llvm::IsaPred<MatmulOp>);
  auto type = cast<ShapedType>(transpose.getInput().getType());
  return predictTranspose(type, getExpectedTokens(op, tokens), chip) /
         static_cast<double>(readers);
}

void nm_sparse::warnOfSlowProducts(llvm::raw_ostream &os, ModuleOp module,
                                   const Chip &chip, int64_t tokens) {
  module.walk([&](MatmulOp op) {
    ScheduleAttr schedule = op.getScheduleAttr();
    if (!schedule)
      return;
    MatmulProblem problem =
        MatmulProblem::get(op, getExpectedTokens(op, tokens));
    double transpose = getTransposeShare(op, tokens, chip);
    double seconds = predict(problem, schedule, chip).seconds + transpose;
    double dense = predictDense(problem, chip);
    if (seconds > dense)
      os << llvm::formatv("nm-compile: warning: @{0}, {1} tokens: {2:f1} us "
                          "predicted{3}; {4}\n",
                          op->getParentOfType<func::FuncOp>().getSymName(),
                          problem.tokens, seconds * 1e6,
                          transpose > 0 ? " with the transposition" : "",
                          compareWithDense(seconds, dense));
  });
}
