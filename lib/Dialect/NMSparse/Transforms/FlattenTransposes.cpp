//===- FlattenTransposes.cpp - images as matrices to transpose ------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A kernel exchanges the last of two or three dimensions with another one. Most
// layouts of an image differ in no more: dimensions that stay together are one.
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Dialect/NMSparse/Transforms/Passes.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"
#include "mlir/Transforms/WalkPatternRewriteDriver.h"
#include "nm_sparse/Dialect/NMSparse/IR/NMSparse.h"

namespace mlir::nm_sparse {
#define GEN_PASS_DEF_NMSPARSEFLATTENTRANSPOSESPASS
#include "nm_sparse/Dialect/NMSparse/Transforms/Passes.h.inc"
} // namespace mlir::nm_sparse

using namespace mlir;
using namespace mlir::nm_sparse;

namespace {
/// A transposition of fewer dimensions, of which each is several of the source
/// and of the result.
struct Flat {
  SmallVector<ReassociationIndices> source, result;
  SmallVector<int64_t> permutation;
};
} // namespace

/// Groups of `rank` dimensions, of which each begins at one of `starts`, but
/// the first one at 0.
static SmallVector<ReassociationIndices> group(int64_t rank,
                                               ArrayRef<int64_t> starts) {
  SmallVector<ReassociationIndices> groups(1);
  for (int64_t dim = 0; dim < rank; ++dim) {
    if (!groups.back().empty() && llvm::is_contained(starts, dim))
      groups.emplace_back();
    groups.back().push_back(dim);
  }
  return groups;
}

/// Joins dimensions that follow each other on both sides. Those of extent 1
/// follow whatever lies in front of them.
static Flat flatten(RankedTensorType source, ArrayRef<int64_t> permutation) {
  // By place in the result, the first dimensions of what stays together.
  SmallVector<int64_t> starts, resultStarts;
  std::optional<int64_t> last;
  for (auto [place, dim] : llvm::enumerate(permutation)) {
    if (source.getDimSize(dim) == 1)
      continue;
    bool follows = last && *last < dim;
    for (int64_t between = last.value_or(0) + 1; follows && between < dim;
         ++between)
      follows = source.getDimSize(between) == 1;
    if (!follows) {
      starts.push_back(dim);
      resultStarts.push_back(static_cast<int64_t>(place));
    }
    last = dim;
  }
  Flat flat;
  SmallVector<int64_t> sorted = starts;
  llvm::sort(sorted);
  flat.source =
      group(source.getRank(),
            ArrayRef(sorted).drop_front(std::min<size_t>(1, sorted.size())));
  flat.result =
      group(source.getRank(),
            ArrayRef(resultStarts)
                .drop_front(std::min<size_t>(1, resultStarts.size())));
  for (int64_t start : starts)
    flat.permutation.push_back(llvm::find(sorted, start) - sorted.begin());
  if (flat.permutation.empty())
    flat.permutation.push_back(0);
  return flat;
}

static bool hasKernel(ArrayRef<int64_t> permutation) {
  return llvm::is_contained({ArrayRef<int64_t>({0}), ArrayRef<int64_t>({1, 0}),
                             ArrayRef<int64_t>({2, 1, 0}),
                             ArrayRef<int64_t>({0, 2, 1})},
                            permutation);
}

namespace {

/// Before: `linalg.transpose` of f x p x q x b to b x p x q x f
/// After:  one of f x (p, q) x b, between reshapes
struct FlattenTranspose : public OpRewritePattern<linalg::TransposeOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(linalg::TransposeOp op,
                                PatternRewriter &rewriter) const override {
    auto type = dyn_cast<RankedTensorType>(op.getInput().getType());
    if (!type || type.getRank() != 4)
      return rewriter.notifyMatchFailure(op, "not of an image");
    // Joined, pixels with gaps between them would be copied first.
    if (auto slice = op.getInput().getDefiningOp<tensor::ExtractSliceOp>();
        slice && !slice.hasUnitStride())
      return rewriter.notifyMatchFailure(op, "of some pixels of an image");
    Flat flat = flatten(type, op.getPermutation());
    if (!hasKernel(flat.permutation))
      return rewriter.notifyMatchFailure(op, "exchanges more than two groups");
    Location loc = op.getLoc();
    Value source = tensor::CollapseShapeOp::create(rewriter, loc, op.getInput(),
                                                   flat.source);
    if (flat.permutation.size() > 1) {
      SmallVector<OpFoldResult> sizes =
          tensor::getMixedSizes(rewriter, loc, source);
      Value empty = tensor::EmptyOp::create(
          rewriter, loc, applyPermutation(sizes, flat.permutation),
          type.getElementType());
      source = linalg::TransposeOp::create(rewriter, loc, source, empty,
                                           flat.permutation)
                   ->getResult(0);
    }
    SmallVector<OpFoldResult> sizes =
        tensor::getMixedSizes(rewriter, loc, op.getInput());
    rewriter.replaceOpWithNewOp<tensor::ExpandShapeOp>(
        op, op->getResult(0).getType(), source, flat.result,
        applyPermutation(sizes, op.getPermutation()));
    return success();
  }
};

struct FlattenTransposes
    : public nm_sparse::impl::NMSparseFlattenTransposesPassBase<
          FlattenTransposes> {
  void runOnOperation() override {
    if (!getOperation()
             .walk([](PatchesOp) { return WalkResult::interrupt(); })
             .wasInterrupted())
      return;
    RewritePatternSet patterns(&getContext());
    patterns.add<FlattenTranspose>(&getContext());
    walkAndApplyPatterns(getOperation(), std::move(patterns));
  }
};

} // namespace
