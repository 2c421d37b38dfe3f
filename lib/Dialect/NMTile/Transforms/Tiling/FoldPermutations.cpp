//===- FoldPermutations.cpp - permutations as addresses -------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A product of a shuffled weight has its outputs in the order of the weight.
// Where outputs are rows of the result in memory, a tile writes each row, and
// reads each row of a residual, at another address, and a bias has few
// elements. Where they lie along memory, each element would be a sector of its
// own: a kernel that reads and writes whole rows is faster, unless they are
// few.
//
//===----------------------------------------------------------------------===//

#include "Tiling/TiledResult.h"

#include "nm_sparse/Dialect/NMSparse/Utils/Contraction.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "nm_sparse/Dialect/NMTile/IR/NMTile.h"
#include "nm_sparse/Dialect/NMTile/Transforms/Passes.h"

namespace mlir::nm_sparse {
#define GEN_PASS_DEF_NMSPARSEFOLDPERMUTATIONSPASS
#include "nm_sparse/Dialect/NMTile/Transforms/Passes.h.inc"
} // namespace mlir::nm_sparse

using namespace mlir;
using namespace mlir::nm_sparse;

static Value createView(RewriterBase &rewriter, PermuteOp op, Value source) {
  return PermutedViewOp::create(rewriter, op.getLoc(), source.getType(), source,
                                op.getPerm(), op.getDimAttr(),
                                op.getBatchAttr(), UnitAttr());
}

/// Lets what reads the tiles of `written` before it writes them read those of
/// `source`.
static void redirectReads(RewriterBase &rewriter, const TiledResult &written,
                          Value source) {
  for (Operation *user : llvm::make_early_inc_range(written.tile.getUsers())) {
    auto slice = dyn_cast<tensor::ExtractSliceOp>(user);
    if (!slice)
      continue;
    rewriter.setInsertionPoint(slice);
    auto copy = cast<tensor::ExtractSliceOp>(rewriter.clone(*slice));
    copy.getSourceMutable().assign(source);
    rewriter.replaceUsesWithIf(slice, copy, [](OpOperand &use) {
      return isa<vector::TransferReadOp>(use.getOwner());
    });
  }
}

/// Writes the tiles of a product where `op` would put them; false where that
/// cannot be.
static bool foldIntoWrites(RewriterBase &rewriter, PermuteOp op) {
  std::optional<TiledResult> written;
  if (!op.getInverse())
    written = findTiledResult(op.getSource(), op);
  if (!written)
    return false;
  Value init = written->init->get(), empty = init;
  rewriter.setInsertionPoint(written->forall);
  if (!init.getDefiningOp<tensor::EmptyOp>()) {
    // A sum that begins with what the program has.
    auto before = init.getDefiningOp<PermuteOp>();
    if (!before || !before.getInverse() || before.getPerm() != op.getPerm() ||
        before.getDim() != op.getDim() || before.getBatch() != op.getBatch())
      return false;
    Value view = createView(rewriter, before, before.getSource());
    auto type = cast<RankedTensorType>(init.getType());
    empty = tensor::EmptyOp::create(
        rewriter, op.getLoc(),
        tensor::getMixedSizes(rewriter, op.getLoc(), before.getSource()),
        type.getElementType());
    redirectReads(rewriter, *written, view);
    rewriter.setInsertionPoint(written->forall);
  }
  // Each product writes a tensor of its own, equal ones may be one here.
  empty = rewriter.clone(*empty.getDefiningOp())->getResult(0);
  Value view = createView(rewriter, op, empty);
  rewriter.modifyOpInPlace(written->forall, [&] { written->init->set(view); });
  if (Operation *before = init.getDefiningOp(); before && before->use_empty())
    rewriter.eraseOp(before);
  rewriter.setInsertionPoint(op);
  rewriter.replaceOpWithNewOp<PermutedViewOp>(
      op, op.getType(), op.getSource(), op.getPerm(), op.getDimAttr(),
      op.getBatchAttr(), rewriter.getUnitAttr());
  return true;
}

namespace {
struct FoldPermutations
    : public nm_sparse::impl::NMSparseFoldPermutationsPassBase<
          FoldPermutations> {
  using Base::Base;

  /// Returns true if the elements of `op` are few enough to be accessed one by
  /// one, or need not be.
  bool isWorth(PermuteOp op, int64_t expectedTokens) {
    auto type = cast<RankedTensorType>(op.getType());
    int64_t rank = type.getRank();
    if (rank == 1 || static_cast<int64_t>(op.getDim()) + 1 != rank)
      return true;
    int64_t elements = 1;
    for (int64_t size : type.getShape())
      elements *= ShapedType::isDynamic(size) ? expectedTokens : size;
    return elements <= scattered;
  }

  void runOnOperation() override {
    int64_t expectedTokens = getExpectedTokens(getOperation(), tokens);
    SmallVector<PermuteOp> results;
    getOperation().walk([&](PermuteOp op) {
      if (!op.getInverse() && isWorth(op, expectedTokens))
        results.push_back(op);
    });
    IRRewriter rewriter(&getContext());
    // The initial value of a sum is folded together with the result.
    for (PermuteOp op : results)
      foldIntoWrites(rewriter, op);
    getOperation().walk([&](PermuteOp op) {
      if (!op.getInverse() || !isWorth(op, expectedTokens) ||
          !llvm::all_of(op->getUses(), isReadByTiles))
        return;
      rewriter.setInsertionPoint(op);
      rewriter.replaceOp(op, createView(rewriter, op, op.getSource()));
    });
  }
};
} // namespace
