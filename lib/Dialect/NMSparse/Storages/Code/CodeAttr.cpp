//===- CodeAttr.cpp - weights that are code -------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Dialect/NMSparse/IR/NMSparseTiling.h"
#include "Dialect/NMSparse/IR/WeightChecks.h"
#include "Dialect/NMSparse/Storages/StorageAttrs.h"

using namespace mlir;
using namespace mlir::nm_sparse;

LogicalResult CodeAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                               EncodingAttr encoding,
                               DenseElementsAttr weight) {
  if (!encoding.isFree() || encoding.getBlockK() != 1 ||
      encoding.getBlockN() != 1 || encoding.getOrder() != OutputOrder::Identity)
    return emitError() << "code is of free elements with order = identity, got "
                       << encoding;
  if (weight.getType().getRank() != 2)
    return emitError() << "the weight of code must have rank 2, got "
                       << weight.getType();
  return success();
}

StringRef CodeAttr::getFormName() const { return getMnemonic(); }

Attribute CodeAttr::getPattern() const { return getEncoding(); }

Attribute CodeAttr::withPattern(Attribute pattern) const {
  return get(getContext(), cast<EncodingAttr>(pattern), getWeight());
}

/// No file holds it.
int64_t CodeAttr::getLayoutVersion() const { return 1; }

LogicalResult
CodeAttr::verifyPackable(function_ref<InFlightDiagnostic()>) const {
  return success();
}

SmallVector<StringRef> CodeAttr::getComponentNames() const { return {}; }

SmallVector<WeightComponent> CodeAttr::getComponents(RankedTensorType) const {
  return {};
}

FailureOr<SmallVector<PackedComponent>>
CodeAttr::pack(RankedTensorType, ArrayRef<char>,
               function_ref<InFlightDiagnostic()>) const {
  return SmallVector<PackedComponent>();
}

DenseElementsAttr CodeAttr::getConstant() const { return getWeight(); }

Attribute CodeAttr::withConstant(DenseElementsAttr weight) const {
  return get(getContext(), getEncoding(), weight);
}

/// Tiles as those of bitmaps of free elements, of which it is made.
std::optional<BitmapTile> CodeAttr::getStoredTile(Type element) const {
  return BitmapTile::get(getEncoding(), element.getIntOrFloatBitWidth() / 8);
}

std::optional<double> CodeAttr::getExpectedDensity() const {
  int64_t kept =
      llvm::count_if(getWeight().getValues<APFloat>(),
                     [](const APFloat &value) { return !value.isPosZero(); });
  return double(kept) / double(std::max<int64_t>(1, getWeight().size()));
}

std::optional<WindowCount> CodeAttr::getWindowCount(Type) const {
  return std::nullopt;
}

LogicalResult CodeAttr::verifyMatmul(Operation *operation) const {
  auto op = cast<MatmulOp>(operation);
  if (failed(verifyPlaceNames(op, {kFirstRowPlace})))
    return failure();
  auto x = cast<ShapedType>(op.getX().getType());
  if (op.hasBatchedWeight() ||
      x.getElementType() != getWeight().getElementType())
    return op.emitOpError("has its weight as code, which is one ")
           << getWeight().getType() << " for all of x, got " << x;
  int64_t k = op.getContractionSize(),
          rows = getWeight().getType().getDimSize(0);
  if (ShapedType::isStatic(k) && k != rows)
    return op.emitOpError("contraction size ")
           << k << ", but its code is of a weight with " << rows << " rows";
  return verifyOutputs(op, getWeight().getType().getDimSize(1));
}

LogicalResult CodeAttr::verifySlice(Operation *operation,
                                    ArrayRef<OpFoldResult> offsets,
                                    ArrayRef<OpFoldResult> sizes, bool) const {
  return verifyWholeContraction(cast<MatmulOp>(operation), offsets, sizes);
}

/// A kernel knows by its CTA which code it has to run.
WeightSlice CodeAttr::slice(OpBuilder &, Operation *, ArrayRef<OpFoldResult>,
                            ArrayRef<OpFoldResult>) const {
  return {};
}
