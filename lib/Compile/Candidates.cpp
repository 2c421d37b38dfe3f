//===- Candidates.cpp - the schedules that the model compares -------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Explain.h"
#include "ProductClocks.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "nm_sparse/Analysis/CostModel.h"
#include "nm_sparse/Analysis/CostTable.h"
#include "nm_sparse/Analysis/EnergyModel.h"
#include "nm_sparse/Analysis/Objective.h"
#include "nm_sparse/Analysis/ProductCost.h"
#include "nm_sparse/Dialect/NMTile/IR/NMTile.h"
#include "nm_sparse/Dialect/NMTile/Transforms/Transforms.h"
#include "nm_sparse/Dialect/NMTile/Utils/RowOrigin.h"
#include "nm_sparse/Energy/EnergyCosts.h"
#include "nm_sparse/Support/ErrorCollector.h"
#include "nm_sparse/Tuning/TuningDatabase.h"
#include "llvm/Support/FormatVariadic.h"
#include <vector>

using namespace mlir;
using namespace mlir::nm_sparse;

static std::string print(Attribute attribute) {
  std::string text;
  llvm::raw_string_ostream(text) << attribute;
  return text;
}

template <typename T, size_t N>
static llvm::json::Object toObject(const T &numbers,
                                   const NamedField<T> (&fields)[N]) {
  llvm::json::Object object;
  for (const NamedField<T> &field : fields)
    object[field.name] = numbers.*field.field;
  return object;
}

/// The work of a kernel on the activations before a product, for all products
/// that read the same ones.
struct Preparation {
  StringRef kind; ///< Empty where there is none.
  double bytes = 0, readers = 1;

  Work getWork(const Chip &chip) const {
    Work work;
    work.clock = chip.clock;
    double seconds = 2.0 * bytes / chip.dramBytes;
    (kind == "transposition" ? work.transposed : work.aligned) = seconds;
    return work;
  }
  WorkBefore getShare() const {
    return {2.0 * bytes / readers, kind.empty() ? 0.0 : 1.0 / readers};
  }
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
  // Rows that are aligned already are not copied.
  if (!align.copiesRows(tokens))
    return {};
  return {"row copy", bytes, readers};
}

/// Predicts `schedule` together with its share of the kernel before it.
static Prediction predictPrepared(const MatmulProblem &problem,
                                  ScheduleAttr schedule, const Chip &chip,
                                  const Preparation &before) {
  Prediction result = predict(problem, schedule, chip);
  result.seconds +=
      combineKernelsBefore(before.getWork(chip), getSharedCosts(chip)) /
      before.readers;
  if (auto energy =
          predictEnergy(problem, schedule, result, chip, before.getShare())) {
    result.joules = energy->joules;
    result.sustained = energy->seconds;
  }
  return result;
}

Prediction nm_sparse::predictWhole(MatmulOp op, ScheduleAttr schedule,
                                   const Chip &chip, int64_t tokens) {
  int64_t expected = getExpectedTokens(op, tokens);
  return predictPrepared(MatmulProblem::get(op, expected), schedule, chip,
                         getPreparation(op, expected));
}

ChosenTime nm_sparse::predictChosen(MatmulOp op, const Chip &chip,
                                    int64_t tokens) {
  int64_t expected = getExpectedTokens(op, tokens);
  MatmulProblem problem = MatmulProblem::get(op, expected);
  Preparation before = getPreparation(op, expected);
  Prediction whole = predictPrepared(problem, getSchedule(op), chip, before);
  double dense = predictDense(problem, chip);
  ChosenTime result = {whole.seconds, dense, whole.bound, before.kind};
  result.energy =
      predictEnergy(problem, getSchedule(op), whole, chip, before.getShare());
  result.denseEnergy = predictDenseEnergy(problem, dense, chip);
  result.measured = MeasuredTime::get(op, problem.tokens);
  return result;
}

static llvm::json::Object describeEnergy(const CombinedEnergy &energy,
                                         const EnergyEvents &events) {
  return llvm::json::Object{{"mj", energy.joules * 1e3},
                            {"watts", energy.getWatts()},
                            {"sustained_us", energy.seconds * 1e6},
                            {"largest", getName(energy.getLargest())},
                            {"limited", energy.isLimited},
                            {"events", toObject(events, energyEventFields)}};
}

