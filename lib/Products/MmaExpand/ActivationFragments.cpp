//===- ActivationFragments.cpp - columns of mma, from memory --------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Lane 4 g + t of a fragment has token g of its 8, and of all rows those that
// it expands itself. So a lane reads a chunk of neighbouring rows of a token,
// 16 bytes and two fragments of columns, by one access where x is token-major;
// where it is feature-major, the tokens that it has in all fragments, of one
// row.
//
//===----------------------------------------------------------------------===//

#include "ActivationFragments.h"
#include "../ActivationReader.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::nm_sparse;

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
                                         Value lane, const Segment &segment)
    : b(b), loc(op.getLoc()), math(b, loc), x(op.getLhs()),
      group(math.div(lane, Segment::kLanes)),
      fragments(op.getSchedule().getTileTokens() / Segment::kFragmentTokens),
      chunkRows(segment.getChunkRows()), registerRows(segment.registerRows),
      isTokenMajor(op.getLhsOrder() == MajorOrder::K) {}

/// Neighbours that one access reads, at most `most`: wherever a row of x
/// begins, it must do so at a multiple of them, and where they are rows of the
/// product, it has none but whole groups of them.
int64_t ActivationFragments::getWidth(int64_t most) const {
  auto type = cast<MemRefType>(getOperandOfTile(x).getType());
  auto [strides, offset] = type.getStridesAndOffset();
  if (strides.back() != 1)
    return 1;
  SmallVector<int64_t> multiples(strides.begin(), strides.end() - 1);
  multiples.push_back(offset);
  if (isTokenMajor)
    multiples.push_back(type.getShape().back());
  int64_t width = most;
  for (int64_t multiple : multiples) {
    if (ShapedType::isDynamic(multiple))
      return 1;
    while (multiple % width != 0)
      width /= 2;
  }
  return width;
}

/// `width` neighbours of dimension 1.
SmallVector<Value> ActivationFragments::load(Value at, Value first,
                                             int64_t width, Value condition) {
  Type element = cast<MemRefType>(x.getType()).getElementType();
  Type type = element;
  if (width > 1)
    type = VectorType::get({width}, element);
  Value loaded = ReadOnlyLoadOp::create(b, loc, type, /*once=*/false, x,
                                        ValueRange{at, first});
  loaded = zeroUnless(condition, loaded);
  if (width == 1)
    return {loaded};
  SmallVector<Value> all;
  for (int64_t i = 0; i < width; ++i)
    all.push_back(vector::ExtractOp::create(b, loc, loaded, i));
  return all;
}

/// `first`, or that of the last group of `width` that exists, at least in part.
Value ActivationFragments::clamp(Value first, int64_t dim, int64_t width) {
  Value last = math.sub(b.createOrFold<memref::DimOp>(loc, x, dim), 1);
  return math.min(first, math.mul(math.div(last, width), width));
}

/// Emits if x has the row; null if it is known to.
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

/// Returns the elements of a chunk of rows for each fragment of tokens.
SmallVector<SmallVector<Value>>
ActivationFragments::readTokenMajor(Value row, bool isWhole) {
  auto type = cast<MemRefType>(x.getType());
  int64_t tokens = fragments * Segment::kFragmentTokens;
  int64_t width = getWidth(chunkRows);
  SmallVector<SmallVector<Value>> all(fragments);
  for (int64_t fragment = 0; fragment < fragments; ++fragment) {
    Value token = math.add(math.mul(group, fragments), fragment);
    if (type.getDimSize(0) < tokens)
      token = clamp(token, /*dim=*/0, /*width=*/1);
    for (int64_t i = 0; i < chunkRows; i += width) {
      Value first = math.add(row, i);
      Value present = isPresent(first, isWhole);
      Value at = present ? clamp(first, /*dim=*/1, width) : first;
      llvm::append_range(all[fragment], load(token, at, width, present));
    }
  }
  return all;
}

SmallVector<SmallVector<Value>>
ActivationFragments::readFeatureMajor(Value row, bool isWhole) {
  auto type = cast<MemRefType>(x.getType());
  int64_t tokens = fragments * Segment::kFragmentTokens;
  int64_t width = getWidth(fragments);
  SmallVector<SmallVector<Value>> all(fragments);
  for (int64_t i = 0; i < chunkRows; ++i) {
    Value present = isPresent(math.add(row, i), isWhole);
    Value at = math.add(row, i);
    if (present)
      at = clamp(at, /*dim=*/0, /*width=*/1);
    for (int64_t first = 0; first < fragments; first += width) {
      Value token = math.add(math.mul(group, fragments), first);
      if (type.getDimSize(1) < tokens)
        token = clamp(token, /*dim=*/1, width);
      for (auto [e, value] : llvm::enumerate(load(at, token, width, present)))
        all[first + e].push_back(value);
    }
  }
  return all;
}

SmallVector<SmallVector<Value>> ActivationFragments::read(Value row,
                                                          bool isWhole) {
  SmallVector<SmallVector<Value>> rows = isTokenMajor
                                             ? readTokenMajor(row, isWhole)
                                             : readFeatureMajor(row, isWhole);
  Type element = cast<MemRefType>(x.getType()).getElementType();
  auto type = VectorType::get({registerRows}, element);
  auto word = VectorType::get({1}, b.getI32Type());
  SmallVector<SmallVector<Value>> columns;
  for (ArrayRef<Value> own : rows) {
    SmallVector<Value> &registers = columns.emplace_back();
    for (int64_t i = 0; i < chunkRows; i += registerRows) {
      Value reg = vector::FromElementsOp::create(b, loc, type,
                                                 own.slice(i, registerRows));
      if (element.getIntOrFloatBitWidth() == 8)
        reg = vector::ExtractOp::create(
            b, loc, vector::BitCastOp::create(b, loc, word, reg), 0);
      registers.push_back(reg);
    }
  }
  return columns;
}
