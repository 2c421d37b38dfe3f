//===- FoldInterleaving.cpp - rows of a batch in turns as addresses -------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A convolution with its batch last computes a pixel of all images after that
// of all others; NHWC has all pixels of an image together. Either way a pixel
// is a row of channels, which a tile writes at another address.
//
//===----------------------------------------------------------------------===//

#include "Storage/Layout.h"
#include "Tiling/TiledResult.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Transforms/RegionUtils.h"
#include "nm_sparse/Dialect/NMTile/IR/NMTile.h"
#include "nm_sparse/Dialect/NMTile/Transforms/Passes.h"

namespace mlir::nm_sparse {
#define GEN_PASS_DEF_NMSPARSEFOLDINTERLEAVINGPASS
#include "nm_sparse/Dialect/NMTile/Transforms/Passes.h.inc"
} // namespace mlir::nm_sparse

using namespace mlir;
using namespace mlir::nm_sparse;

template <typename ReshapeOp>
static bool joinsRows(ReshapeOp reshape) {
  auto groups = reshape.getReassociationIndices();
  return groups.size() == 2 && groups[0].size() == 2;
}

/// Writes the tiles of a product where `op` would put their rows.
static void foldIntoWrites(RewriterBase &rewriter, linalg::TransposeOp op) {
  auto expand = op.getInput().getDefiningOp<tensor::ExpandShapeOp>();
  auto empty = op.getInit().getDefiningOp<tensor::EmptyOp>();
  if (!expand || !joinsRows(expand) || !expand->hasOneUse() || !empty)
    return;
  std::optional<TiledResult> written = findTiledResult(expand.getSrc(), expand);
  if (!written || !written->init->get().getDefiningOp<tensor::EmptyOp>() ||
      failed(moveValueDefinitions(rewriter, op.getInit(), written->forall)))
    return;
  Location loc = op.getLoc();
  Value init = written->init->get();
  rewriter.setInsertionPoint(written->forall);
  // Each product writes a tensor of its own, equal ones may be one here.
  Value target = rewriter.clone(*empty)->getResult(0);
  Value view = InterleavedViewOp::create(rewriter, loc, init.getType(), target,
                                         /*inverse=*/UnitAttr());
  rewriter.modifyOpInPlace(written->forall, [&] { written->init->set(view); });
  rewriter.setInsertionPoint(op);
  rewriter.replaceOpWithNewOp<InterleavedViewOp>(
      op, empty.getType(), expand.getSrc(), rewriter.getUnitAttr());
  rewriter.eraseOp(expand);
}

/// Reads rows in turns where `op` takes them from.
static void foldIntoReads(RewriterBase &rewriter, tensor::CollapseShapeOp op) {
  auto transpose = op.getSrc().getDefiningOp<linalg::TransposeOp>();
  if (!transpose || !exchangesRows(transpose) || !joinsRows(op) ||
      !llvm::all_of(op->getUses(), isReadByTiles))
    return;
  rewriter.setInsertionPoint(op);
  rewriter.replaceOpWithNewOp<InterleavedViewOp>(
      op, op.getType(), transpose.getInput(), /*inverse=*/UnitAttr());
  if (transpose->use_empty())
    rewriter.eraseOp(transpose);
}

namespace {
struct FoldInterleaving
    : public nm_sparse::impl::NMSparseFoldInterleavingPassBase<
          FoldInterleaving> {
  void runOnOperation() override {
    SmallVector<linalg::TransposeOp> results;
    SmallVector<tensor::CollapseShapeOp> operands;
    getOperation().walk([&](Operation *op) {
      if (auto transpose = dyn_cast<linalg::TransposeOp>(op);
          transpose && exchangesRows(transpose))
        results.push_back(transpose);
      else if (auto collapse = dyn_cast<tensor::CollapseShapeOp>(op))
        operands.push_back(collapse);
    });
    IRRewriter rewriter(&getContext());
    for (linalg::TransposeOp op : results)
      foldIntoWrites(rewriter, op);
    for (tensor::CollapseShapeOp op : operands)
      foldIntoReads(rewriter, op);
  }
};
} // namespace
