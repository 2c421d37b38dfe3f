//===- MoveBatch.cpp - the batch as another dimension of images -----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Dialect/NMSparse/Utils/MoveBatch.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::nm_sparse;

OpFoldResult nm_sparse::multiplySizes(OpBuilder &b, Location loc,
                                      ArrayRef<OpFoldResult> sizes) {
  AffineExpr product = b.getAffineConstantExpr(1);
  for (unsigned i = 0; i < sizes.size(); ++i)
    product = product * b.getAffineSymbolExpr(i);
  return affine::makeComposedFoldedAffineApply(b, loc, product, sizes);
}

Value nm_sparse::expandTo(OpBuilder &b, Location loc, Value value,
                          ArrayRef<ReassociationIndices> groups,
                          ArrayRef<OpFoldResult> sizes) {
  auto [shape, dynamic] =
      decomposeMixedValues(SmallVector<OpFoldResult>(sizes));
  auto type = RankedTensorType::get(shape, getElementTypeOrSelf(value));
  return tensor::ExpandShapeOp::create(b, loc, type, value, groups,
                                       SmallVector<OpFoldResult>(sizes));
}

/// Groups of `rank` dimensions, those from `first` to `last` as one.
static SmallVector<ReassociationIndices> joinDims(int64_t rank, int64_t first,
                                                  int64_t last) {
  SmallVector<ReassociationIndices> groups;
  for (int64_t dim : llvm::seq(rank)) {
    if (dim <= first || dim > last)
      groups.emplace_back();
    groups.back().push_back(dim);
  }
  return groups;
}

/// Moves dimension 0 behind the others, or the last one in front of them.
static Value moveBatch(OpBuilder &b, Location loc, Value value, bool isToLast) {
  auto type = cast<RankedTensorType>(value.getType());
  int64_t rank = type.getRank(), last = rank - 1;
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(b, loc, value);
  std::rotate(sizes.begin(), sizes.begin() + (isToLast ? 1 : last),
              sizes.end());
  auto collapse = [&](int64_t first, int64_t end) -> Value {
    return tensor::CollapseShapeOp::create(b, loc, value,
                                           joinDims(rank, first, end));
  };
  if (type.getDimSize(isToLast ? 0 : last) == 1 && rank > 2) {
    value = isToLast ? collapse(0, 1) : collapse(last - 1, last);
    return expandTo(b, loc, value,
                    isToLast ? joinDims(rank, last - 1, last)
                             : joinDims(rank, 0, 1),
                    sizes);
  }
  value = isToLast ? collapse(1, last) : collapse(0, last - 1);
  SmallVector<OpFoldResult> matrix = tensor::getMixedSizes(b, loc, value);
  std::swap(matrix[0], matrix[1]);
  Value empty = tensor::EmptyOp::create(b, loc, matrix, type.getElementType());
  value =
      linalg::TransposeOp::create(b, loc, value, empty, ArrayRef<int64_t>{1, 0})
          .getResult()[0];
  return expandTo(
      b, loc, value,
      isToLast ? joinDims(rank, 0, last - 1) : joinDims(rank, 1, last), sizes);
}

Value nm_sparse::moveBatchLast(OpBuilder &b, Location loc, Value value) {
  return moveBatch(b, loc, value, /*isToLast=*/true);
}

Value nm_sparse::moveBatchFirst(OpBuilder &b, Location loc, Value value) {
  return moveBatch(b, loc, value, /*isToLast=*/false);
}

Value nm_sparse::createFillAs(OpBuilder &b, Location loc, Value value,
                              ArrayRef<OpFoldResult> sizes) {
  auto fill = value.getDefiningOp<linalg::FillOp>();
  if (!fill)
    return {};
  Value empty = tensor::EmptyOp::create(b, loc, sizes,
                                        getElementTypeOrSelf(fill.getType(0)));
  return linalg::FillOp::create(b, loc, fill.getInputs(), empty).getResult(0);
}
