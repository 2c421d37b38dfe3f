//===- InterleavedViewOp.cpp - rows of a batch in turns -------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Dialect/NMTile/IR/NMTile.h"

using namespace mlir;
using namespace mlir::nm_sparse;

LogicalResult InterleavedViewOp::verify() {
  auto source = cast<ShapedType>(getSource().getType());
  auto result = cast<ShapedType>(getResult().getType());
  if (getInverse() && isa<MemRefType>(source))
    return emitOpError("inverse is of a tensor, got ") << source;
  if (isa<MemRefType>(source) != isa<MemRefType>(result))
    return emitOpError("is of a tensor as a tensor or of a buffer as a buffer, "
                       "got ")
           << source << " as " << result;
  ShapedType batch = getInverse() ? result : source;
  ShapedType matrix = getInverse() ? source : result;
  if (batch.getRank() != 3 || matrix.getRank() != 2)
    return emitOpError("is of batch x rows x columns as a matrix, got ")
           << batch << " and " << matrix;
  if (batch.getElementType() != matrix.getElementType())
    return emitOpError("has elements of one type, got ")
           << batch.getElementType() << " and " << matrix.getElementType();
  auto differs = [](int64_t a, int64_t b) {
    return !ShapedType::isDynamic(a) && !ShapedType::isDynamic(b) && a != b;
  };
  if (differs(batch.getDimSize(2), matrix.getDimSize(1)))
    return emitOpError("has as many columns as its source, got ")
           << batch << " and " << matrix;
  int64_t rows = ShapedType::kDynamic;
  if (!batch.isDynamicDim(0) && !batch.isDynamicDim(1))
    rows = batch.getDimSize(0) * batch.getDimSize(1);
  if (differs(rows, matrix.getDimSize(0)))
    return emitOpError("of ")
           << batch << " has " << rows << " rows, got " << matrix;
  return success();
}

Value InterleavedViewOp::getViewSource() { return getSource(); }
