//===- TileDescriptor.cpp - tiles as products of warpgroups read them -----===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TileDescriptor.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "nm_sparse/Dialect/NMTile/Utils/IndexMath.h"
#include <numeric>

using namespace mlir;
using namespace mlir::nm_sparse;

/// Words of 16 bytes in a line of a tile, and elements in a word.
static constexpr int64_t kLineWords = 8;

TileDescriptor::TileDescriptor(OpBuilder &b, Location loc, Value tile,
                               bool alongRows)
    : b(b), loc(loc), alongRows(alongRows),
      rows(cast<MemRefType>(tile.getType()).getDimSize(0)),
      lineElements(getLineElements(getElementTypeOrSelf(tile))), tile(tile) {}

Value TileDescriptor::constant64(uint64_t v) {
  return arith::ConstantOp::create(
      b, loc, b.getI64IntegerAttr(static_cast<int64_t>(v)));
}

/// The field of a descriptor that says where `element` of `tile` lies;
/// addresses and distances count 16 bytes.
static Value getStart(OpBuilder &b, Location loc, Value tile, Value element) {
  IndexMath math(b, loc);
  auto metadata = memref::ExtractStridedMetadataOp::create(b, loc, tile);
  Value pointer = memref::ExtractAlignedPointerAsIndexOp::create(b, loc, tile);
  int64_t bytes = cast<MemRefType>(tile.getType()).getElementTypeBitWidth() / 8;
  Value address = math.add(
      pointer, math.mul(math.add(metadata.getOffset(), element), bytes));
  Type type = b.getI64Type();
  auto constant = [&](int64_t value) {
    return arith::ConstantIntOp::create(b, loc, type, value);
  };
  address = arith::IndexCastUIOp::create(b, loc, type, address);
  Value start = arith::ShRUIOp::create(b, loc, address, constant(4));
  return arith::AndIOp::create(b, loc, start, constant(0x3fff));
}

void TileDescriptor::startAt(Value first) {
  int64_t elementsApart = alongRows ? lineElements : rows;
  Value start =
      getStart(b, loc, tile, IndexMath(b, loc).mul(first, elementsApart));
  // Blocks of columns are `rows` lines apart, groups of 8 rows are 8 lines
  // apart.
  uint64_t leading = rows * kLineWords, stride = 8 * kLineWords;
  constexpr uint64_t swizzle128 = 1;
  base = arith::OrIOp::create(
      b, loc, start,
      constant64(leading << 16 | stride << 32 | swizzle128 << 62));
}

Value TileDescriptor::at(Value offset, int64_t k, int64_t other) {
  Value result = base;
  if (offset) {
    offset = arith::IndexCastUIOp::create(b, loc, b.getI64Type(), offset);
    int64_t wordsApart = kLineWords;
    if (alongRows) {
      // Offsets are whole lines: few rows of many elements are less than a
      // word apart.
      int64_t unit = lineElements / std::gcd(lineElements, rows * kLineWords);
      wordsApart = rows * kLineWords * unit / lineElements;
      if (unit > 1)
        offset = arith::DivUIOp::create(b, loc, offset, constant64(unit));
    }
    result = b.createOrFold<arith::AddIOp>(
        loc, result,
        b.createOrFold<arith::MulIOp>(loc, offset, constant64(wordsApart)));
  }
  int64_t words =
      getLines(alongRows ? other : k, alongRows ? k : other) * kLineWords +
      (alongRows ? k % lineElements * kLineWords / lineElements : 0);
  return b.createOrFold<arith::AddIOp>(loc, result, constant64(words));
}

CoreMatrices::CoreMatrices(OpBuilder &b, Location loc, Value values)
    : b(b), loc(loc), tile(values) {
  auto type = cast<MemRefType>(values.getType());
  int64_t bytes = type.getElementTypeBitWidth() / 8;
  pieces = type.getDimSize(2) * bytes /
           (BitmapTile::kOutputs * BitmapTile::kPieceBytes);
  outputs = type.getDimSize(0) * BitmapTile::kOutputs;
}

void CoreMatrices::startAt(Value first) {
  int64_t bytes = cast<MemRefType>(tile.getType()).getElementTypeBitWidth() / 8;
  Value start =
      getStart(b, loc, tile,
               IndexMath(b, loc).mul(first, BitmapTile::kPieceBytes / bytes));
  // Outputs lie one after the other, 8 of them in a matrix, and behind them all
  // those of the next piece.
  constexpr uint64_t matrixWords = 8;
  base = arith::OrIOp::create(
      b, loc, start,
      arith::ConstantIntOp::create(
          b, loc, b.getI64Type(),
          static_cast<int64_t>(uint64_t(outputs) << 16 | matrixWords << 32)));
}

Value CoreMatrices::at(int64_t number, int64_t output) {
  return b.createOrFold<arith::AddIOp>(
      loc, base,
      arith::ConstantIntOp::create(b, loc, b.getI64Type(),
                                   number * pieces * outputs + output));
}
