//===- Expansion.cpp - fragments of weights stored as bitmaps -------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The bits before a pair of rows count the values before those of the pair: two
// loads of 16 bits get its first value and the next one. The two bits of the
// pair say which bytes of these it has, and a permutation takes them. The
// selectors of four pairs are made at once.
//
// Most of the count is known: a window that begins before the pair has n values
// for each m rows. What a pair does not have is loaded all the same, from where
// others lie, and not taken. Where nothing lies, behind the last tile, the
// number of the value is bounded.
//
//===----------------------------------------------------------------------===//

#include "Expansion.h"
#include "../SharedLoads.h"
#include "KeptBounds.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "nm_sparse/Dialect/NMTile/IR/TileLayout.h"

using namespace mlir;
using namespace mlir::nm_sparse;

static constexpr int64_t kWordBits = 32, kValueBytes = 2, kBitsBytes = 4;

Expansion::Expansion(OpBuilder &b, TileMatmulOp op, Value lane, Value output,
                     Value share, int64_t shares)
    : b(b), loc(op.getLoc()), math(b, loc), encoding(op.getEncoding()),
      tile(*op.getStoredTile()), bitsTile(op.getIndex()) {
  auto valuesType = cast<MemRefType>(op.getRhs().getType());
  blocks = valuesType.getDimSize(0);
  tiles = valuesType.getDimSize(1);
  ownTiles = tiles / shares;
  pieceElements = getColumnBlock(valuesType);
  bitsBlock = getColumnBlock(cast<MemRefType>(bitsTile.getType()));
  twoT = math.narrow(math.mul(math.rem(lane, 4), 2));
  Value block = math.div(output, BitmapTile::kOutputs);
  inBlock = math.rem(output, BitmapTile::kOutputs);
  constexpr int64_t pieceValues = BitmapTile::kPieceBytes / kValueBytes;
  firstTile = math.mul(block, tiles);
  if (share)
    firstTile = math.add(firstTile, math.mul(share, ownTiles));
  values = getPointer(b, loc, op.getRhs(),
                      math.add(math.mul(firstTile, pieceElements),
                               math.mul(inBlock, pieceValues)));
  if (bitsBlock == tile.words * BitmapTile::kOutputs)
    bits = getPointer(b, loc, bitsTile,
                      math.add(math.mul(firstTile, bitsBlock),
                               math.mul(inBlock, tile.words)));
}

Value Expansion::permute(Value low, Value high, Value selector) {
  return NVVM::PermuteOp::create(b, loc, b.getI32Type(), low, high, selector,
                                 NVVM::PermuteMode::DEFAULT);
}

/// Word `number` of the bits of tile `tileNumber`.
Value Expansion::getBits(int64_t tileNumber, int64_t number, Side side) {
  Value &known =
      words[{side.output * 2 + side.isUpper, tileNumber * tile.words + number}];
  if (known)
    return known;
  int64_t blocksFurther = side.output / BitmapTile::kOutputs;
  int64_t further = side.isUpper ? 8 : 0;
  if (bits) {
    int64_t words = (blocksFurther * tiles + tileNumber) * bitsBlock +
                    further * tile.words + number;
    return known = loadAt(b, loc, bits, words * kBitsBytes, b.getI32Type());
  }
  // The words of a block of outputs are several blocks of columns.
  Value column =
      math.add(math.mul(math.add(inBlock, further), tile.words), number);
  Value row = math.add(math.mul(math.div(column, bitsBlock), blocks * tiles),
                       math.add(firstTile, blocksFurther * tiles));
  Value element = math.add(math.mul(math.add(row, tileNumber), bitsBlock),
                           math.rem(column, bitsBlock));
  return known = loadAt(b, loc, getPointer(b, loc, bitsTile, element), 0,
                        b.getI32Type());
}

/// The bits of rows `first` to `last + 2 t` of a word, without the last one.
Value Expansion::getMask(int64_t first, int64_t last) {
  Value &known = masks[{first, last}];
  if (known)
    return known;
  constexpr int64_t all = 0xffffffff;
  Value to = word(0);
  if (last < kWordBits)
    to = arith::ShRUIOp::create(
        b, loc, word(all), arith::AddIOp::create(b, loc, twoT, word(last)));
  return known = arith::AndIOp::create(
             b, loc, arith::XOrIOp::create(b, loc, to, word(all)),
             word(all >> first));
}

