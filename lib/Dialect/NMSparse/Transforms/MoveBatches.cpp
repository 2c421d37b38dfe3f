//===- MoveBatches.cpp - images of convolutions with their batch last -----===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Kernels that gather rows of patches copy the images of a batch beside each
// other. Those with their weight in the code read each image alone, and in
// whatever order it comes; which of the two a convolution gets is known when
// constants are specialized.
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Dialect/NMSparse/Transforms/Passes.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/PatternMatch.h"
#include "nm_sparse/Dialect/NMSparse/IR/NMSparse.h"
#include "nm_sparse/Dialect/NMSparse/Utils/MoveBatch.h"

namespace mlir::nm_sparse {
#define GEN_PASS_DEF_NMSPARSEMOVEBATCHESPASS
#include "nm_sparse/Dialect/NMSparse/Transforms/Passes.h.inc"
} // namespace mlir::nm_sparse

using namespace mlir;
using namespace mlir::nm_sparse;

/// The patches with a batch in front that `op` multiplies, where it writes each
/// entry as outputs x pixels and its weight is no code; else null.
static PatchesOp findBatchedPatches(MatmulOp op) {
  auto patches = op.getX().getDefiningOp<PatchesOp>();
  if (!patches || !patches.getPatches().isBatched() ||
      NMSparseDialect::MaxCodeBytesAttrHelper(op.getContext()).getAttr(op))
    return {};
  auto map = [&](ArrayRef<unsigned> targets) {
    return AffineMap::getMultiDimMapWithTargets(4, targets, op.getContext());
  };
  bool isPlain = op.getXMap() == map({0, 3, 1}) && !op.hasBatchedWeight() &&
                 op.getResultMap() == map({0, 2, 1});
  return isPlain ? patches : PatchesOp();
}

/// The same patches of all entries, batch fastest.
static Value joinEntries(OpBuilder &b, Location loc, PatchesOp op) {
  PatchesAttr patches = op.getPatches();
  std::string order = patches.getImage().str();
  std::rotate(order.begin(), order.begin() + 1, order.end());
  patches = PatchesAttr::get(b.getContext(), patches.getKernel(),
                             patches.getStrides(), patches.getDilations(),
                             patches.getLow(), patches.getHigh(), order,
                             patches.getRows());
  Value image = moveBatchLast(b, loc, op.getImage());
  return PatchesOp::create(
      b, loc,
      PatchesOp::inferType(cast<RankedTensorType>(image.getType()), patches),
      image, patches);
}

static void move(IRRewriter &b, MatmulOp op, PatchesOp patches) {
  Location loc = op.getLoc();
  b.setInsertionPoint(op);
  Value x = joinEntries(b, loc, patches);
  // Entries x outputs x pixels, and with the entries last.
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(b, loc, op.getInit());
  std::rotate(sizes.begin(), sizes.begin() + 1, sizes.end());
  SmallVector<ReassociationIndices> groups = {{0}, {1, 2}};
  Value init = createFillAs(
      b, loc, op.getInit(),
      {sizes[0], multiplySizes(b, loc, ArrayRef(sizes).drop_front())});
  if (!init)
    init = tensor::CollapseShapeOp::create(
        b, loc, moveBatchLast(b, loc, op.getInit()), groups);
  auto map = [&](ArrayRef<unsigned> targets) {
    return AffineMap::getMultiDimMapWithTargets(3, targets, b.getContext());
  };
  auto product = cast<MatmulOp>(b.clone(*op));
  product.getXMutable().assign(x);
  product.getInitMutable().assign(init);
  product.setIndexingMapsAttr(
      b.getAffineMapArrayAttr({map({2, 0}), map({2, 1}), map({1, 0})}));
  product.getResult().setType(cast<RankedTensorType>(init.getType()));
  Value result = expandTo(b, loc, product.getResult(), groups, sizes);
  b.replaceOp(op, moveBatchFirst(b, loc, result));
  if (patches->use_empty())
    b.eraseOp(patches);
}

namespace {
struct MoveBatches
    : public nm_sparse::impl::NMSparseMoveBatchesPassBase<MoveBatches> {
  void runOnOperation() override {
    SmallVector<MatmulOp> products;
    getOperation()->walk([&](MatmulOp op) { products.push_back(op); });
    IRRewriter rewriter(&getContext());
    for (MatmulOp op : products)
      if (PatchesOp patches = findBatchedPatches(op))
        move(rewriter, op, patches);
  }
};
} // namespace