/// A schedule and all that the model knows of it.
static llvm::json::Object describe(const MatmulProblem &problem,
                                   const Ranked &entry, const Chip &chip,
                                   const Preparation &before) {
  const auto &[schedule, prediction] = entry;
  ProductCostInterface cost = getCost(schedule);
  Work work = cost.countWork(problem, schedule, chip);
  // Several products may share a kernel before them.
  Work preparation = before.getWork(chip);
  work.transposed = preparation.transposed;
  work.aligned = preparation.aligned;
  return llvm::json::Object{{"schedule", print(schedule)},
                            {"family", cost.getFamily(schedule)},
                            {"predicted_us", prediction.seconds * 1e6},
                            {"bound", prediction.bound},
                            {"ctas", prediction.ctas},
                            {"shared_bytes", prediction.sharedBytes},
                            {"work", toObject(work, workFields)}};
}

llvm::Error nm_sparse::printCandidates(ModuleOp module, const Chip &chip,
                                       int64_t tokens, int64_t count,
                                       Objective objective,
                                       llvm::raw_ostream &os) {
  llvm::json::Array products;
  ErrorCollector errors(module.getContext());
  WalkResult walked = module.walk([&](MatmulOp op) -> WalkResult {
    int64_t expected = getExpectedTokens(op, tokens);
    MatmulProblem problem = MatmulProblem::get(op, expected);
    problem.canCopyInBulk = canCopyInBulk(op.getX());
    Preparation before = getPreparation(op, expected);
    auto describeWhole = [&](ScheduleAttr schedule) {
      Prediction whole = predictPrepared(problem, schedule, chip, before);
      llvm::json::Object object =
          describe(problem, {schedule, whole}, chip, before);
      if (auto energy =
              predictEnergy(problem, schedule, whole, chip, before.getShare()))
        object["energy"] =
            describeEnergy(*energy, countEnergyEvents(problem, schedule, whole,
                                                      chip, before.getShare()));
      object["clock_parts"] =
          toJSON(findClockParts(problem, schedule, whole.seconds, chip));
      return object;
    };
    // A schedule that the program gives needs no others.
    if (!getSchedule(op) && failed(checkProblem(op, problem)))
      return WalkResult::interrupt();
    auto ranked = rankSchedules(problem, chip, objective);
    if (!getSchedule(op) && ranked.empty()) {
      (void)reportNoSchedule(op, problem, chip);
      return WalkResult::interrupt();
    }
    llvm::json::Array candidates;
    for (const Ranked &entry :
         takeDistinct(ranked, static_cast<size_t>(count), /*ofEach=*/true))
      candidates.push_back(describeWhole(entry.first));
    double dense = predictDense(problem, chip);
    llvm::json::Object product{
        {"function", op->getParentOfType<func::FuncOp>().getSymName().str()},
        {"tuning", toJSON(TunedProblem::get(op, expected, chip))},
        {"encoding", print(op.getEncoding())},
        {"type", problem.format->name},
        {"batch", problem.batch},
        {"tokens", problem.tokens},
        {"outputs", problem.outputs},
        {"inputs", problem.getDenseRows()},
        {"dense_us", dense * 1e6},
        {"dense_work",
         toObject(countDenseWork(problem, chip), denseWorkFields)},
        {"estimated", chip.isEstimated},
        {"before", before.kind},
        {"candidates", std::move(candidates)}};
    if (auto energy = predictDenseEnergy(problem, dense, chip))
      product["dense_energy"] =
          describeEnergy(*energy, countDenseEvents(problem, chip));
    if (const EnergyCosts *costs = findEnergyCosts(chip))
      product["energy_costs"] = toObject(*costs, energyCostFields);
    if (ScheduleAttr given = getSchedule(op))
      product["given"] = describeWhole(given);
    products.push_back(std::move(product));
    return WalkResult::advance();
  });
  if (walked.wasInterrupted())
    return llvm::createStringError(errors.getFirst());
  os << llvm::formatv("{0:2}\n", llvm::json::Value(std::move(products)));
  return llvm::Error::success();
}