/// The number of the first value, in its tile, of the pair of the group of rows
/// that begins with `row`.
Value Expansion::countBefore(int64_t tileNumber, int64_t row, Side side) {
  int64_t window = row / encoding.getWindowRows();
  int64_t begin = window * encoding.getWindowRows();
  Value count = word(window * encoding.getKeptRows());
  for (int64_t number = begin / kWordBits; number <= row / kWordBits;
       ++number) {
    int64_t first = std::max<int64_t>(0, begin - number * kWordBits);
    bool isLast = number == row / kWordBits;
    Value mask = getMask(first, isLast ? row % kWordBits : kWordBits);
    Value before =
        arith::AndIOp::create(b, loc, getBits(tileNumber, number, side), mask);
    count = b.createOrFold<arith::AddIOp>(
        loc, count, LLVM::CtPopOp::create(b, loc, before.getType(), before));
  }
  return count;
}

/// The bytes of its first value and of the next that a pair of rows has.
Value Expansion::getSelector(int64_t tileNumber, int64_t row, Side side) {
  int64_t number = row / kWordBits;
  Selectors &known = selectors[{side.output * 2 + side.isUpper,
                                tileNumber * tile.words + number}];
  if (!known.outer) {
    // Turned so that the pairs of the four groups, in the order 0, 3, 2, 1, end
    // the bytes of the word. Each then chooses from the bytes of two constants,
    // of those that the low half of the pair has, and the high half: its first
    // value, the next one, or bytes that are always zero.
    Value bits = getBits(tileNumber, number, side);
    Value turned =
        LLVM::FshlOp::create(b, loc, bits.getType(), bits, bits,
                             arith::AddIOp::create(b, loc, twoT, word(2)));
    Value pairs = arith::AndIOp::create(b, loc, turned, word(0x03030303));
    Value choices = arith::AddIOp::create(
        b, loc, arith::MulIOp::create(b, loc, pairs, word(0x11)),
        word(0x40404040));
    Value low = word(0x10103232), high = word(0x54321032);
    known.outer = permute(low, high, choices);
    known.inner =
        permute(low, high, arith::ShRUIOp::create(b, loc, choices, word(16)));
  }
  int64_t group = row % kWordBits / KeptBounds::kGroupRows;
  Value pair = group == 0 || group == 3 ? known.outer : known.inner;
  if (group == 0 || group == 2)
    return pair;
  return arith::ShRUIOp::create(b, loc, pair, word(16));
}

/// The value of the lane that is `further` behind `number`, in `piece` of its
/// tile, or in one that is known at run time.
Value Expansion::loadValue(int64_t tileNumber, Side side, Value number,
                           std::optional<int64_t> piece, int64_t further) {
  constexpr int64_t pieceValues = BitmapTile::kPieceBytes / kValueBytes;
  int64_t pieceBytes = blocks * tiles * pieceElements * kValueBytes;
  int64_t bytes = (side.output / BitmapTile::kOutputs * tiles + tileNumber) *
                      pieceElements * kValueBytes +
                  (side.isUpper ? 8 * BitmapTile::kPieceBytes : 0) +
                  further * kValueBytes;
  Value distance = arith::MulIOp::create(b, loc, number, word(kValueBytes));
  if (piece) {
    bytes += *piece * (pieceBytes - BitmapTile::kPieceBytes);
  } else {
    Value inPieces = arith::AndIOp::create(b, loc, number, word(-pieceValues));
    int64_t apart = pieceBytes / pieceValues - kValueBytes;
    distance = arith::AddIOp::create(
        b, loc, distance, arith::MulIOp::create(b, loc, inPieces, word(apart)));
  }
  Value pointer = LLVM::GEPOp::create(b, loc, values.getType(), b.getI8Type(),
                                      values, ArrayRef<LLVM::GEPArg>{distance});
  Value value = loadAt(b, loc, pointer, bytes, b.getI16Type());
  return arith::ExtUIOp::create(b, loc, b.getI32Type(), value);
}

/// The data of which the pair of rows of the lane is made in the group of 8
/// that begins with `row`.
Expansion::LoadedPair &Expansion::getLoaded(int64_t row, Side side) {
  LoadedPair &pair = loaded[{row, side.output * 2 + side.isUpper}];
  if (pair.selector)
    return pair;
  constexpr int64_t pieceValues = BitmapTile::kPieceBytes / kValueBytes;
  int64_t tileNumber = row / tile.rows;
  row %= tile.rows;
  KeptBounds bounds = KeptBounds::get(encoding, row);
  std::optional<int64_t> piece = bounds.getPiece(pieceValues);
  Value number = countBefore(tileNumber, row, side);
  auto atMost = [&](Value value, int64_t most) -> Value {
    return arith::MinUIOp::create(b, loc, value, word(most));
  };
  int64_t last = tile.values - 1;
  bool mayPass = bounds.mostBefore + 1 > last;
  if (piece) {
    // Behind the values of an output are those of the next one.
    bool isEnd = tileNumber == ownTiles - 1;
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
  int64_t further = row + KeptBounds::kGroupRows;
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
