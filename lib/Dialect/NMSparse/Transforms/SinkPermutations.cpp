//===- SinkPermutations.cpp - elementwise ops in the product's order ------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A product of a shuffled weight has its outputs in the order of the weight.
// Operands of the ops behind it can be brought into that order, too: a bias has
// one element for each output. So these ops stay with the product, where they
// are fused, and the order of the outputs is restored behind them.
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Dialect/NMSparse/Transforms/Passes.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "nm_sparse/Dialect/NMSparse/IR/NMSparse.h"
#include "nm_sparse/Dialect/NMSparse/Utils/Elementwise.h"

namespace mlir::nm_sparse {
#define GEN_PASS_DEF_NMSPARSESINKPERMUTATIONSPASS
#include "nm_sparse/Dialect/NMSparse/Transforms/Passes.h.inc"
} // namespace mlir::nm_sparse

using namespace mlir;
using namespace mlir::nm_sparse;

/// The input of `op` that a permutation restores the order of, for `op` alone.
static OpOperand *findPermuted(linalg::LinalgOp op) {
  for (OpOperand *input : op.getDpsInputOperands()) {
    auto permute = input->get().getDefiningOp<PermuteOp>();
    if (permute && !permute.getInverse() && permute->hasOneUse())
      return input;
  }
  return nullptr;
}

/// Where `map` has loop `loop`; none if it has not.
static std::optional<unsigned> findLoop(AffineMap map, unsigned loop) {
  return map.getResultPosition(getAffineDimExpr(loop, map.getContext()));
}

namespace {

/// Only a generic op says how its operands lie.
struct Generalize : public OpInterfaceRewritePattern<linalg::LinalgOp> {
  using OpInterfaceRewritePattern::OpInterfaceRewritePattern;

  LogicalResult matchAndRewrite(linalg::LinalgOp op,
                                PatternRewriter &rewriter) const override {
    if (isa<linalg::GenericOp>(op) || !isFusableElementwise(op) ||
        !findPermuted(op))
      return rewriter.notifyMatchFailure(op, "generic, not elementwise, or "
                                             "reads no permutation");
    return linalg::generalizeNamedOp(rewriter, op);
  }
};

/// `f(permute(y), b)` -> `permute(f(y, permute inverse(b)))`
struct SinkPermutation : public OpRewritePattern<linalg::GenericOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(linalg::GenericOp op,
                                PatternRewriter &rewriter) const override {
    if (!isFusableElementwise(op))
      return rewriter.notifyMatchFailure(op, "not elementwise");
    OpOperand *permuted = findPermuted(op);
    if (!permuted)
      return rewriter.notifyMatchFailure(op, "reads no permutation");
    auto permute = permuted->get().getDefiningOp<PermuteOp>();
    AffineMap map = op.getMatchingIndexingMap(permuted);
    auto at = [&](uint64_t dim) { return map.getDimPosition(dim); };
    unsigned loop = at(permute.getDim());
    std::optional<unsigned> batch;
    if (permute.getBatch())
      batch = at(*permute.getBatch());
    // An operand that has outputs and no batch has one order of outputs for all
    // entries of the batch, and cannot have one for each.
    for (OpOperand &operand : op->getOpOperands()) {
      AffineMap own = op.getMatchingIndexingMap(&operand);
      if (batch && findLoop(own, loop) && !findLoop(own, *batch))
        return rewriter.notifyMatchFailure(
            op, "an operand has outputs and no batch, each entry of which has "
                "an order of its own");
    }

    Location loc = op.getLoc();
    auto reorder = [&](Value value, AffineMap own, bool isInverse) -> Value {
      std::optional<unsigned> dim = findLoop(own, loop);
      if (!dim)
        return value;
      IntegerAttr batchDim;
      if (batch)
        batchDim = rewriter.getI64IntegerAttr(*findLoop(own, *batch));
      return rewriter.createOrFold<PermuteOp>(
          loc, value.getType(), value, permute.getPerm(),
          rewriter.getI64IntegerAttr(*dim), batchDim,
          isInverse ? rewriter.getUnitAttr() : UnitAttr());
    };
    SmallVector<Value> operands;
    for (OpOperand &operand : op->getOpOperands()) {
      bool isRead =
          !op.isDpsInit(&operand) || op.payloadUsesValueFromOperand(&operand);
      operands.push_back(&operand == permuted ? permute.getSource()
                         : isRead ? reorder(operand.get(),
                                            op.getMatchingIndexingMap(&operand),
                                            /*isInverse=*/true)
                                  : operand.get());
    }
    auto ordered = cast<linalg::GenericOp>(rewriter.clone(*op));
    ordered->setOperands(operands);
    AffineMap resultMap = op.getMatchingIndexingMap(op.getDpsInitOperand(0));
    rewriter.replaceOp(op, reorder(ordered.getResult(0), resultMap,
                                   /*isInverse=*/false));
    return success();
  }
};

struct SinkPermutations
    : public nm_sparse::impl::NMSparseSinkPermutationsPassBase<
          SinkPermutations> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<Generalize, SinkPermutation>(&getContext());
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};

} // namespace
