//===- TileDescriptor.cpp - tiles as products of warpgroups read them -----===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TileDescriptor.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace mlir::nm_sparse;

/// Words of 16 bytes in a line of a tile, and elements in a word.
static constexpr int64_t kLineWords = 8, kWordElements = 8;

TileDescriptor::TileDescriptor(OpBuilder &b, Location loc, Value tile,
                               bool alongRows)
    : b(b), loc(loc), alongRows(alongRows),
      rows(cast<MemRefType>(tile.getType()).getDimSize(0)), tile(tile) {}

Value TileDescriptor::constant(int64_t v) {
  return arith::ConstantIndexOp::create(b, loc, v);
}

Value TileDescriptor::constant64(uint64_t v) {
  return arith::ConstantOp::create(
      b, loc, b.getI64IntegerAttr(static_cast<int64_t>(v)));
}

void TileDescriptor::startAt(Value first) {
  auto metadata = memref::ExtractStridedMetadataOp::create(b, loc, tile);
  Value pointer = memref::ExtractAlignedPointerAsIndexOp::create(b, loc, tile);
  int64_t elementsApart = alongRows ? kSwizzledColumns : rows;
  Value elements = b.createOrFold<arith::AddIOp>(
      loc, metadata.getOffset(),
      b.createOrFold<arith::MulIOp>(loc, first, constant(elementsApart)));
  Value address = b.createOrFold<arith::AddIOp>(
      loc, pointer, b.createOrFold<arith::MulIOp>(loc, elements, constant(2)));
  address = arith::IndexCastUIOp::create(b, loc, b.getI64Type(), address);
  // Addresses and distances count 16 bytes. Blocks of columns are `rows`
  // lines apart, groups of 8 rows are 8 lines apart.
  Value start = arith::ShRUIOp::create(b, loc, address, constant64(4));
  start = arith::AndIOp::create(b, loc, start, constant64(0x3fff));
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
    int64_t wordsApart =
        alongRows ? rows * kLineWords / kSwizzledColumns : kLineWords;
    result = b.createOrFold<arith::AddIOp>(
        loc, result,
        b.createOrFold<arith::MulIOp>(loc, offset, constant64(wordsApart)));
  }
  int64_t words =
      getLines(alongRows ? other : k, alongRows ? k : other) * kLineWords +
      (alongRows ? k % kSwizzledColumns / kWordElements : 0);
  return b.createOrFold<arith::AddIOp>(loc, result, constant64(words));
}
