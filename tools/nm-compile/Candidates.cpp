//===- Candidates.cpp - the schedules that the model compares -------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Explain.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "nm_sparse/Analysis/CostModel.h"
#include "llvm/Support/FormatVariadic.h"
#include <set>
#include <tuple>

using namespace mlir;
using namespace mlir::nm_sparse;

static std::string print(Attribute attribute) {
  std::string text;
  llvm::raw_string_ostream(text) << attribute;
  return text;
}

/// The `count` best of `ranked`. Schedules that differ in their ring and index
/// alone run alike: of those, the best one counts.
static llvm::json::Array
takeDistinct(ArrayRef<std::pair<ScheduleAttr, Prediction>> ranked,
             size_t count) {
  std::set<std::tuple<ScheduleKind, int64_t, int64_t, int64_t, int64_t, int64_t,
                      bool>>
      seen;
  llvm::json::Array chosen;
  for (const auto &[schedule, prediction] : ranked) {
    if (chosen.size() == count)
      break;
    if (!seen.emplace(schedule.getKind(), schedule.getTileTokens(),
                      schedule.getTileOutputs(), schedule.getTileWindows(),
                      schedule.getSplitK(), schedule.getProducers(),
                      schedule.isPacked())
             .second)
      continue;
    chosen.push_back(
        llvm::json::Object{{"schedule", print(schedule)},
                           {"predicted_us", prediction.seconds * 1e6},
                           {"bound", prediction.bound},
                           {"ctas", prediction.ctas}});
  }
  return chosen;
}

llvm::Error nm_sparse::printCandidates(ModuleOp module, StringRef chipName,
                                       int64_t tokens, int64_t count,
                                       llvm::raw_ostream &os) {
  const Chip *chip = findChip(chipName);
  if (!chip)
    return llvm::createStringError("'" + chipName.str() +
                                   "' is not a known chip");
  llvm::json::Array products;
  module.walk([&](MatmulOp op) {
    MatmulProblem problem = MatmulProblem::get(op, tokens);
    products.push_back(llvm::json::Object{
        {"function", op->getParentOfType<func::FuncOp>().getSymName().str()},
        {"encoding", print(op.getEncoding())},
        {"tokens", problem.tokens},
        {"outputs", problem.outputs},
        {"candidates", takeDistinct(rankSchedules(problem, *chip),
                                    static_cast<size_t>(count))}});
  });
  os << llvm::formatv("{0:2}\n", llvm::json::Value(std::move(products)));
  return llvm::Error::success();
}
