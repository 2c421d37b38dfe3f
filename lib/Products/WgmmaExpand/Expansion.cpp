//===- Expansion.cpp - fragments of weights stored as bitmaps -------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Two loads of 16 bits get the first value of a pair of rows and the next one.
// The two bits of the pair say which bytes of these it has, and a permutation
// takes them. The selectors of four pairs are made at once.
//
// What a pair does not have is loaded all the same, from where others lie, and
// not taken. Where nothing lies, behind the last tile, the number of the value
// is bounded.
//
//===----------------------------------------------------------------------===//

#include "Expansion.h"
#include "KeptBounds.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;
using namespace mlir::nm_sparse;

/// The bytes of its first value and of the next that a pair of rows has.
Value Expansion::getSelector(int64_t tileNumber, int64_t row, Side side) {
  int64_t number = row / kWordBits;
  Selectors &known =
      selectors[{side.getNumber(), tileNumber * tile.words + number}];
  if (!known.outer) {
    // Turned so that the pairs of the four groups, in the order 0, 3, 2, 1, end
    // the bytes of the word. Each then chooses from the bytes of two constants,
    // of those that the low half of the pair has, and the high half: its first
    // value, the next one, or bytes that are always zero.
    Value bits = getBits(tileNumber, number, side);
    Value turned = LLVM::FshlOp::create(
        b, loc, bits.getType(), bits, bits,
        arith::AddIOp::create(b, loc, firstOfGroup, word(2)));
    Value pairs = arith::AndIOp::create(b, loc, turned, word(0x03030303));
    Value choices = arith::AddIOp::create(
        b, loc, arith::MulIOp::create(b, loc, pairs, word(0x11)),
        word(0x40404040));
    Value low = word(0x10103232), high = word(0x54321032);
    known.outer = permute(low, high, choices);
    known.inner =
        permute(low, high, arith::ShRUIOp::create(b, loc, choices, word(16)));
  }
  int64_t group = row % kWordBits / getGroupRows();
  Value pair = group == 0 || group == 3 ? known.outer : known.inner;
  if (group == 0 || group == 2)
    return pair;
  return arith::ShRUIOp::create(b, loc, pair, word(16));
}

/// The value of the lane that is `further` behind `number`, in `piece` of its
/// tile, or in one that is known at run time.
Value Expansion::loadValue(int64_t tileNumber, Side side, Value number,
                           std::optional<int64_t> piece, int64_t further) {
  Value value =
      loadFrom(tileNumber, side, number, piece, further, b.getI16Type());
  return arith::ExtUIOp::create(b, loc, b.getI32Type(), value);
}

/// The data of which the pair of rows of the lane is made in the group of 8
/// that begins with `row`.
Expansion::LoadedPair &Expansion::getLoaded(int64_t row, Side side) {
  LoadedPair &pair = loaded[{row, side.getNumber()}];
  if (pair.selector)
    return pair;
  int64_t tileNumber = row / tile.rows;
  row %= tile.rows;
  KeptBounds bounds = KeptBounds::get(encoding, row, registerRows);
  std::optional<int64_t> piece = bounds.getPiece(getPieceValues());
  Value number = countBefore(tileNumber, row, side);
  auto atMost = [&](Value value, int64_t most) -> Value {
    return arith::MinUIOp::create(b, loc, value, word(most));
  };
  int64_t last = tile.values - 1;
  bool mayPass = bounds.mostBefore + 1 > last;
  if (piece) {
    // Behind the values of an output are those of the next one.
    bool isEnd = isLast(tileNumber);
    pair.first =
        loadValue(tileNumber, side,
                  mayPass && isEnd ? atMost(number, last) : number, piece, 0);
    pair.second = loadValue(
        tileNumber, side, mayPass && isEnd ? atMost(number, last - 1) : number,
        piece, 1);
  } else {
    Value next = arith::AddIOp::create(b, loc, number, word(1));
    pair.first = loadValue(tileNumber, side,
                           mayPass ? atMost(number, last) : number, piece, 0);
    pair.second = loadValue(tileNumber, side,
                            mayPass ? atMost(next, last) : next, piece, 0);
  }
  pair.selector = getSelector(tileNumber, row, side);
  return pair;
}

/// The pairs of rows of a fragment, in the order of its registers.
std::array<std::pair<int64_t, Expansion::Side>, 4>
Expansion::getPairs(int64_t row, int64_t output) const {
  Side lower{output, /*isUpper=*/false}, upper{output, /*isUpper=*/true};
  int64_t further = row + getGroupRows();
  return {{{row, lower}, {row, upper}, {further, lower}, {further, upper}}};
}

void Expansion::load(int64_t row, int64_t output) {
  for (auto [first, side] : getPairs(row, output))
    getLoaded(first, side);
}

SmallVector<Value> Expansion::getFragment(int64_t row, int64_t output) {
  SmallVector<Value> fragment;
  for (auto [first, side] : getPairs(row, output)) {
    LoadedPair &pair = getLoaded(first, side);
    fragment.push_back(permute(pair.first, pair.second, pair.selector));
  }
  return fragment;
}
