//===- SinkTransposes.cpp - elementwise ops in the layout of the product --===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The result of a convolution that is computed with its batch last is
// transposed for a program that has it first. What is added to it, and applied
// to it, is computed before that, where it is fused with the product; what the
// next convolution transposes back is then not transposed at all.
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Dialect/NMSparse/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "nm_sparse/Dialect/NMSparse/IR/NMSparse.h"
#include "nm_sparse/Dialect/NMSparse/Utils/Elementwise.h"
#include "nm_sparse/Dialect/NMSparse/Utils/WeightView.h"
#include "llvm/ADT/MapVector.h"

namespace mlir::nm_sparse {
#define GEN_PASS_DEF_NMSPARSESINKTRANSPOSESPASS
#include "nm_sparse/Dialect/NMSparse/Transforms/Passes.h.inc"
} // namespace mlir::nm_sparse

using namespace mlir;
using namespace mlir::nm_sparse;

//===----------------------------------------------------------------------===//
// Operations that sink
//===----------------------------------------------------------------------===//

/// Returns true if `value` is the result of a product with its outputs first
/// and its tokens taken apart, or made of one elementwise. A transposed value
/// is not: where several layouts meet, each would sink below the other.
static bool isBatchLast(Value value) {
  SmallVector<Value> pending = {value};
  llvm::SmallDenseSet<Value> seen;
  while (!pending.empty()) {
    Value current = pending.pop_back_val();
    if (!seen.insert(current).second)
      continue;
    if (auto expand = current.getDefiningOp<tensor::ExpandShapeOp>()) {
      Operation *source = expand.getSrc().getDefiningOp();
      auto groups = expand.getReassociationIndices();
      if (isa_and_nonnull<MatmulOp, PermuteOp>(source) && groups.size() == 2 &&
          groups.front().size() == 1)
        return true;
    }
    auto op = current.getDefiningOp<linalg::LinalgOp>();
    if (op && isFusableElementwise(op) &&
        !isa<linalg::TransposeOp>(op.getOperation()))
      llvm::append_range(pending, op.getDpsInputs());
  }
  return false;
}

/// The input of `op`, an elementwise one, that is the transposed result of a
/// product, or null.
static OpOperand *findTransposed(linalg::LinalgOp op) {
  if (!isFusableElementwise(op) || isa<linalg::TransposeOp>(op))
    return nullptr;
  for (OpOperand *input : op.getDpsInputOperands()) {
    auto transpose = input->get().getDefiningOp<linalg::TransposeOp>();
    // One of nothing, which is about to be folded, would sink for ever.
    if (transpose && !llvm::is_sorted(transpose.getPermutation()) &&
        isBatchLast(transpose.getInput()))
      return input;
  }
  return nullptr;
}

//===----------------------------------------------------------------------===//
// Other operands
//===----------------------------------------------------------------------===//

static Value createEmpty(OpBuilder &b, Value like,
                         ArrayRef<int64_t> permutation) {
  Location loc = like.getLoc();
  auto empty = like.getDefiningOp<tensor::EmptyOp>();
  SmallVector<OpFoldResult> sizes =
      empty ? empty.getMixedSizes() : tensor::getMixedSizes(b, loc, like);
  return tensor::EmptyOp::create(b, loc, applyPermutation(sizes, permutation),
                                 getElementTypeOrSelf(like.getType()));
}

/// `value` with the dimensions that `permutation` says: at once where all of
/// its elements are the same, or where it is transposed already.
static Value arrange(OpBuilder &b, Value value, ArrayRef<int64_t> permutation) {
  Location loc = value.getLoc();
  if (value.getDefiningOp<tensor::EmptyOp>())
    return createEmpty(b, value, permutation);
  if (auto fill = value.getDefiningOp<linalg::FillOp>())
    return linalg::FillOp::create(
               b, loc, fill.getInputs(),
               createEmpty(b, fill.getOutputs()[0], permutation))
        .getResult(0);
  SplatElementsAttr splat;
  if (matchPattern(value, m_Constant(&splat))) {
    auto type = cast<RankedTensorType>(value.getType());
    return arith::ConstantOp::create(
        b, loc,
        splat.resizeSplat(
            type.clone(applyPermutation(type.getShape(), permutation))));
  }
  auto transpose = value.getDefiningOp<linalg::TransposeOp>();
  if (transpose &&
      invertPermutationVector(transpose.getPermutation()) == permutation)
    return transpose.getInput();
  return linalg::TransposeOp::create(
             b, loc, value, createEmpty(b, value, permutation), permutation)
      ->getResult(0);
}

/// Adapts `map` to a tensor whose dimensions have been permuted.
static AffineMap arrange(AffineMap map, ArrayRef<int64_t> permutation) {
  return AffineMap::get(map.getNumDims(), map.getNumSymbols(),
                        applyPermutation(map.getResults(), permutation),
                        map.getContext());
}

//===----------------------------------------------------------------------===//
// Patterns
//===----------------------------------------------------------------------===//

namespace {

/// Only a generic op says how its operands lie.
struct Generalize : public OpInterfaceRewritePattern<linalg::LinalgOp> {
  using OpInterfaceRewritePattern::OpInterfaceRewritePattern;

