//===- ActivationFragments.cpp - columns of mma, from memory --------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Lane 4 g + t of a fragment has token g of its 8, and of 16 rows those that it
// expands itself. So a lane reads 8 neighbouring rows of a token, two fragments
// of columns, by one access where x is token-major; where it is feature-major,
// the tokens that it has in all fragments, of one row.
//
//===----------------------------------------------------------------------===//

#include "ActivationFragments.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::nm_sparse;

static constexpr int64_t kFragmentTokens = 8;

Value nm_sparse::stackPairs(OpBuilder &b, Location loc, ArrayRef<Value> pairs) {
  auto pair = cast<VectorType>(pairs.front().getType());
  auto type = VectorType::get({static_cast<int64_t>(pairs.size()), 2},
                              pair.getElementType());
  Value fragment = arith::ConstantOp::create(b, loc, type, b.getZeroAttr(type));
  for (auto [i, value] : llvm::enumerate(pairs))
    fragment = vector::InsertOp::create(b, loc, value, fragment,
                                        static_cast<int64_t>(i));
  return fragment;
}

ActivationFragments::ActivationFragments(OpBuilder &b, TileMatmulOp op,
                                         Value lane)
    : b(b), loc(op.getLoc()), math(b, loc), x(op.getLhs()),
      group(math.div(lane, 4)),
      fragments(op.getSchedule().getTileTokens() / kFragmentTokens),
      isTokenMajor(op.getLhsOrder() == MajorOrder::K) {}

/// Elements of a row that one access reads, at most `most`: rows must begin at
/// multiples of them.
int64_t ActivationFragments::getWidth(int64_t most) const {
  auto type = cast<MemRefType>(x.getType());
  auto [strides, offset] = type.getStridesAndOffset();
  int64_t width = most;
  if (ShapedType::isDynamic(strides[0]) || strides[1] != 1)
    return 1;
  while (strides[0] % width != 0)
    width /= 2;
  return width;
}

/// The last of so many neighbours that exist, at most.
Value ActivationFragments::clamp(Value at, int64_t dim, int64_t width) {
  Value extent = b.createOrFold<memref::DimOp>(loc, x, dim);
  return math.min(at, math.sub(extent, width));
}

/// Null where that is known.
Value ActivationFragments::isPresent(Value row, bool isWhole) {
  if (isWhole)
    return Value();
  Value rows = b.createOrFold<memref::DimOp>(loc, x, isTokenMajor ? 1 : 0);
  return math.isLess(row, rows);
}

Value ActivationFragments::zeroUnless(Value condition, Value value) {
  if (!condition)
    return value;
  Type type = value.getType();
  Value zero = arith::ConstantOp::create(b, loc, type, b.getZeroAttr(type));
  return arith::SelectOp::create(b, loc, condition, value, zero);
}

/// Of each fragment of tokens, the elements of 8 rows.
SmallVector<SmallVector<Value>>
ActivationFragments::readTokenMajor(Value row, bool isWhole) {
  auto type = cast<MemRefType>(x.getType());
  int64_t tokens = fragments * kFragmentTokens;
  int64_t width = getWidth(Segment::kChunkRows);
  SmallVector<SmallVector<Value>> all(fragments);
  for (int64_t fragment = 0; fragment < fragments; ++fragment) {
    Value token = math.add(math.mul(group, fragments), fragment);
    if (type.getDimSize(0) < tokens)
      token = clamp(token, /*dim=*/0, /*width=*/1);
    for (int64_t i = 0; i < Segment::kChunkRows; i += width) {
      Value first = math.add(row, i);
      Value present = isPresent(first, isWhole);
      Value at = present ? clamp(first, /*dim=*/1, width) : first;
      Value loaded = ReadOnlyLoadOp::create(
          b, loc, VectorType::get({width}, type.getElementType()),
          /*once=*/false, x, ValueRange{token, at});
      loaded = zeroUnless(present, loaded);
      for (int64_t e = 0; e < width; ++e)
        all[fragment].push_back(vector::ExtractOp::create(b, loc, loaded, e));
    }
  }
  return all;
}

SmallVector<SmallVector<Value>>
ActivationFragments::readFeatureMajor(Value row, bool isWhole) {
  auto type = cast<MemRefType>(x.getType());
  int64_t tokens = fragments * kFragmentTokens;
  int64_t width = getWidth(fragments);
  SmallVector<SmallVector<Value>> all(fragments);
  for (int64_t i = 0; i < Segment::kChunkRows; ++i) {
    Value present = isPresent(math.add(row, i), isWhole);
    Value at = math.add(row, i);
    if (present)
      at = clamp(at, /*dim=*/0, /*width=*/1);
    for (int64_t first = 0; first < fragments; first += width) {
      Value token = math.add(math.mul(group, fragments), first);
      if (type.getDimSize(1) < tokens)
        token = clamp(token, /*dim=*/1, width);
      Value loaded = ReadOnlyLoadOp::create(
          b, loc, VectorType::get({width}, type.getElementType()),
          /*once=*/false, x, ValueRange{at, token});
      loaded = zeroUnless(present, loaded);
      for (int64_t e = 0; e < width; ++e)
        all[first + e].push_back(vector::ExtractOp::create(b, loc, loaded, e));
    }
  }
  return all;
}

SmallVector<std::array<Value, 2>> ActivationFragments::read(Value row,
                                                            bool isWhole) {
  SmallVector<SmallVector<Value>> rows = isTokenMajor
                                             ? readTokenMajor(row, isWhole)
                                             : readFeatureMajor(row, isWhole);
  Type element = cast<MemRefType>(x.getType()).getElementType();
  auto type = VectorType::get({2}, element);
  SmallVector<std::array<Value, 2>> columns;
  for (ArrayRef<Value> own : rows) {
    SmallVector<Value> pairs;
    for (int64_t i = 0; i < Segment::kChunkRows; i += 2)
      pairs.push_back(
          vector::FromElementsOp::create(b, loc, type, own.slice(i, 2)));
    ArrayRef<Value> all(pairs);
    columns.push_back({stackPairs(b, loc, all.take_front(2)),
                       stackPairs(b, loc, all.drop_front(2))});
  }
  return columns;
}
