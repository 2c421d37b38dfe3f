//===- ApplyTuned.cpp - schedules that were measured ----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TunedSchedules.h"

#include "mlir/AsmParser/AsmParser.h"
#include "mlir/IR/Diagnostics.h"
#include "nm_sparse/Analysis/CostModel.h"
#include "nm_sparse/Dialect/NMSparse/IR/NMSparse.h"
#include "nm_sparse/Dialect/NMTile/Transforms/Passes.h"
#include "nm_sparse/Dialect/NMTile/Transforms/Transforms.h"
#include "nm_sparse/Tuning/MeasuredTime.h"

namespace mlir::nm_sparse {
#define GEN_PASS_DEF_NMSPARSEAPPLYTUNEDPASS
#include "nm_sparse/Dialect/NMTile/Transforms/Passes.h.inc"
} // namespace mlir::nm_sparse

using namespace mlir;
using namespace mlir::nm_sparse;

/// Gives `op` the schedule of `entry`. Returns why that cannot be, or an empty
/// text.
static std::string apply(MatmulOp op, const TunedEntry &entry,
                         const MatmulProblem &problem, const Chip &target) {
  std::string first;
  ScopedDiagnosticHandler handler(op.getContext(), [&](Diagnostic &diagnostic) {
    if (first.empty() && diagnostic.getSeverity() == DiagnosticSeverity::Error)
      first = diagnostic.str();
    return success();
  });
  auto schedule = dyn_cast_or_null<ScheduleAttr>(
      parseAttribute(entry.schedule, op.getContext()));
  if (!schedule)
    return "it is no schedule of this compiler: " + first;
  op.setConfigAttr(schedule);
  if (succeeded(checkGivenSchedule(op, problem, target)))
    return "";
  op.removeConfigAttr();
  return first.empty() ? "no reason was given" : first;
}

llvm::Error nm_sparse::readTuned(ModuleOp module, ArrayRef<std::string> files,
                                 TuningDatabase &database) {
  TuningDatabase::Sizes sizes;
  module.walk([&](MatmulOp op) {
    MatmulProblem problem = MatmulProblem::get(op, /*dynamicTokens=*/1);
    sizes.insert({problem.getDenseRows(), problem.outputs});
  });
  for (const std::string &file : files)
    if (llvm::Error error = database.read(file, &sizes))
      return error;
  return llvm::Error::success();
}

void nm_sparse::applyTuned(ModuleOp module, const TuningDatabase &database,
                           const Chip &target, Objective objective,
                           int64_t tokens) {
  module.walk([&](MatmulOp op) {
    int64_t expected = getExpectedTokens(op, tokens);
    MatmulProblem problem = MatmulProblem::get(op, expected);
    if (getSchedule(op) || ShapedType::isDynamic(problem.windows))
      return;
    const TunedEntry *entry =
        database.find(TunedProblem::get(op, expected, target), objective);
    if (!entry)
      return;
    std::string why = apply(op, *entry, problem, target);
    if (why.empty())
      MeasuredTime::set(op, *entry);
    else
      op.emitWarning("ignores a schedule that was measured: ")
          << why << " (" << entry->schedule << ")";
  });
}

namespace {
struct ApplyTuned
    : public nm_sparse::impl::NMSparseApplyTunedPassBase<ApplyTuned> {
  using Base::Base;

  void runOnOperation() override {
    // An unknown chip or objective is an error where schedules are chosen.
    const Chip *target = findChip(chip, gpu);
    if (!target || files.empty())
      return;
    llvm::Expected<Objective> comparedBy = parseObjective(objective, *target);
    if (!comparedBy)
      return llvm::consumeError(comparedBy.takeError());
    TuningDatabase database;
    if (llvm::Error error =
            readTuned(getOperation(), llvm::to_vector(files), database)) {
      getOperation().emitError(llvm::toString(std::move(error)));
      return signalPassFailure();
    }
    applyTuned(getOperation(), database, *target, *comparedBy, tokens);
  }
};
} // namespace
