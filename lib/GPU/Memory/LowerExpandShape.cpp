//===- LowerExpandShape.cpp - reshapes with several dynamic sizes ---------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Upstream's --expand-strided-metadata computes the one dynamic size that a
// group of dimensions may have from the others, and crashes where there are
// two. The op says all of them.
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/GPU/Passes.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

namespace mlir::nm_sparse {
#define GEN_PASS_DEF_NMSPARSELOWEREXPANDSHAPEPASS
#include "nm_sparse/GPU/Passes.h.inc"
} // namespace mlir::nm_sparse

using namespace mlir;
using namespace mlir::nm_sparse;

/// Returns true if a group of dimensions has two dynamic sizes.
static bool hasManyDynamicSizes(memref::ExpandShapeOp op) {
  return llvm::any_of(op.getReassociationIndices(),
                      [&](const ReassociationIndices &group) {
                        return llvm::count_if(group, [&](int64_t dim) {
                                 return op.getResultType().isDynamicDim(dim);
                               }) > 1;
                      });
}

/// `expand_shape` -> `reinterpret_cast` of what `extract_strided_metadata`
/// finds: the innermost dimension of a group has the stride of what is
/// expanded, the others that of the next one times its size.
static void lower(IRRewriter &rewriter, memref::ExpandShapeOp op) {
  Location loc = op.getLoc();
  rewriter.setInsertionPoint(op);
  auto metadata =
      memref::ExtractStridedMetadataOp::create(rewriter, loc, op.getSrc());
  SmallVector<OpFoldResult> source = metadata.getConstifiedMixedStrides();
  SmallVector<OpFoldResult> sizes = op.getMixedOutputShape();
  SmallVector<OpFoldResult> strides(sizes.size());
  AffineExpr product =
      rewriter.getAffineSymbolExpr(0) * rewriter.getAffineSymbolExpr(1);
  for (auto [dim, group] : llvm::enumerate(op.getReassociationIndices())) {
    OpFoldResult stride = source[dim];
    for (int64_t inner : llvm::reverse(group)) {
      strides[inner] = stride;
      stride = affine::makeComposedFoldedAffineApply(rewriter, loc, product,
                                                     {stride, sizes[inner]});
    }
  }
  rewriter.replaceOpWithNewOp<memref::ReinterpretCastOp>(
      op, op.getResultType(), metadata.getBaseBuffer(),
      metadata.getConstifiedMixedOffset(), sizes, strides);
}

namespace {
struct LowerExpandShape
    : public nm_sparse::impl::NMSparseLowerExpandShapePassBase<
          LowerExpandShape> {
  void runOnOperation() override {
    IRRewriter rewriter(&getContext());
    getOperation()->walk([&](memref::ExpandShapeOp op) {
      if (hasManyDynamicSizes(op))
        lower(rewriter, op);
    });
  }
};
} // namespace
