//===- PatchSource.cpp - the image that patches are copied from -----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Dialect/NMTile/Utils/PatchSource.h"
#include "nm_sparse/Dialect/NMTile/Utils/IndexMath.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace mlir::nm_sparse;

namespace {
/// Numbers of one width: words, or indices.
class Numbers {
public:
  Numbers(OpBuilder &b, Location loc, bool areWords)
      : math{b, loc}, b(b), loc(loc), areWords(areWords) {}

  Value from(Value index) const {
    return areWords ? math.narrow(index) : index;
  }
  Value constant(int64_t v) const {
    return areWords ? math.word(v) : math.constant(v);
  }
  Value add(Value a, Value c) const { return math.add(a, c); }
  Value mul(Value a, Value c) const { return math.mul(a, c); }
  Value mul(Value a, int64_t c) const { return math.mul(a, constant(c)); }
  Value sub(Value a, int64_t c) const { return math.sub(a, constant(c)); }
  /// Quotient and remainder.
  std::pair<Value, Value> divide(Value a, Value c) const {
    return {b.createOrFold<arith::DivUIOp>(loc, a, c),
            b.createOrFold<arith::RemUIOp>(loc, a, c)};
  }

  IndexMath math;

private:
  OpBuilder &b;
  Location loc;
  bool areWords;
};
} // namespace

PatchSource::PatchSource(OpBuilder &b, Location loc, PatchesAttr patches,
                         Value image, Value firstRow, Value firstToken)
    : patches(patches), firstRow(firstRow), firstToken(firstToken) {
  auto type = cast<MemRefType>(image.getType());
  channels = type.getDimSize(patches.getImageDim('c'));
  height = type.getDimSize(patches.getImageDim('h'));
  width = type.getDimSize(patches.getImageDim('w'));
  batch =
      patches.isBatched()
          ? Value(arith::ConstantIndexOp::create(b, loc, 1))
          : b.createOrFold<memref::DimOp>(loc, image, patches.getImageDim('b'));
  auto metadata = memref::ExtractStridedMetadataOp::create(b, loc, image);
  auto [strides, offset] = type.getStridesAndOffset();
  auto stride = [&, strides = strides](char letter) -> Value {
    int64_t dim = patches.getImageDim(letter);
    if (!ShapedType::isDynamic(strides[dim]))
      return arith::ConstantIndexOp::create(b, loc, strides[dim]);
    return metadata.getStrides()[dim];
  };
  batchStride = stride('b');
  channelStride = stride('c');
  rowStride = stride('h');
  columnStride = stride('w');
}

bool PatchSource::mayHaveRuns(int64_t width) const {
  if (patches.isTokenMajor())
    return patches.getRows().back() == 'c' && channels % width == 0;
  std::optional<int64_t> known = getConstantIntValue(batch);
  return !known || *known % width == 0;
}

Value PatchSource::hasRuns(OpBuilder &b, Location loc, int64_t width) const {
  if (patches.isTokenMajor())
    return Value();
  IndexMath math{b, loc};
  return math.isEqual(math.rem(batch, width), 0);
}

PatchSource::Part PatchSource::findRow(OpBuilder &b, Location loc, Value row,
                                       bool isFast) const {
  Numbers n(b, loc, isFast);
  Value left = n.from(row);
  if (firstRow)
    left = n.add(left, n.from(firstRow));
  SmallVector<int64_t> extents = patches.getRowExtents(channels);
  Value c, r, s;
  for (int64_t i = 2; i >= 0; --i) {
    char letter = patches.getRows()[i];
    Value &digit = letter == 'c' ? c : letter == 'r' ? r : s;
    if (i == 0)
      digit = left;
    else
      std::tie(left, digit) = n.divide(left, n.constant(extents[i]));
  }
  Part part;
  part.y = n.mul(r, patches.getDilations()[0]);
  part.x = n.mul(s, patches.getDilations()[1]);
  part.place = n.add(n.mul(c, n.from(channelStride)),
                     n.add(n.mul(part.y, n.from(rowStride)),
                           n.mul(part.x, n.from(columnStride))));
  return part;
}

PatchSource::Part PatchSource::findToken(OpBuilder &b, Location loc,
                                         Value token, bool isFast) const {
  Numbers n(b, loc, isFast);
  Value number = n.from(token);
  if (firstToken)
    number = n.add(number, n.from(firstToken));
  Value columns = n.constant(patches.getOutputSize(width, /*axis=*/1));
  Value entry, p, q;
  if (patches.isTokenMajor()) {
    std::tie(entry, q) = n.divide(number, columns);
    std::tie(entry, p) =
        n.divide(entry, n.constant(patches.getOutputSize(height, /*axis=*/0)));
  } else {
    std::tie(p, entry) = n.divide(number, n.from(batch));
    std::tie(p, q) = n.divide(p, columns);
  }
  Part part;
  part.y = n.sub(n.mul(p, patches.getStrides()[0]), patches.getLow()[0]);
  part.x = n.sub(n.mul(q, patches.getStrides()[1]), patches.getLow()[1]);
  part.place = n.add(n.mul(entry, n.from(batchStride)),
                     n.add(n.mul(part.y, n.from(rowStride)),
                           n.mul(part.x, n.from(columnStride))));
  return part;
}

PatchSource::Element PatchSource::find(OpBuilder &b, Location loc,
                                       const Part &row, const Part &token,
                                       bool isFast) const {
  Numbers n(b, loc, isFast);
  Value place = n.add(row.place, token.place), exists;
  auto test = [&](unsigned axis, Value a, Value c, int64_t extent) {
    if (patches.getLow()[axis] == 0 && patches.getHigh()[axis] == 0)
      return;
    exists =
        n.math.both(exists, n.math.isLess(n.add(a, c), n.constant(extent)));
  };
  test(0, row.y, token.y, height);
  test(1, row.x, token.x, width);
  // An address far from the image is none to give to a copy, even one of
  // nothing.
  if (exists)
    place = n.math.select(exists, place, n.constant(0));
  return {isFast ? n.math.widen(place) : place, exists};
}

Value PatchSource::getPlace(OpBuilder &b, Location loc,
                            PatchesAttr::Row row) const {
  IndexMath math{b, loc};
  Value place = math.mul(channelStride, row.channel);
  place = math.add(
      place, math.mul(rowStride, row.place[0] * patches.getDilations()[0]));
  return math.add(
      place, math.mul(columnStride, row.place[1] * patches.getDilations()[1]));
}

Value PatchSource::isInside(OpBuilder &b, Location loc, PatchesAttr::Row row,
                            const Part &token, bool isFast) const {
  Numbers n(b, loc, isFast);
  Value inside;
  for (unsigned axis : {0, 1}) {
    int64_t size = axis == 0 ? height : width, place = row.place[axis];
    if (patches.isAlwaysInside(place, size, axis))
      continue;
    Value at = n.add(axis == 0 ? token.y : token.x,
                     n.constant(place * patches.getDilations()[axis]));
    inside = n.math.both(inside, n.math.isLess(at, n.constant(size)));
  }
  return inside;
}
