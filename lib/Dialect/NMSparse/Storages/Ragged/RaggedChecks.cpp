//===- RaggedChecks.cpp - products of weights stored as ragged panels -----===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Dialect/NMSparse/IR/WeightChecks.h"
#include "Dialect/NMSparse/Storages/StorageAttrs.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::nm_sparse;

SmallVector<StringRef> RaggedAttr::getComponentNames() const {
  return {kValuesComponent, kIndexComponent, kPanelsComponent};
}

/// How many rows a panel has, only `panels` says.
std::optional<WindowCount> RaggedAttr::getWindowCount(Type) const {
  return std::nullopt;
}

/// Checks where the rows of each panel lie.
static LogicalResult verifyPanelWords(MatmulOp op) {
  auto panels =
      cast<RankedTensorType>(op.getComponent(kPanelsComponent).getType());
  int64_t rank = op.getWeightMap().getNumResults();
  if (panels.getRank() != rank || panels.getShape().back() != kPanelWords ||
      !panels.getElementType().isSignlessInteger(32))
    return op.emitOpError("panels must have rank ")
           << rank << ", " << int64_t(kPanelWords)
           << " words of i32 for each panel, got " << panels;
  int64_t outputs = getNumOutputs(op), count = panels.getDimSize(rank - 2);
  auto needed =
      int64_t(llvm::divideCeil(outputs, op.getEncoding().getBlockN()));
  if (ShapedType::isStatic(outputs) && ShapedType::isStatic(count) &&
      count != needed)
    return op.emitOpError("result has ")
           << outputs << " outputs, which lie in " << needed
           << " panels, panels has " << count;
  return verifyBatch(op, {kPanelsComponent});
}

LogicalResult RaggedAttr::verifyMatmul(Operation *operation) const {
  auto op = cast<MatmulOp>(operation);
  bool isStep = op.getPlace(kFirstRowPlace) != nullptr;
  if (failed(verifyPlaceNames(op, {kFirstRowPlace})))
    return failure();
  int64_t bn = getEncoding().getBlockN();
  auto values = cast<RankedTensorType>(op.getValues().getType());
  auto index = cast<RankedTensorType>(op.getIndex().getType());
  if (values.getRank() != 2 ||
      (!values.isDynamicDim(1) && values.getDimSize(1) > bn))
    return op.emitOpError("values must have rank 2 and the ")
           << bn << " outputs of a panel, got " << values;
  if (index.getRank() != 2 || index.getDimSize(1) != 1 ||
      !index.getElementType().isSignlessInteger(32))
    return op.emitOpError("index must have rank 2, one column and element type "
                          "i32, got ")
           << index;
  int64_t rows = values.getDimSize(0), blocks = index.getDimSize(0);
  if (ShapedType::isStatic(rows) && ShapedType::isStatic(blocks) &&
      rows != blocks * getBlockRows())
    return op.emitOpError("values has ")
           << rows << " rows, the index names " << blocks * getBlockRows();
  return isStep ? success() : verifyPanelWords(op);
}
