//===- PatchSlice.cpp - a part of the matrix of an image ------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PatchSlice.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::nm_sparse;

FailureOr<PatchSlice> nm_sparse::findPatches(OpBuilder &b, Location loc,
                                             Value x) {
  SmallVector<tensor::ExtractSliceOp> parts;
  Value whole = x;
  while (auto part = whole.getDefiningOp<tensor::ExtractSliceOp>()) {
    if (!part.hasUnitStride() ||
        part.getType().getRank() != part.getSourceType().getRank())
      return failure();
    parts.push_back(part);
    whole = part.getSource();
  }
  auto patches = whole.getDefiningOp<PatchesOp>();
  if (!patches)
    return failure();
  PatchSlice slice{patches, {}, tensor::getMixedSizes(b, loc, x)};
  slice.offsets.assign(slice.sizes.size(), b.getIndexAttr(0));
  AffineExpr s0, s1;
  bindSymbols(b.getContext(), s0, s1);
  for (tensor::ExtractSliceOp part : parts)
    for (auto [sum, offset] : llvm::zip(slice.offsets, part.getMixedOffsets()))
      sum =
          affine::makeComposedFoldedAffineApply(b, loc, s0 + s1, {sum, offset});
  return slice;
}

void nm_sparse::eraseUnusedPatches(RewriterBase &rewriter, Value x) {
  while (x && x.use_empty()) {
    Operation *op = x.getDefiningOp();
    if (!isa_and_nonnull<tensor::ExtractSliceOp, PatchesOp>(op))
      return;
    x = isa<PatchesOp>(op) ? Value() : op->getOperand(0);
    rewriter.eraseOp(op);
  }
}
