//===- BitmapAttr.cpp - weights stored as values and bits -----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Dialect/NMSparse/Storages/StorageAttrs.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::nm_sparse;

BitmapTile BitmapTile::get(EncodingAttr encoding, int64_t elementBytes) {
  if (encoding.isFree())
    return {kFreeRows, kFreeRows, kFreeRows / 32, /*isFree=*/true};
  // Ends: 16 windows fill whole pieces and fragments, and 31 bits are an eighth
  // of 248 rows.
  const SparsityLevel &level = encoding.getInnermost();
  for (int64_t windows = 1;; ++windows) {
    BitmapTile tile{windows * level.getWindowRows(),
                    windows * level.getKeptRows(), 0};
    tile.words = llvm::divideCeil(tile.rows, 32);
    if (tile.values * elementBytes % kPieceBytes == 0 &&
        tile.rows % kFragmentRows == 0 && tile.words * 32 * 8 <= tile.rows * 9)
      return tile;
  }
}

/// Elements are kept one by one, wherever they are.
static bool hasFreeElements(EncodingAttr encoding) {
  return encoding.isFree() && encoding.getBlockK() == 1 &&
         encoding.getBlockN() == 1 &&
         encoding.getOrder() == OutputOrder::Identity;
}

bool BitmapAttr::isDefaultFor(EncodingAttr encoding) {
  return hasFreeElements(encoding);
}

LogicalResult BitmapAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                 EncodingAttr encoding, int64_t density) {
  if (encoding.hasInnerLevel() &&
      encoding.getBlockN() % BitmapTile::kOutputs != 0)
    return emitError() << "a bitmap of two levels needs panels of a multiple "
                          "of "
                       << BitmapTile::kOutputs << " outputs, got " << encoding;
  if (density < 0 || density > 100 ||
      (density != kDefaultDensity && !encoding.isFree()))
    return emitError() << "a bitmap has density = " << density
                       << ", which is a percentage, 0 to 100, of free elements";
  if (encoding.getOrder() != OutputOrder::Identity)
    return emitError() << "a bitmap is of a weight with order = identity, got "
                       << encoding;
  if (hasFreeElements(encoding))
    return success();
  return encoding.verifyPackable(emitError);
}

/// The verifier refuses all others.
LogicalResult
BitmapAttr::verifyPackable(function_ref<InFlightDiagnostic()>) const {
  return success();
}

Attribute BitmapAttr::getPattern() const { return getEncoding(); }

int64_t BitmapAttr::getLayoutVersion() const {
  return getEncoding().isFree() ? 5 : getEncoding().hasInnerLevel() ? 6 : 4;
}

BitmapTile BitmapAttr::getTile(Type element) const {
  return BitmapTile::get(getEncoding(), element.getIntOrFloatBitWidth() / 8);
}

StringRef BitmapAttr::getFormName() const { return getMnemonic(); }

std::optional<BitmapTile> BitmapAttr::getStoredTile(Type element) const {
  return getTile(element);
}

std::optional<double> BitmapAttr::getExpectedDensity() const {
  if (!getEncoding().isFree())
    return std::nullopt;
  return double(getDensity()) / 100;
}

Attribute BitmapAttr::withDensity(int64_t percent) const {
  if (!getEncoding().isFree() || getDensity() != kDefaultDensity)
    return *this;
  return get(getContext(), getEncoding(), percent);
}

Attribute BitmapAttr::withPattern(Attribute pattern) const {
  return get(getContext(), cast<EncodingAttr>(pattern), getDensity());
}

/// The part of `weight` that the outer level of `encoding` keeps, from which
/// the inner one chooses.
static RankedTensorType getInnerWeight(RankedTensorType weight,
                                       EncodingAttr encoding) {
  PackedShape shape = getPackedShape(weight, encoding);
  SmallVector<int64_t> extents = {shape.windows * encoding.getKeptRows(),
                                  shape.panels * encoding.getBlockN()};
  if (weight.getRank() == 3)
    extents.insert(extents.begin(), shape.batch);
  return RankedTensorType::get(extents, weight.getElementType());
}

SmallVector<WeightComponent>
BitmapAttr::getComponents(RankedTensorType weight) const {
  if (EncodingAttr encoding = getEncoding(); encoding.hasInnerLevel()) {
    auto inner =
        get(getContext(), encoding.getInnermostEncoding(weight.getRank()));
    SmallVector<WeightComponent> components =
        inner.getComponents(getInnerWeight(weight, encoding));
    components.back().level = 1;
    // The index stays that of the canonical form.
    components.insert(components.begin() + 1,
                      encoding.getComponents(weight)[1]);
    return components;
  }
  PackedShape shape = getPackedShape(weight, getEncoding());
  Type element = weight.getElementType();
  BitmapTile tile = getTile(element);
  auto getType = [&](int64_t elements, Type type) {
    SmallVector<int64_t> extents = {
        int64_t(llvm::divideCeil(shape.outputs, BitmapTile::kOutputs)),
        int64_t(llvm::divideCeil(shape.k, tile.rows)), elements};
    if (weight.getRank() == 3)
      extents.insert(extents.begin(), shape.batch);
    return RankedTensorType::get(extents, type);
  };
  // How many values a free weight has, only its data says.
  auto values = tile.isFree
                    ? RankedTensorType::get({ShapedType::kDynamic}, element)
                    : getType(tile.values * BitmapTile::kOutputs, element);
  return {{kValuesComponent, ComponentRole::Values, values},
          {kBitsComponent, ComponentRole::Bits,
           getType(tile.getBitsWords(), IntegerType::get(getContext(), 32))}};
}
