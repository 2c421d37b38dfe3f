//===- WeightChecks.cpp - checks that storages share ----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "WeightChecks.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::nm_sparse;

LogicalResult nm_sparse::verifyNotEmpty(MatmulOp op, Value operand,
                                        AffineMap map) {
  static constexpr const char *names[] = {"batch", "number of tokens",
                                          "number of outputs", "contraction"};
  unsigned first = op.hasBatch() ? 0 : 1; // loop 0 is that of names[first]
  auto type = cast<ShapedType>(operand.getType());
  for (unsigned i = 0, e = map.getNumResults(); i < e; ++i)
    if (type.getDimSize(i) == 0)
      return op.emitOpError("has a ")
             << names[first + map.getDimPosition(i)] << " of 0 in " << type
             << ", legal is at least 1";
  return success();
}

LogicalResult nm_sparse::verifyBatch(MatmulOp op,
                                     ArrayRef<StringRef> components) {
  if (!op.hasBatchedWeight())
    return success();
  AffineExpr batch = getAffineDimExpr(0, op.getContext());
  auto extentOf = [&](Value operand, AffineMap map) {
    return cast<ShapedType>(operand.getType())
        .getDimSize(*map.getResultPosition(batch));
  };
  int64_t known = extentOf(op.getX(), op.getXMap());
  StringRef knownName = "x";
  if (ShapedType::isDynamic(known)) {
    known = extentOf(op.getInit(), op.getResultMap());
    knownName = "result";
  }
  for (StringRef name : components) {
    int64_t extent = extentOf(op.getComponent(name), op.getWeightMap());
    if (ShapedType::isDynamic(extent))
      continue;
    if (ShapedType::isStatic(known) && extent != known)
      return op.emitOpError()
             << knownName << " has " << known << " batch entries, " << name
             << " has " << extent;
    known = extent;
    knownName = name;
  }
  return success();
}

LogicalResult nm_sparse::verifyPlaceNames(MatmulOp op,
                                          ArrayRef<StringRef> legal) {
  for (const WeightPlace &place : op.getWeight().places) {
    if (llvm::is_contained(legal, place.name))
      continue;
    InFlightDiagnostic error = op.emitOpError("has a place '")
                               << place.name << "', legal for " << op.getForm();
    if (legal.empty())
      return error << " is none";
    error << (legal.size() == 1 ? " is " : " are ");
    llvm::interleaveComma(legal, error);
    return error;
  }
  return success();
}

int64_t nm_sparse::getNumOutputs(MatmulOp op) {
  unsigned dim = *op.getResultMap().getResultPosition(
      getAffineDimExpr(op.getOutputLoop(), op.getContext()));
  return cast<ShapedType>(op.getInit().getType()).getDimSize(dim);
}

LogicalResult nm_sparse::verifyOutputs(MatmulOp op, int64_t columns) {
  int64_t outputs = getNumOutputs(op);
  if (ShapedType::isStatic(outputs) && ShapedType::isStatic(columns) &&
      outputs > columns)
    return op.emitOpError("result has ")
           << outputs << " outputs, values holds " << columns;
  return success();
}

/// Checks the rows of the index against those of x.
static LogicalResult verifyRows(MatmulOp op) {
  EncodingAttr encoding = op.getEncoding();
  auto type = cast<RankedTensorType>(op.getIndex().getType());
  int64_t rows = type.getDimSize(type.getRank() - 2);
  if (ShapedType::isDynamic(rows))
    return success();
  if (rows % encoding.getN() != 0)
    return op.emitOpError("index has ") << rows << " rows, not a multiple of "
                                        << encoding.getN() << " per window";
  int64_t windows = rows / encoding.getN(), k = op.getContractionSize();
  auto needed =
      static_cast<int64_t>(llvm::divideCeil(k, encoding.getWindowRows()));
  if (!ShapedType::isDynamic(k) && needed != windows)
    return op.emitOpError("contraction size ")
           << k << " has " << needed << " windows, the index holds " << windows;
  return success();
}

/// Checks that the index has the panels that the stored columns lie in, and no
/// others: one more where a tile starts inside a panel.
static LogicalResult verifyPanels(MatmulOp op, int64_t columns) {
  int64_t panels = cast<ShapedType>(op.getIndex().getType()).getShape().back();
  if (ShapedType::isDynamic(panels) || ShapedType::isDynamic(columns))
    return success();
  int64_t width = op.getEncoding().getBlockN();
  int64_t least = llvm::divideCeil(columns, width);
  int64_t most = op.getPlace(kPanelOffsetPlace)
                     ? llvm::divideCeil(columns - 1, width) + 1
                     : least;
  if (panels >= least && panels <= most)
    return success();
  InFlightDiagnostic diagnostic = op.emitOpError("values has ")
                                  << columns << " columns, which lie in "
                                  << least;
  if (most != least)
    diagnostic << " or " << most;
  return diagnostic << (most == 1 ? " panel" : " panels") << " of " << width
                    << " outputs, the index has " << panels;
}

LogicalResult nm_sparse::verifyPositions(MatmulOp op, int64_t columns) {
  auto index = cast<RankedTensorType>(op.getIndex().getType());
  unsigned width = op.getEncoding().getIndexBitWidth();
  if (!index.getElementType().isSignlessInteger(width))
    return op.emitOpError("index must have element type i")
           << width << " for windows of " << op.getEncoding().getM() << ", got "
           << index.getElementType();
  int64_t rank = op.getWeightMap().getNumResults();
  if (index.getRank() != rank)
    return op.emitOpError("index must have rank ") << rank << ", got " << index;
  return failure(failed(verifyNotEmpty(op, op.getIndex(), op.getWeightMap())) ||
                 failed(verifyRows(op)) || failed(verifyPanels(op, columns)));
}
