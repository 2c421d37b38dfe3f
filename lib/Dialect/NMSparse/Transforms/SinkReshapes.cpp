//===- SinkReshapes.cpp - elementwise ops in the product's dimensions -----===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A layer over batch x sequence x features multiplies tokens x features, and
// its bias and activation come after the tensor.expand_shape that takes the
// tokens apart again. They are computed for tokens instead, where they can be
// fused with the product, and the reshape moves behind them. What is broadcast
// or transposed for them is read as it is.
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Dialect/NMSparse/Transforms/Passes.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Tensor/Transforms/Transforms.h"
#include "mlir/Interfaces/DestinationStyleOpInterface.h"
#include "mlir/Interfaces/ValueBoundsOpInterface.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "nm_sparse/Dialect/NMSparse/IR/NMSparse.h"
#include "nm_sparse/Dialect/NMSparse/Utils/Elementwise.h"
#include "nm_sparse/Dialect/NMSparse/Utils/WeightView.h"
#include "nm_sparse/Support/Exchange.h"

namespace mlir::nm_sparse {
#define GEN_PASS_DEF_NMSPARSESINKRESHAPESPASS
#include "nm_sparse/Dialect/NMSparse/Transforms/Passes.h.inc"
} // namespace mlir::nm_sparse

using namespace mlir;
using namespace mlir::nm_sparse;

/// Returns true if a product computes `value`, or elementwise ops and reshapes
/// behind one do.
static bool comesFromProduct(Value value) {
  SmallVector<Value> pending = {value};
  llvm::DenseSet<Value> seen;
  while (!pending.empty()) {
    Value current = pending.pop_back_val();
    if (!seen.insert(current).second)
      continue;
    if (current.getDefiningOp<MatmulOp>())
      return true;
    if (auto reshape = current.getDefiningOp<tensor::ExpandShapeOp>())
      pending.push_back(reshape.getSrc());
    auto op = current.getDefiningOp<linalg::LinalgOp>();
    if (op && isFusableElementwise(op))
      llvm::append_range(pending, op.getDpsInputs());
  }
  return false;
}

/// Returns true if a kernel transposes what `op` does
/// (--nm-sparse-lower-transpose); as a generic op it would be one of the host.
static bool isExchange(linalg::LinalgOp op) {
  auto transpose = dyn_cast<linalg::TransposeOp>(op.getOperation());
  if (!transpose || transpose.getPermutation().size() > 3)
    return false;
  auto rank = static_cast<int64_t>(transpose.getPermutation().size());
  for (int64_t dim = 0; dim + 1 < rank; ++dim)
    if (transpose.getPermutation() == ArrayRef(getExchange(rank, dim)))
      return true;
  return false;
}

/// Returns true if `operand` is the reshaped result of a product, and an
/// elementwise op reads it.
static bool shouldSink(OpOperand *operand) {
  auto owner = dyn_cast<linalg::LinalgOp>(operand->getOwner());
  auto reshape = operand->get().getDefiningOp<tensor::ExpandShapeOp>();
  return owner && reshape && !owner.isDpsInit(operand) &&
         isFusableElementwise(owner) && !isExchange(owner) &&
         comesFromProduct(reshape.getSrc());
}

namespace {

/// Only a generic op can have its dimensions collapsed.
struct GeneralizeReader : public OpInterfaceRewritePattern<linalg::LinalgOp> {
  using OpInterfaceRewritePattern::OpInterfaceRewritePattern;

  LogicalResult matchAndRewrite(linalg::LinalgOp op,
                                PatternRewriter &rewriter) const override {
    if (isa<linalg::GenericOp>(op))
      return rewriter.notifyMatchFailure(op, "it is generic");
    if (llvm::none_of(op->getOpOperands(),
                      [](OpOperand &operand) { return shouldSink(&operand); }))
      return rewriter.notifyMatchFailure(op, "reads no reshaped product");
    return linalg::generalizeNamedOp(rewriter, op);
  }
};

/// A bias that is broadcast, or anything transposed, for an elementwise op
/// behind a product is read as it was, with another map.
struct ReadArranged : public OpInterfaceRewritePattern<linalg::LinalgOp> {
  using OpInterfaceRewritePattern::OpInterfaceRewritePattern;

