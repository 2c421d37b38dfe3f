//===- PatchSlice.cpp - a part of the matrix of an image ------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PatchSlice.h"
#include "nm_sparse/Dialect/NMTile/IR/TileLayout.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::nm_sparse;

/// The entry of a batch that comes first.
static Value getEntry(OpBuilder &b, Location loc, Value image,
                      OpFoldResult entry) {
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(b, loc, image);
  SmallVector<OpFoldResult> offsets(4, b.getIndexAttr(0)),
      strides(4, b.getIndexAttr(1));
  offsets[0] = entry;
  sizes[0] = strides[0];
  return tensor::ExtractSliceOp::create(b, loc, image, offsets, sizes, strides);
}

PatchSlice nm_sparse::findPatchSlice(OpBuilder &b, MatmulOp op) {
  ScheduleAttr schedule = getSchedule(op);
  bool isInCode = schedule.getOperandTiles().isInCode();
  if (!isInCode && op.hasBatch())
    return {};
  // Threads transpose no patches.
  int64_t bits = op.getX().getType().getElementTypeBitWidth();
  if (op.getXTokenDim() < op.getXReductionDim() &&
      (isInCode ||
       !keepsTokensAsRows(schedule, op.getTileEncoding(), bits / 8)))
    return {};
  SmallVector<tensor::ExtractSliceOp> parts;
  Value x = op.getX(), whole = x;
  while (auto part = whole.getDefiningOp<tensor::ExtractSliceOp>()) {
    if (!part.hasUnitStride() ||
        part.getType().getRank() != part.getSourceType().getRank())
      return {};
    parts.push_back(part);
    whole = part.getSource();
  }
  auto patches = whole.getDefiningOp<PatchesOp>();
  if (!patches ||
      (!isInCode && !schedule.getTransfers().getX().readsPatches(
                        patches.getPatches(),
                        cast<ShapedType>(patches.getImage().getType()))))
    return {};
  Location loc = op.getLoc();
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(b, loc, x),
                            offsets(sizes.size(), b.getIndexAttr(0));
  AffineExpr s0, s1;
  bindSymbols(b.getContext(), s0, s1);
  for (tensor::ExtractSliceOp part : parts)
    for (auto [sum, offset] : llvm::zip(offsets, part.getMixedOffsets()))
      sum =
          affine::makeComposedFoldedAffineApply(b, loc, s0 + s1, {sum, offset});
  PatchSlice found{patches.getPatches(), patches.getImage(), {}};
  if (found.patches.isBatched())
    found.image = getEntry(b, loc, found.image, offsets[0]);
  for (const SmallVector<OpFoldResult> &numbers : {offsets, sizes})
    llvm::append_range(found.slice,
                       getValueOrCreateConstantIndexOp(
                           b, loc, ArrayRef(numbers).take_back(2)));
  return found;
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
