//===- PropagateLayout.cpp - feature-major activations between products ---===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Goes through the products in order. What a product reads token-major and
// another op of the function computes for it is computed feature-major; what
// comes from elsewhere is transposed, when the products that read it gain more
// than that takes.
//
//===----------------------------------------------------------------------===//

#include "Layout.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "nm_sparse/Analysis/TransposeCost.h"
#include "nm_sparse/Dialect/NMSparse/Transforms/Passes.h"
#include "llvm/ADT/SetVector.h"
#include <limits>

namespace mlir::nm_sparse {
#define GEN_PASS_DEF_NMSPARSEPROPAGATELAYOUTPASS
#include "nm_sparse/Dialect/NMSparse/Transforms/Passes.h.inc"
} // namespace mlir::nm_sparse

using namespace mlir;
using namespace mlir::nm_sparse;

namespace {

/// Products that read a value token-major.
SmallVector<MatmulOp> getTokenMajorReaders(Value value, int64_t dim) {
  SmallVector<MatmulOp> readers;
  for (OpOperand &use : value.getUses())
    if (auto matmul = dyn_cast<MatmulOp>(use.getOwner());
        matmul && use.getOperandNumber() == 0 && matmul.getXTokenDim() == dim)
      readers.push_back(matmul);
  return readers;
}

struct PropagateLayout
    : public nm_sparse::impl::NMSparsePropagateLayoutPassBase<PropagateLayout> {
  using Base::Base;

  /// Predicted seconds that the readers of `value` save when it is
  /// feature-major. None when nothing is known of one of them then.
  std::optional<double> getGain(Value value, int64_t dim, const Chip &target) {
    double gain = 0;
    for (MatmulOp op : getTokenMajorReaders(value, dim)) {
      MatmulProblem problem = MatmulProblem::get(op, expectedTokens);
      // What has no schedule is reported where schedules are chosen.
      if (ShapedType::isDynamic(problem.windows))
        return std::nullopt;
      auto before = predictProduct(problem, op.getScheduleAttr(),
                                   /*xFeatureMajor=*/false, target);
      problem.xAlignment = 32; // The program's own, see NMSparseAlignRowsPass.
      auto after = predictProduct(problem, op.getScheduleAttr(),
                                  /*xFeatureMajor=*/true, target);
      if (!after)
        return std::nullopt;
      // Some products have no other schedules.
      gain += before ? *before - *after : std::numeric_limits<double>::max();
    }
    return gain;
  }

  /// Whether the products that read `value` should have it feature-major.
  bool isWorth(Value value, int64_t dim, bool transposed, const Chip &target) {
    if (layout == "feature-major")
      return true;
    std::optional<double> gain = getGain(value, dim, target);
    double cost = transposed
                      ? predictTranspose(cast<ShapedType>(value.getType()),
                                         expectedTokens, target)
                      : 0;
    return gain && *gain > cost;
  }

  void visit(RewriterBase &rewriter, MatmulOp op, const Chip &target) {
    Value x = op.getX();
    int64_t dim = op.getXTokenDim();
    Operation *blocker = nullptr;
    // What is the transposition of something reads that instead.
    Value before = getTransposedFrom(x, dim);
    if (!before && canExchangeDims(x, dim, blocker)) {
      if (isWorth(x, dim, /*transposed=*/false, target))
        changed.insert(exchangeDims(rewriter, x, dim));
      return;
    }
    if (!isWorth(x, dim, /*transposed=*/!before, target))
      return;
    if (blocker) {
      InFlightDiagnostic remark = emitRemark(
          x.getLoc(), "is transposed for a product, because it has a use that "
                      "wants it token-major");
      remark.attachNote(blocker->getLoc()) << "that use is here";
    }
    Value transposed = before ? before : createTranspose(rewriter, x, dim);
    for (OpOperand &use : llvm::make_early_inc_range(x.getUses()))
      if (auto reader = dyn_cast<MatmulOp>(use.getOwner());
          reader && use.getOperandNumber() == 0 && reader.getXTokenDim() == dim)
        setExchangedOperand(rewriter, use, transposed, dim);
    if (before && x.use_empty())
      rewriter.eraseOp(x.getDefiningOp());
    else
      copies.push_back({x, transposed, dim});
  }

  /// Elementwise ops whose result is feature-major read the transposed copy of
  /// an operand where there is one.
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
    // An unknown chip is an error where schedules are chosen.
    if (!target || layout == "keep")
      return;
    SmallVector<MatmulOp> matmuls;
    getOperation().walk([&](MatmulOp op) { matmuls.push_back(op); });
    IRRewriter rewriter(&getContext());
    for (MatmulOp op : matmuls)
      if (!op.isXFeatureMajor())
        visit(rewriter, op, *target);
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
  SmallVector<Copy> copies;
  llvm::SmallSetVector<Value, 8> changed;
};
} // namespace
