//===- PropagateLayout.cpp - feature-major activations between products ---===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Goes through the products in order. What a product reads token-major and
// another op of the function computes for it is computed feature-major; what
// comes from elsewhere is transposed, when the products that read it gain more
// than that takes. Of 8-bit elements tensor cores read token-major ones alone,
// other than beside values along the contraction, so that these change in the
// other direction.
//
//===----------------------------------------------------------------------===//

#include "Storage/Layout.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "nm_sparse/Analysis/CostModel.h"
#include "nm_sparse/Analysis/EnergyModel.h"
#include "nm_sparse/Analysis/LayoutCost.h"
#include "nm_sparse/Analysis/Objective.h"
#include "nm_sparse/Analysis/TransposeCost.h"
#include "nm_sparse/Dialect/NMTile/Transforms/Passes.h"
#include "llvm/ADT/SetVector.h"

namespace mlir::nm_sparse {
#define GEN_PASS_DEF_NMSPARSEPROPAGATELAYOUTPASS
#include "nm_sparse/Dialect/NMTile/Transforms/Passes.h.inc"
} // namespace mlir::nm_sparse

using namespace mlir;
using namespace mlir::nm_sparse;

namespace {

/// Products of elements of this type are faster with feature-major activations.
bool prefersFeatureMajor(MatmulOp op) {
  return op.getForm().isKMajor() ||
         getElementTypeOrSelf(op.getX()).getIntOrFloatBitWidth() > 8;
}

/// The dimension of its activations that `op` would have last.
int64_t getOtherDim(MatmulOp op) {
  return op.isXFeatureMajor() ? op.getXReductionDim() : op.getXTokenDim();
}

/// `use` is that of activations by a product as `op`, in the same layout, and
/// would have them in the same one.
bool readsAs(OpOperand &use, MatmulOp op) {
  auto reader = dyn_cast<MatmulOp>(use.getOwner());
  return reader && use.getOperandNumber() == 0 &&
         reader.isXFeatureMajor() == op.isXFeatureMajor() &&
         prefersFeatureMajor(reader) == prefersFeatureMajor(op) &&
         getOtherDim(reader) == getOtherDim(op);
}

struct PropagateLayout
    : public nm_sparse::impl::NMSparsePropagateLayoutPassBase<PropagateLayout> {
  using Base::Base;

  /// Returns true if `op`, and what reads its activations like it, take less of
  /// the objective in the other layout, where a transposition takes `copy`
  /// besides.
  bool hasGain(MatmulOp op, const Prediction &copy, const Chip &target) {
    Prediction sumBefore{}, sumAfter = copy;
    bool mustChange = false;
    bool isFeatureMajor = op.isXFeatureMajor();
    for (OpOperand &use : op.getX().getUses()) {
      if (!readsAs(use, op))
        continue;
      auto reader = cast<MatmulOp>(use.getOwner());
      MatmulProblem problem = MatmulProblem::get(reader, expectedTokens);
      // Products without a schedule are reported where schedules are chosen.
      if (ShapedType::isDynamic(problem.windows))
        return false;
      auto before = predictInLayout(problem, getSchedule(reader),
                                    isFeatureMajor, target, comparedBy);
      problem.xAlignment = 32; // The program's own, see NMSparseAlignRowsPass.
      auto after = predictInLayout(problem, getSchedule(reader),
                                   !isFeatureMajor, target, comparedBy);
      if (!after)
        return false;
      if (before)
        add(sumBefore, *before);
      else // It has no other schedules.
        mustChange = true;
      add(sumAfter, *after);
    }
    return mustChange ||
           getScore(sumAfter, comparedBy) < getScore(sumBefore, comparedBy);
  }

  /// Returns true if `op` should have its activations in the other layout.
  bool isWorth(MatmulOp op, bool transposed, const Chip &target) {
    if (layout == "feature-major")
      return true;
    Prediction copy{};
    if (transposed) {
      auto type = cast<ShapedType>(op.getX().getType());
      copy =
          predictCopy(2 * countBytes(type, expectedTokens),
                      predictTranspose(type, expectedTokens, target), target);
    }
    return hasGain(op, copy, target);
  }

  void visit(RewriterBase &rewriter, MatmulOp op, const Chip &target) {
    Value x = op.getX();
    // Tokens of an image in another layout would be in another order.
    if (x.getDefiningOp<PatchesOp>())
      return;
    int64_t dim = getOtherDim(op);
    Operation *blocker = nullptr;
    // A reader of a transposition reads its source instead.
    Value before = getTransposedFrom(x, dim);
    if (!before && canExchangeDims(x, dim, blocker)) {
      if (isWorth(op, /*transposed=*/false, target))
        changed.insert(exchangeDims(rewriter, x, dim));
      return;
    }
    if (!isWorth(op, /*transposed=*/!before, target))
      return;
    if (blocker) {
      InFlightDiagnostic remark =
          emitRemark(x.getLoc(), "is transposed for a product, because it has "
                                 "a use that wants it ")
          << (op.isXFeatureMajor() ? "feature-major" : "token-major");
      remark.attachNote(blocker->getLoc()) << "that use is here";
    }
    Value transposed = before ? before : createTranspose(rewriter, x, dim);
    // They read another value then, so what reads like `op` is found first.
    SmallVector<OpOperand *> uses;
    for (OpOperand &use : x.getUses())
      if (readsAs(use, op))
        uses.push_back(&use);
    for (OpOperand *use : uses)
      setExchangedOperand(rewriter, *use, transposed, dim);
    if (before && x.use_empty())
      rewriter.eraseOp(x.getDefiningOp());
    else
      copies.push_back({x, transposed, dim});
  }

  /// Elementwise ops whose result changed read the transposed copy of an
  /// operand where there is one.
  void shareCopies(RewriterBase &rewriter) {
    for (auto [value, transposed, dim] : copies)
      for (OpOperand &use : llvm::make_early_inc_range(value.getUses())) {
        auto generic = dyn_cast<linalg::GenericOp>(use.getOwner());
        if (generic && !generic.isDpsInit(&use) &&
            changed.contains(generic->getResult(0)))
          setExchangedOperand(rewriter, use, transposed, dim);
      }
  }

  void runOnOperation() override {
    if (layout != "auto" && layout != "feature-major" && layout != "keep") {
      getOperation().emitError("unknown layout '")
          << layout.getValue() << "'; legal are auto, feature-major and keep";
      return signalPassFailure();
    }
    expectedTokens = getExpectedTokens(getOperation(), tokens);
    if (tokens < 1) {
      getOperation().emitError("cannot choose layouts for ")
          << tokens.getValue() << " tokens; legal are 1 and more";
      return signalPassFailure();
    }
    const Chip *target = findChip(chip, gpu);
    // An unknown chip is an error where schedules are chosen, and so is an
    // objective that it cannot be judged by.
    if (!target || layout == "keep")
      return;
    llvm::Expected<Objective> parsed = parseObjective(objective, *target);
    if (!parsed)
      return llvm::consumeError(parsed.takeError());
    comparedBy = *parsed;
    SmallVector<MatmulOp> matmuls;
    getOperation().walk([&](MatmulOp op) { matmuls.push_back(op); });
    IRRewriter rewriter(&getContext());
    for (MatmulOp op : matmuls) {
      bool wants = prefersFeatureMajor(op);
      if (wants != op.isXFeatureMajor() && (wants || layout == "auto"))
        visit(rewriter, op, *target);
    }
    shareCopies(rewriter);
    changed.clear();
    copies.clear();
  }

  /// A value, its transposed copy, and the dimension that they differ in.
  struct Copy {
    Value value, transposed;
    int64_t dim;
  };
  int64_t expectedTokens = 0;
  Objective comparedBy = Objective::Time;
  SmallVector<Copy> copies;
  llvm::SmallSetVector<Value, 8> changed;
};
} // namespace
