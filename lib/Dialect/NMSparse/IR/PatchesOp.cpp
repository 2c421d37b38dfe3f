//===- PatchesOp.cpp - an image as the matrix of a convolution ------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Dialect/NMSparse/IR/NMSparse.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::nm_sparse;

RankedTensorType PatchesOp::inferType(RankedTensorType image,
                                      PatchesAttr patches) {
  auto size = [&](char letter) {
    return image.getDimSize(patches.getImageDim(letter));
  };
  if (image.getRank() != 4)
    return {};
  for (char letter : StringRef("chw"))
    if (ShapedType::isDynamic(size(letter)))
      return {};
  int64_t outputs =
      patches.getOutputSize(size('h'), 0) * patches.getOutputSize(size('w'), 1);
  if (outputs < 1)
    return {};
  int64_t rows = size('c') * patches.getKernel()[0] * patches.getKernel()[1];
  int64_t batch = size('b');
  int64_t tokens = ShapedType::isDynamic(batch) ? batch : outputs * batch;
  SmallVector<int64_t> shape = {rows, tokens};
  if (patches.isTokenMajor())
    std::swap(shape[0], shape[1]);
  if (patches.isBatched())
    shape = {batch, rows, outputs};
  return RankedTensorType::get(shape, image.getElementType());
}

LogicalResult PatchesOp::verify() {
  auto image = cast<RankedTensorType>(getImage().getType());
  RankedTensorType expected = inferType(image, getPatches());
  if (!expected)
    return emitOpError("image must have rank 4, static sizes but for its "
                       "batch, and be no smaller than the kernel of ")
           << getPatches() << ", got " << image;
  if (getType() != expected)
    return emitOpError("result must be ")
           << expected << " for " << image << ", got " << getType();
  return success();
}

LogicalResult
PatchesOp::reifyResultShapes(OpBuilder &builder,
                             ReifiedRankedShapedTypeDims &reifiedReturnShapes) {
  auto image = cast<RankedTensorType>(getImage().getType());
  PatchesAttr patches = getPatches();
  int64_t h = image.getDimSize(patches.getImageDim('h'));
  int64_t w = image.getDimSize(patches.getImageDim('w'));
  auto type = cast<RankedTensorType>(getType());
  if (patches.isBatched()) {
    reifiedReturnShapes.push_back(
        {tensor::getMixedSize(builder, getLoc(), getImage(), 0),
         builder.getIndexAttr(type.getDimSize(1)),
         builder.getIndexAttr(type.getDimSize(2))});
    return success();
  }
  OpFoldResult tokens = affine::makeComposedFoldedAffineApply(
      builder, getLoc(),
      builder.getAffineSymbolExpr(0) *
          (patches.getOutputSize(h, 0) * patches.getOutputSize(w, 1)),
      {tensor::getMixedSize(builder, getLoc(), getImage(),
                            patches.getImageDim('b'))});
  SmallVector<OpFoldResult> sizes(2, tokens);
  sizes[getRowDim()] = builder.getIndexAttr(type.getDimSize(getRowDim()));
  reifiedReturnShapes.push_back(sizes);
  return success();
}