  LogicalResult matchAndRewrite(linalg::LinalgOp op,
                                PatternRewriter &rewriter) const override {
    if (isa<linalg::GenericOp>(op) || !findTransposed(op))
      return rewriter.notifyMatchFailure(op, "generic, not elementwise, or "
                                             "reads no transposed product");
    return linalg::generalizeNamedOp(rewriter, op);
  }
};

/// A bias that is broadcast is read as it is, rather than transposed.
struct ReadBroadcast : public OpRewritePattern<linalg::GenericOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(linalg::GenericOp op,
                                PatternRewriter &rewriter) const override {
    if (!findTransposed(op))
      return rewriter.notifyMatchFailure(op, "reads no transposed product");
    for (OpOperand *input : op.getDpsInputOperands()) {
      auto producer = input->get().getDefiningOp<linalg::LinalgOp>();
      std::optional<WeightView> view =
          producer ? getRearrangement(producer) : std::nullopt;
      if (!view || view->map.getNumResults() == view->map.getNumDims())
        continue;
      SmallVector<AffineMap> maps = op.getIndexingMapsArray();
      AffineMap &map = maps[input->getOperandNumber()];
      map = view->map.compose(map);
      rewriter.modifyOpInPlace(op, [&] {
        input->set(view->weight);
        op.setIndexingMapsAttr(rewriter.getAffineMapArrayAttr(maps));
      });
      return success();
    }
    return rewriter.notifyMatchFailure(op, "nothing is broadcast for it");
  }
};

/// `f(transpose(y), b)` -> `transpose(f(y, transpose inverse(b)))`
struct SinkTranspose : public OpRewritePattern<linalg::GenericOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(linalg::GenericOp op,
                                PatternRewriter &rewriter) const override {
    OpOperand *transposed = findTransposed(op);
    if (!transposed)
      return rewriter.notifyMatchFailure(op, "reads no transposed product");
    auto transpose = transposed->get().getDefiningOp<linalg::TransposeOp>();
    AffineMap map = op.getMatchingIndexingMap(transposed);
    OpOperand *init = op.getDpsInitOperand(0);
    if (!map.isPermutation() || op.getMatchingIndexingMap(init) != map)
      return rewriter.notifyMatchFailure(op, "permutes the result itself");
    SmallVector<int64_t> inverse =
        invertPermutationVector(transpose.getPermutation());
    // Loops stay as they are, so what is not read in whole stays, too.
    SmallVector<AffineMap> maps = op.getIndexingMapsArray();
    SmallVector<Value> operands;
    for (OpOperand &operand : op->getOpOperands()) {
      AffineMap &own = maps[operand.getOperandNumber()];
      Value value = operand.get();
      if (own == map) {
        own = arrange(own, inverse);
        value = &operand == init && !op.payloadUsesValueFromOperand(&operand)
                    ? createEmpty(rewriter, value, inverse)
                    : arrange(rewriter, value, inverse);
      }
      operands.push_back(value);
    }
    auto before = cast<linalg::GenericOp>(rewriter.clone(*op));
    before->setOperands(operands);
    before.setIndexingMapsAttr(rewriter.getAffineMapArrayAttr(maps));
    before->getResult(0).setType(operands.back().getType());
    rewriter.replaceOpWithNewOp<linalg::TransposeOp>(
        op, before->getResult(0),
        createEmpty(rewriter, init->get(), {0, 1, 2, 3}),
        transpose.getPermutation());
    return success();
  }
};

/// Patches of an image whose batch is last in any order need no other.
struct ReadTransposedImage : public OpRewritePattern<PatchesOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(PatchesOp op,
                                PatternRewriter &rewriter) const override {
    auto transpose = op.getImage().getDefiningOp<linalg::TransposeOp>();
    if (!transpose)
      return rewriter.notifyMatchFailure(op, "image is not transposed");
    PatchesAttr patches = op.getPatches();
    std::string order(patches.getImage());
    for (auto [dim, letter] :
         llvm::zip_equal(transpose.getPermutation(), patches.getImage()))
      order[dim] = letter;
    if (patches.isTokenMajor() || order.back() != 'b')
      return rewriter.notifyMatchFailure(
          op, "tokens would be others, or their batch not the last dimension");
    auto before = PatchesAttr::get(getContext(), patches.getKernel(),
                                   patches.getStrides(), patches.getDilations(),
                                   patches.getLow(), patches.getHigh(), order,
                                   patches.getRows());
    rewriter.modifyOpInPlace(op, [&] {
      op.getImageMutable().assign(transpose.getInput());
      op.setPatchesAttr(before);
    });
    return success();
  }
};

struct SinkTransposes
    : public nm_sparse::impl::NMSparseSinkTransposesPassBase<SinkTransposes> {
  /// All readers of a tensor in one other layout share its transposition.
  static void share(func::FuncOp function, RewriterBase &rewriter) {
    llvm::MapVector<std::pair<Value, Attribute>,
                    SmallVector<linalg::TransposeOp>>
        groups;
    function.walk([&](linalg::TransposeOp op) {
      groups[{op.getInput(), op.getPermutationAttr()}].push_back(op);
    });
    for (auto &[key, ops] : groups)
      for (linalg::TransposeOp op : llvm::drop_begin(ops))
        if (op->getBlock() == ops.front()->getBlock())
          rewriter.replaceOp(op, ops.front()->getResults());
  }

  void runOnOperation() override {
    if (!getOperation()
             .walk([](PatchesOp) { return WalkResult::interrupt(); })
             .wasInterrupted())
      return;
    MLIRContext *context = &getContext();
    RewritePatternSet patterns(context);
    patterns.add<Generalize, SinkTranspose, ReadTransposedImage>(context);
    // First, while it is not transposed.
    patterns.add<ReadBroadcast>(context, /*benefit=*/2);
    linalg::TransposeOp::getCanonicalizationPatterns(patterns, context);
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      return signalPassFailure();
    IRRewriter rewriter(context);
    share(getOperation(), rewriter);
  }
};

} // namespace
