//===- BitmapAttr.cpp - weights stored as values and bits -----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Dialect/NMSparse/IR/NMSparse.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::nm_sparse;

BitmapTile BitmapTile::get(EncodingAttr encoding, int64_t elementBytes) {
  // Ends: 16 windows fill whole pieces and fragments, and 31 bits are an eighth
  // of 248 rows.
  for (int64_t windows = 1;; ++windows) {
    BitmapTile tile{windows * encoding.getWindowRows(),
                    windows * encoding.getKeptRows(), 0};
    tile.words = llvm::divideCeil(tile.rows, 32);
    if (tile.values * elementBytes % kPieceBytes == 0 &&
        tile.rows % kFragmentRows == 0 && tile.words * 32 * 8 <= tile.rows * 9)
      return tile;
  }
}

LogicalResult BitmapAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                 EncodingAttr encoding) {
  if (encoding.hasInnerLevel())
    return emitError() << "a bitmap has the elements of one level, got "
                       << encoding;
  return encoding.verifyPackable(emitError);
}

LogicalResult
BitmapAttr::verifyPackable(function_ref<InFlightDiagnostic()> emitError) const {
  return getEncoding().verifyPackable(emitError);
}

Attribute BitmapAttr::getPattern() const { return getEncoding(); }

int64_t BitmapAttr::getLayoutVersion() const { return 4; }

BitmapTile BitmapAttr::getTile(Type element) const {
  return BitmapTile::get(getEncoding(), element.getIntOrFloatBitWidth() / 8);
}

SmallVector<WeightComponent>
BitmapAttr::getComponents(RankedTensorType weight) const {
  PackedShape shape = getPackedShape(weight, getEncoding());
  Type element = weight.getElementType();
  BitmapTile tile = getTile(element);
  auto getType = [&](int64_t elements, Type type) {
    SmallVector<int64_t> extents = {
        int64_t(llvm::divideCeil(shape.outputs, BitmapTile::kOutputs)),
        int64_t(llvm::divideCeil(shape.k, tile.rows)),
        elements * BitmapTile::kOutputs};
    if (weight.getRank() == 3)
      extents.insert(extents.begin(), shape.batch);
    return RankedTensorType::get(extents, type);
  };
  return {
      {kValuesComponent, ComponentRole::Values, getType(tile.values, element)},
      {kBitsComponent, ComponentRole::Bits,
       getType(tile.words, IntegerType::get(getContext(), 32))}};
}
