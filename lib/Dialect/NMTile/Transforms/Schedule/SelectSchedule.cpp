//===- SelectSchedule.cpp - give each matmul a schedule -------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AgreeSchedules.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "nm_sparse/Analysis/CostModel.h"
#include "nm_sparse/Analysis/Objective.h"
#include "nm_sparse/Analysis/ProductCost.h"
#include "nm_sparse/Dialect/NMSparse/IR/NMSparse.h"
#include "nm_sparse/Dialect/NMTile/Transforms/Passes.h"
#include "nm_sparse/Dialect/NMTile/Transforms/Transforms.h"
#include "nm_sparse/Dialect/NMTile/Utils/RowOrigin.h"
#include "llvm/Support/MathExtras.h"

namespace mlir::nm_sparse {
#define GEN_PASS_DEF_NMSPARSESELECTSCHEDULEPASS
#include "nm_sparse/Dialect/NMTile/Transforms/Passes.h.inc"
} // namespace mlir::nm_sparse

using namespace mlir;
using namespace mlir::nm_sparse;

namespace {
struct SelectSchedule
    : public nm_sparse::impl::NMSparseSelectSchedulePassBase<SelectSchedule> {
  using Base::Base;

  /// Says where a weight is read more often than once: no product of many
  /// tokens takes free elements, and of those of 8 bits 2:4 alone.
  static void reportPasses(MatmulOp op, const MatmulProblem &problem) {
    int64_t most = getSchedule(op).getTileTokens();
    bool hasOthers = !problem.encoding.isFree() &&
                     (problem.elementBytes > 1 || !getSchedule(op).isDirect());
    bool readsWeight = !getSchedule(op).getOperandTiles().isInCode();
    if (!hasOthers && readsWeight && problem.tokens > most)
      op.emitRemark("has ")
          << problem.tokens << " tokens, of which product = "
          << getSchedule(op).getProduct().getProductName() << " multiplies "
          << most << " at a time: it reads its weight "
          << llvm::divideCeil(problem.tokens, most) << " times";
  }

  /// Says why a constant that may become code has no schedule for that.
  static void
  reportOperand(MatmulOp op, const MatmulProblem &problem,
                ArrayRef<std::pair<ScheduleAttr, Prediction>> ranked) {
    if (!problem.constant || llvm::any_of(ranked, [](const auto &candidate) {
          return candidate.first.getOperandTiles().isInCode();
        }))
      return;
    InFlightDiagnostic remark =
        op.emitRemark("keeps a kernel that reads its weight: as code, ");
    if (problem.xFeatureMajor)
      remark << "that with the loads of its activations takes more than the "
             << problem.constant->maxCodeBytes
             << " bytes that are allowed (max-code-bytes)";
    else
      remark << "that needs feature-major activations, but "
             << op.getX().getType() << " is token-major";
  }

  LogicalResult select(MatmulOp op, const Chip &target) {
    MatmulProblem problem = MatmulProblem::get(op, expectedTokens);
    if (getSchedule(op))
      return checkGivenSchedule(op, problem, target);
    if (failed(checkProblem(op, problem)))
      return failure();
    problem.canCopyInBulk = canCopyInBulk(op.getX());
    auto ranked = rankSchedules(problem, target, comparedBy);
    if (ranked.empty())
      return reportNoSchedule(op, problem, target);
    reportOperand(op, problem, ranked);
    op.setConfigAttr(ranked.front().first);
    chosen.push_back({op, std::move(ranked)});
    return success();
  }

  /// Says which of `chip` and `gpu` is not known.
  void reportUnknown() {
    if (!findChip(chip)) {
      InFlightDiagnostic diag = getOperation().emitError("unknown chip '")
                                << chip << "'; supported are";
      for (const Chip &known : getChips())
        diag << " " << known.name;
      return;
    }
    InFlightDiagnostic diag = getOperation().emitError("unknown GPU '")
                              << gpu << "' of " << chip << "; known are";
    for (StringRef known : getGPUs())
      if (findChip(chip, known))
        diag << " " << known;
  }

  void runOnOperation() override {
    const Chip *target = findChip(chip, gpu);
    if (!target) {
      reportUnknown();
      return signalPassFailure();
    }
    expectedTokens = getExpectedTokens(getOperation(), tokens);
    if (tokens < 1) {
      getOperation().emitError("cannot choose schedules for ")
          << tokens.getValue() << " tokens; legal are 1 and more";
      return signalPassFailure();
    }
    llvm::Expected<Objective> parsed = parseObjective(objective, *target);
    if (!parsed) {
      getOperation().emitError(llvm::toString(parsed.takeError()));
      return signalPassFailure();
    }
    comparedBy = *parsed;
    chosen.clear();
    SmallVector<MatmulOp> matmuls;
    getOperation().walk([&](MatmulOp op) { matmuls.push_back(op); });
    for (MatmulOp op : matmuls)
      if (failed(select(op, *target)))
        return signalPassFailure();
    if (mergeLaunches)
      agreeOnSchedules(chosen, comparedBy, *target);
    for (const RankedProduct &product : chosen) {
      reportPasses(product.op, MatmulProblem::get(product.op, expectedTokens));
      if (failed(checkSchedule(product.op)))
        return signalPassFailure();
    }
  }

  int64_t expectedTokens = 0;
  Objective comparedBy = Objective::Time;
  /// Those that have no schedule of the caller's.
  SmallVector<RankedProduct, 2> chosen;
};
} // namespace
