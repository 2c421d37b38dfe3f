//===- PatchesToLinalg.cpp - the matrix of a convolution, element by element =//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PatchesToLinalg.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "nm_sparse/Dialect/NMSparse/IR/NMSparse.h"

using namespace mlir;
using namespace mlir::nm_sparse;

/// The image with the zeros that lie around it.
static Value pad(OpBuilder &b, PatchesOp op) {
  Location loc = op.getLoc();
  PatchesAttr patches = op.getPatches();
  auto type = cast<RankedTensorType>(op.getImage().getType());
  SmallVector<OpFoldResult> low(4, b.getIndexAttr(0)), high = low;
  SmallVector<int64_t> shape(type.getShape());
  for (unsigned axis : {0, 1}) {
    int64_t dim = patches.getImageDim("hw"[axis]);
    low[dim] = b.getIndexAttr(patches.getLow()[axis]);
    high[dim] = b.getIndexAttr(patches.getHigh()[axis]);
    shape[dim] += patches.getLow()[axis] + patches.getHigh()[axis];
  }
  Value zero =
      arith::ConstantOp::create(b, loc, b.getZeroAttr(type.getElementType()));
  return tensor::PadOp::create(b, loc, type.clone(shape), op.getImage(), low,
                               high, zero);
}

namespace {

/// Before: `%x = nm_sparse.patches <...> %image : tensor<CxHxWxB> -> ...`
/// After:  a tensor.pad, a linalg.generic over (c, r, s, p, q, b) that reads
/// the image at (c, p * stride + r * dilation, q * stride + s * dilation, b),
/// and a tensor.collapse_shape to k x m; or over (b, p, q, r, s, c), to m x k;
/// or over (b, c, r, s, p, q), to b x k x m.
struct PatchesToLinalg : public OpRewritePattern<PatchesOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(PatchesOp op,
                                PatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    PatchesAttr patches = op.getPatches();
    auto type = cast<RankedTensorType>(op.getImage().getType());
    // The loops are the dimensions of the result.
    std::string loops = patches.isTokenMajor() ? "bpq" + patches.getRows().str()
                        : patches.isBatched()
                            ? "b" + patches.getRows().str() + "pq"
                            : patches.getRows().str() + "pqb";
    auto loop = [&](char letter) {
      return rewriter.getAffineDimExpr(loops.find(letter));
    };
    SmallVector<AffineExpr> at(4);
    for (char letter : StringRef("cb"))
      at[patches.getImageDim(letter)] = loop(letter);
    for (unsigned axis : {0, 1})
      at[patches.getImageDim("hw"[axis])] =
          loop("pq"[axis]) * patches.getStrides()[axis] +
          loop("rs"[axis]) * patches.getDilations()[axis];
    SmallVector<OpFoldResult> sizes(loops.size());
    for (auto [letter, extent] : llvm::zip_equal(
             patches.getRows(),
             patches.getRowExtents(type.getDimSize(patches.getImageDim('c')))))
      sizes[loops.find(letter)] = rewriter.getIndexAttr(extent);
    for (unsigned axis : {0, 1})
      sizes[loops.find("pq"[axis])] =
          rewriter.getIndexAttr(patches.getOutputSize(
              type.getDimSize(patches.getImageDim("hw"[axis])), axis));
    sizes[loops.find('b')] = tensor::getMixedSize(rewriter, loc, op.getImage(),
                                                  patches.getImageDim('b'));
    Value empty =
        tensor::EmptyOp::create(rewriter, loc, sizes, type.getElementType());
    SmallVector<utils::IteratorType> iterators(6,
                                               utils::IteratorType::parallel);
    auto copy = linalg::GenericOp::create(
        rewriter, loc, empty.getType(), pad(rewriter, op), empty,
        ArrayRef<AffineMap>{AffineMap::get(6, 0, at, rewriter.getContext()),
                            rewriter.getMultiDimIdentityMap(6)},
        iterators, [](OpBuilder &b, Location l, ValueRange args) {
          linalg::YieldOp::create(b, l, args.front());
        });
    SmallVector<ReassociationIndices> groups = {{0, 1, 2}, {3, 4, 5}};
    if (patches.isBatched())
      groups = {{0}, {1, 2, 3}, {4, 5}};
    rewriter.replaceOpWithNewOp<tensor::CollapseShapeOp>(
        op, op.getType(), copy.getResult(0), groups);
    return success();
  }
};

} // namespace

void nm_sparse::populatePatchesToLinalgPatterns(RewritePatternSet &patterns) {
  patterns.add<PatchesToLinalg>(patterns.getContext());
}
