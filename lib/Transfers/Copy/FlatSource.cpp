//===- FlatSource.cpp - the source of a copy as one row -------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FlatSource.h"
#include "nm_sparse/Dialect/NMTile/Utils/IndexMath.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace mlir::nm_sparse;

FlatSource::FlatSource(OpBuilder &b, Location loc, Value src)
    : type(cast<MemRefType>(src.getType())), src(src) {
  IndexMath math{b, loc};
  auto metadata = memref::ExtractStridedMetadataOp::create(b, loc, src);
  pitch = metadata.getStrides()[type.getRank() - 2];
  if (!type.isLastDimUnitStride())
    spacing = metadata.getStrides()[type.getRank() - 1];
  auto flatType = MemRefType::get(
      {ShapedType::kDynamic}, type.getElementType(),
      StridedLayoutAttr::get(b.getContext(), ShapedType::kDynamic, {1}),
      type.getMemorySpace());
  Value size = math.mul(metadata.getSizes()[0], metadata.getStrides()[0]);
  if (spacing)
    size = math.add(size,
                    math.mul(metadata.getSizes()[type.getRank() - 1], spacing));
  flat = memref::ReinterpretCastOp::create(
      b, loc, flatType, metadata.getBaseBuffer(),
      OpFoldResult(metadata.getOffset()), ArrayRef<OpFoldResult>{size},
      ArrayRef<OpFoldResult>{b.getIndexAttr(1)});
}

int64_t FlatSource::getStaticPitch() const {
  auto [strides, offset] = type.getStridesAndOffset();
  return strides[type.getRank() - 2];
}

bool FlatSource::mayBeContiguous() const {
  auto [strides, offset] = type.getStridesAndOffset();
  return strides.back() == 1 || ShapedType::isDynamic(strides.back());
}

Value FlatSource::isAligned(OpBuilder &b, Location loc, int64_t width) const {
  IndexMath math{b, loc};
  int64_t bytes = type.getElementTypeBitWidth() / 8;
  auto metadata = memref::ExtractStridedMetadataOp::create(b, loc, src);
  Value base = memref::ExtractAlignedPointerAsIndexOp::create(b, loc, src);
  Value address = math.add(base, math.mul(metadata.getOffset(), bytes));
  Value rows = math.mul(pitch, bytes);
  // Those of an image may be strided in each dimension.
  if (type.getRank() == 4)
    for (Value stride : metadata.getStrides().take_front(2))
      rows = arith::OrIOp::create(b, loc, rows, math.mul(stride, bytes));
  Value misaligned =
      math.rem(arith::OrIOp::create(b, loc, address, rows), width * bytes);
  Value aligned = math.isEqual(misaligned, 0);
  Value span = math.mul(metadata.getSizes()[0], metadata.getStrides()[0]);
  Value fits = math.isLess(span, math.constant(int64_t(1) << 31));
  Value result = math.both(aligned, fits);
  return spacing ? math.both(result, math.isEqual(spacing, 1)) : result;
}

Value FlatSource::getPlace(OpBuilder &b, Location loc, Value row, Value column,
                           bool isFast) const {
  IndexMath math{b, loc};
  if (isFast)
    return math.widen(math.add(math.mul(math.narrow(row), math.narrow(pitch)),
                               math.narrow(column)));
  if (spacing)
    column = math.mul(column, spacing);
  return math.add(math.mul(row, pitch), column);
}
