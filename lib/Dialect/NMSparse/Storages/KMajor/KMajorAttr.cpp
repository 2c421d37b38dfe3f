//===- KMajorAttr.cpp - values along the contraction ----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Dialect/NMSparse/IR/WeightChecks.h"
#include "Dialect/NMSparse/Storages/StorageAttrs.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::nm_sparse;

bool KMajorAttr::isLegalFor(EncodingAttr encoding) {
  return !encoding.isFree() && !encoding.hasInnerLevel() &&
         encoding.getOrder() == OutputOrder::Identity;
}

LogicalResult KMajorAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                 EncodingAttr encoding) {
  if (isLegalFor(encoding))
    return success();
  return emitError() << "values along the contraction are those of one level "
                        "n:m with order = identity, got "
                     << encoding;
}

/// The verifier refuses all others.
LogicalResult
KMajorAttr::verifyPackable(function_ref<InFlightDiagnostic()>) const {
  return success();
}

Attribute KMajorAttr::getPattern() const { return getEncoding(); }

int64_t KMajorAttr::getLayoutVersion() const { return 12; }

StringRef KMajorAttr::getFormName() const { return getMnemonic(); }

Attribute KMajorAttr::withPattern(Attribute pattern) const {
  return get(getContext(), cast<EncodingAttr>(pattern));
}

bool KMajorAttr::isKMajor() const { return true; }

SmallVector<StringRef> KMajorAttr::getComponentNames() const {
  return {kValuesComponent, kIndexComponent};
}

SmallVector<WeightComponent>
KMajorAttr::getComponents(RankedTensorType weight) const {
  SmallVector<WeightComponent> components = getEncoding().getComponents(weight);
  RankedTensorType &values = components.front().type;
  SmallVector<int64_t> extents(values.getShape());
  std::swap(extents.end()[-1], extents.end()[-2]);
  extents.back() = llvm::alignTo(extents.back(), kRowUnit);
  values = values.clone(extents);
  return components;
}

/// Checks the rows of the values against those that the positions name: all,
/// which are filled up, or the rows of a tile.
static LogicalResult verifyRows(MatmulOp op) {
  auto values = cast<RankedTensorType>(op.getValues().getType());
  int64_t windows = op.getNumWindows(), rows = values.getShape().back();
  if (ShapedType::isDynamic(windows) || ShapedType::isDynamic(rows))
    return success();
  int64_t named = windows * op.getEncoding().getKeptRows();
  int64_t padded = llvm::alignTo(named, KMajorAttr::kRowUnit);
  bool isPart = op.getPlace(kFirstRowPlace) != nullptr;
  if (isPart ? rows <= padded : rows == named || rows == padded)
    return success();
  return op.emitOpError("values has ")
         << rows << " rows along the contraction, index names "
         << (isPart ? "no more than " : "") << named
         << ", which are filled up to " << padded;
}

LogicalResult KMajorAttr::verifyMatmul(Operation *operation) const {
  auto op = cast<MatmulOp>(operation);
  auto values = cast<RankedTensorType>(op.getValues().getType());
  int64_t rank = op.getWeightMap().getNumResults();
  if (values.getRank() != rank)
    return op.emitOpError("values must have rank ")
           << rank << ", got " << values;
  if (llvm::is_contained(values.getShape(), 0))
    return op.emitOpError("values must have at least one row and output, got ")
           << values;
  int64_t columns = values.getShape().end()[-2];
  return failure(
      failed(verifyPlaceNames(op, {kPanelOffsetPlace, kFirstRowPlace})) ||
      failed(verifyPositions(op, columns)) || failed(verifyRows(op)) ||
      failed(verifyOutputs(op, columns)) ||
      failed(verifyBatch(op, getComponentNames())));
}