  LogicalResult matchAndRewrite(linalg::LinalgOp op,
                                PatternRewriter &rewriter) const override {
    if (!isFusableElementwise(op))
      return rewriter.notifyMatchFailure(op, "not elementwise");
    for (OpOperand *input : op.getDpsInputOperands()) {
      auto producer = input->get().getDefiningOp<linalg::LinalgOp>();
      std::optional<WeightView> view =
          producer ? getRearrangement(producer) : std::nullopt;
      if (!view || comesFromProduct(view->weight) ||
          !comesFromProduct(op->getResult(0)))
        continue;
      if (!isa<linalg::GenericOp>(op))
        return linalg::generalizeNamedOp(rewriter, op);
      auto generic = cast<linalg::GenericOp>(op.getOperation());
      SmallVector<AffineMap> maps = generic.getIndexingMapsArray();
      AffineMap &map = maps[input->getOperandNumber()];
      map = view->map.compose(map);
      rewriter.modifyOpInPlace(generic, [&] {
        input->set(view->weight);
        generic.setIndexingMapsAttr(rewriter.getAffineMapArrayAttr(maps));
      });
      return success();
    }
    return rewriter.notifyMatchFailure(op, "nothing is arranged for it, or no "
                                           "product comes before it");
  }
};

/// A size of a reshaped tensor is known to the reshape, which can go then.
struct ResolveDim : public OpRewritePattern<tensor::DimOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(tensor::DimOp op,
                                PatternRewriter &rewriter) const override {
    auto reshape = op.getSource().getDefiningOp<tensor::ExpandShapeOp>();
    std::optional<int64_t> dim = op.getConstantIndex();
    if (!reshape || !dim)
      return rewriter.notifyMatchFailure(op, "not a known size of a reshape");
    rewriter.replaceOp(
        op, getValueOrCreateConstantIndexOp(
                rewriter, op.getLoc(), reshape.getMixedOutputShape()[*dim]));
    return success();
  }
};

/// The sizes of `value` as what it is computed in says them.
SmallVector<OpFoldResult> getKnownSizes(Value value) {
  while (auto op = value.getDefiningOp<DestinationStyleOpInterface>())
    value = op.getTiedOpOperand(cast<OpResult>(value))->get();
  if (auto empty = value.getDefiningOp<tensor::EmptyOp>())
    return empty.getMixedSizes();
  if (auto reshape = value.getDefiningOp<tensor::ExpandShapeOp>())
    return reshape.getMixedOutputShape();
  return {};
}

/// A collapse that is expanded to the same sizes again. Upstream folds this
/// where at most one size of a group is dynamic.
struct FoldReshapePair : public OpRewritePattern<tensor::ExpandShapeOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(tensor::ExpandShapeOp op,
                                PatternRewriter &rewriter) const override {
    auto collapse = op.getSrc().getDefiningOp<tensor::CollapseShapeOp>();
    if (!collapse || collapse.getSrcType() != op.getResultType() ||
        collapse.getReassociationIndices() != op.getReassociationIndices())
      return rewriter.notifyMatchFailure(op, "expands no such collapse");
    SmallVector<OpFoldResult> before = getKnownSizes(collapse.getSrc());
    SmallVector<OpFoldResult> after = op.getMixedOutputShape();
    if (before.size() != after.size())
      return rewriter.notifyMatchFailure(op, "sizes are not known");
    for (auto [a, b] : llvm::zip(before, after)) {
      FailureOr<bool> equal = ValueBoundsConstraintSet::areEqual(a, b);
      if (failed(equal) || !*equal)
        return rewriter.notifyMatchFailure(op, "sizes may differ");
    }
    rewriter.replaceOp(op, collapse.getSrc());
    return success();
  }
};

struct SinkReshapes
    : public nm_sparse::impl::NMSparseSinkReshapesPassBase<SinkReshapes> {
  void runOnOperation() override {
    if (!getOperation()
             .walk([](MatmulOp) { return WalkResult::interrupt(); })
             .wasInterrupted())
      return;
    MLIRContext *context = &getContext();
    RewritePatternSet patterns(context);
    patterns.add<FoldReshapePair, GeneralizeReader, ResolveDim>(context);
    // First, while no reshape hides how an operand is arranged.
    patterns.add<ReadArranged>(context, /*benefit=*/2);
    linalg::populateFoldReshapeOpsByCollapsingPatterns(patterns, shouldSink);
    // The reshapes that collapsing leaves at other operands.
    tensor::CollapseShapeOp::getCanonicalizationPatterns(patterns, context);
    tensor::ExpandShapeOp::getCanonicalizationPatterns(patterns, context);
    tensor::EmptyOp::getCanonicalizationPatterns(patterns, context);
    linalg::FillOp::getCanonicalizationPatterns(patterns, context);
    tensor::populateFoldTensorEmptyPatterns(patterns);
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};
} // namespace
