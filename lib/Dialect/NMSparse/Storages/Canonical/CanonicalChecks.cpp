//===- CanonicalChecks.cpp - products of weights in canonical form --------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Dialect/NMSparse/IR/WeightChecks.h"

using namespace mlir;
using namespace mlir::nm_sparse;

SmallVector<StringRef> EncodingAttr::getComponentNames() const {
  SmallVector<StringRef> names = {kValuesComponent, kIndexComponent};
  if (hasInnerLevel())
    names.push_back(kInnerIndexComponent);
  return names;
}

std::optional<WindowCount> EncodingAttr::getWindowCount(Type) const {
  return WindowCount{/*component=*/1, /*factor=*/1, /*divisor=*/getN()};
}

/// Checks the positions of the inner level.
static LogicalResult verifyInnerIndex(MatmulOp op) {
  const SparsityLevel &level = op.getEncoding().getInnermost();
  auto type =
      cast<RankedTensorType>(op.getComponent(kInnerIndexComponent).getType());
  int64_t rank = op.getWeightMap().getNumResults();
  if (type.getRank() != rank ||
      !type.getElementType().isSignlessInteger(level.getIndexBitWidth()))
    return op.emitOpError("inner_index must have rank ")
           << rank << " and element type i" << level.getIndexBitWidth()
           << ", got " << type;
  int64_t rows = type.getDimSize(rank - 2), windows = op.getNumWindows();
  if (ShapedType::isDynamic(rows) || ShapedType::isDynamic(windows) ||
      rows == windows * level.n)
    return success();
  return op.emitOpError("index has ")
         << windows << " windows, whose inner_index has " << windows * level.n
         << " rows, got " << type;
}

/// Checks the rows of the values against those that the positions name.
static LogicalResult verifyValueRows(MatmulOp op) {
  auto values = cast<RankedTensorType>(op.getValues().getType());
  int64_t windows = op.getNumWindows();
  int64_t rows = values.getDimSize(values.getRank() - 2);
  if (ShapedType::isDynamic(windows) || ShapedType::isDynamic(rows))
    return success();
  int64_t named = windows * op.getEncoding().getInnermost().getKeptRows();
  bool isPart = op.getPlace(kFirstRowPlace) != nullptr;
  if (isPart ? rows > named : rows != named)
    return op.emitOpError("values has ")
           << rows << " rows, index names " << (isPart ? "no more than " : "")
           << named;
  return success();
}

LogicalResult EncodingAttr::verifyMatmul(Operation *operation) const {
  auto op = cast<MatmulOp>(operation);
  auto values = cast<RankedTensorType>(op.getValues().getType());
  int64_t rank = op.getWeightMap().getNumResults();
  if (values.getRank() != rank)
    return op.emitOpError("values must have rank ")
           << rank << ", got " << values;
  int64_t columns = values.getShape().back();
  SmallVector<StringRef> names = op.getForm().getComponentNames();
  return failure(
      failed(verifyPlaceNames(op, {kPanelOffsetPlace, kFirstRowPlace})) ||
      failed(verifyNotEmpty(op, op.getValues(), op.getWeightMap())) ||
      failed(verifyPositions(op, columns)) || failed(verifyValueRows(op)) ||
      (hasInnerLevel() && failed(verifyInnerIndex(op))) ||
      failed(verifyOutputs(op, columns)) || failed(verifyBatch(op, names)));
}
