//===- ByteExpansion.cpp - fragments of bytes of bitmaps ------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The values of four rows lie in one word, or in two: a funnel shift brings the
// first of them to the low end of a register. The four bits of the rows say
// which byte each one has, by a table.
//
// Lanes load values that rows do not have all the same, from where others lie,
// and do not take them. Where nothing lies, behind the last tile, the number of
// the value is bounded.
//
//===----------------------------------------------------------------------===//

#include "ByteExpansion.h"
#include "KeptBounds.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;
using namespace mlir::nm_sparse;

static constexpr int64_t kWordValues = 4, kByteBits = 8, kNibbleBits = 4;

ByteExpansion::ByteExpansion(OpBuilder &b, TileMatmulOp op, Value lane,
                             Value output, Value share, int64_t shares)
    : StagedBitmaps(b, op, lane, output, share, shares),
      table(b, loc, lane, registerRows) {}

/// The data of which four rows of the lane are made in the group of 16 that
/// begins with `row`.
ByteExpansion::LoadedRows &ByteExpansion::getLoaded(int64_t row, Side side) {
  LoadedRows &rows = loaded[{row, side.getNumber()}];
  if (rows.selector)
    return rows;
  int64_t tileNumber = row / tile.rows;
  row %= tile.rows;
  KeptBounds bounds = KeptBounds::get(encoding, row, registerRows);
  std::optional<int64_t> piece = bounds.getPiece(getPieceValues());
  Value number = countBefore(tileNumber, row, side);
  Value first = arith::AndIOp::create(b, loc, number, word(-kWordValues));
  int64_t lastWord = tile.values - kWordValues;
  bool mayPass = bounds.mostBefore / kWordValues * kWordValues >= lastWord;
  auto atMost = [&](Value value, int64_t most) -> Value {
    return arith::MinUIOp::create(b, loc, value, word(most));
  };
  Type type = b.getI32Type();
  if (piece) {
    // Behind the values of an output are those of the next one.
    bool isEnd = mayPass && isLast(tileNumber);
    rows.low =
        loadFrom(tileNumber, side, isEnd ? atMost(first, lastWord) : first,
                 piece, 0, type);
    rows.high = loadFrom(tileNumber, side,
                         isEnd ? atMost(first, lastWord - kWordValues) : first,
                         piece, kWordValues, type);
  } else {
    Value next = arith::AddIOp::create(b, loc, first, word(kWordValues));
    rows.low =
        loadFrom(tileNumber, side, mayPass ? atMost(first, lastWord) : first,
                 piece, 0, type);
    rows.high =
        loadFrom(tileNumber, side, mayPass ? atMost(next, lastWord) : next,
                 piece, 0, type);
  }
  // A shift counts the low five bits.
  rows.bits = arith::MulIOp::create(b, loc, number, word(kByteBits));
  Value behind = arith::SubIOp::create(
      b, loc, word(kWordBits - kNibbleBits - row % kWordBits), firstOfGroup);
  Value nibble = arith::ShRUIOp::create(
      b, loc, getBits(tileNumber, row / kWordBits, side), behind);
  Value answer = table.look(b, loc, nibble, /*isBack=*/false);
  rows.selector = table.getSelector(b, loc, answer, /*isUpper=*/true,
                                    /*isBack=*/false);
  return rows;
}

void ByteExpansion::load(int64_t row, int64_t output) {
  for (int64_t further : {int64_t(0), getGroupRows()})
    for (bool isUpper : {false, true})
      getLoaded(row + further, {output, isUpper});
}

SmallVector<Value> ByteExpansion::getFragment(int64_t row, int64_t output) {
  SmallVector<Value> fragment;
  for (int64_t further : {int64_t(0), getGroupRows()})
    for (bool isUpper : {false, true}) {
      LoadedRows &rows = getLoaded(row + further, {output, isUpper});
      Value values = LLVM::FshrOp::create(b, loc, b.getI32Type(), rows.high,
                                          rows.low, rows.bits);
      fragment.push_back(permute(values, word(0), rows.selector));
    }
  return fragment;
}
