//===- UnpackBits.cpp - dense weights of bitmaps --------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The values of an output lie one after the other, so a row that is kept has
// the value whose number is the count of bits before its own. Inside of a word
// that is a count of bits; how many the words before have is computed first.
//
//===----------------------------------------------------------------------===//

#include "NamedLoops.h"
#include "UnpackStructured.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::nm_sparse;

/// The number of bits of `word` that are set. It is written out, so that hosts
/// need no dialect but arith; LLVM finds the instruction for it.
static Value countBits(ImplicitLocOpBuilder &b, Value word) {
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantOp::create(
        b, b.getI32IntegerAttr(static_cast<int32_t>(value)));
  };
  auto shift = [&](Value value, int64_t by) -> Value {
    return arith::ShRUIOp::create(b, value, constant(by));
  };
  auto mask = [&](Value value, int64_t by) -> Value {
    return arith::AndIOp::create(b, value, constant(by));
  };
  Value pairs =
      arith::SubIOp::create(b, word, mask(shift(word, 1), 0x55555555));
  Value upper = mask(shift(pairs, 2), 0x33333333);
  Value fours = arith::AddIOp::create(b, mask(pairs, 0x33333333), upper);
  Value bytes =
      mask(arith::AddIOp::create(b, fours, shift(fours, 4)), 0x0f0f0f0f);
  return shift(arith::MulIOp::create(b, bytes, constant(0x01010101)), 24);
}

/// How many bits are set in all words of an output before each of `words`,
/// which has the dimensions `letters`, the loop over words among them.
static Value countBefore(NamedLoops &loops, Value words, StringRef letters) {
  Type word = getElementTypeOrSelf(words);
  Value counts = loops.build(
      letters, {{words, letters}}, letters, word,
      [](ImplicitLocOpBuilder &b, ValueRange elements,
         function_ref<Value(char)>) { return countBits(b, elements[0]); });
  loops.set('v', loops.get('l'));
  std::string others = letters.str();
  std::replace(others.begin(), others.end(), 'l', 'v');
  return loops.build(
      letters.str() + "v", {{counts, others}}, letters, word,
      [](ImplicitLocOpBuilder &b, ValueRange elements,
         function_ref<Value(char)> at) -> Value {
        Value other = at('v');
        Value isBefore =
            arith::CmpIOp::create(b, arith::CmpIPredicate::ult, other, at('l'));
        Value sum = arith::AddIOp::create(b, elements[1], elements[0]);
        return arith::SelectOp::create(b, isBefore, sum, elements[1]);
      });
}

/// The bits and the first piece of each block of free elements, whose words
/// follow one another: those of all tiles, then the header.
static std::pair<Value, Value> splitFreeBits(OpBuilder &b, Location loc,
                                             Value bits) {
  auto type = cast<RankedTensorType>(bits.getType());
  int64_t rank = type.getRank(), tiles = type.getDimSize(rank - 2);
  NamedLoops loops(b, loc);
  if (rank == 4)
    loops.set('b', type.getDimSize(0));
  loops.set('n', type.getDimSize(rank - 3));
  loops.set('t', tiles);
  loops.set('c', type.getDimSize(rank - 1));
  Value words = loops.join(bits, {"b", "n", "tc"});
  SmallVector<int64_t> shape(
      cast<RankedTensorType>(words.getType()).getShape());
  shape.back() = tiles * BitmapTile::kFreeRows / 32 * BitmapTile::kOutputs;
  SmallVector<OpFoldResult> offsets(shape.size(), b.getIndexAttr(0));
  SmallVector<OpFoldResult> strides(shape.size(), b.getIndexAttr(1));
  offsets.back() = b.getIndexAttr(shape.back());
  SmallVector<int64_t> header(shape);
  header.back() = 1;
  Value first = tensor::ExtractSliceOp::create(
      b, loc,
      RankedTensorType::get(ArrayRef(header).drop_back(), b.getI32Type()),
      words, offsets, getAsIndexOpFoldResult(b.getContext(), header), strides);
  return {takeLeading(b, loc, words, shape), first};
}

/// Where value number `rank` of output `output` of a block lies: the outputs
/// take turns, each with a piece of so many values. The block begins with piece
/// `first`, if given.
static Value buildPlace(ImplicitLocOpBuilder &b, Value rank, Value first,
                        Value output, int64_t pieceValues) {
  Value outputs = arith::ConstantIndexOp::create(b, BitmapTile::kOutputs);
  Value values = arith::ConstantIndexOp::create(b, pieceValues);
  Value piece = arith::DivUIOp::create(b, rank, values);
  if (first)
    piece = arith::AddIOp::create(b, piece, first);
  Value turn = arith::MulIOp::create(b, piece, outputs);
  turn = arith::AddIOp::create(b, turn, output);
  Value begin = arith::MulIOp::create(b, turn, values);
  Value rest = arith::RemUIOp::create(b, rank, values);
  return arith::AddIOp::create(b, begin, rest);
}

Value nm_sparse::unpackBits(OpBuilder &b, Location loc, const BitmapTile &tile,
                            Value values, Value bits) {
  auto type = cast<RankedTensorType>(bits.getType());
  Type element = getElementTypeOrSelf(values);
  int64_t rank = type.getRank(), tiles = type.getDimSize(rank - 2);
  NamedLoops loops(b, loc);
  if (rank == 4)
    loops.set('b', type.getDimSize(0));
  loops.set('n', type.getDimSize(rank - 3));
  loops.set('o', BitmapTile::kOutputs);
  loops.set('r', 32);
  // The values of a tile, or all of a free output, are numbered.
  if (!tile.isFree)
    loops.set('t', tiles);
  int64_t wordCount = tile.isFree ? tiles * tile.words : tile.words;
  if (wordCount > 1)
    loops.set('l', wordCount);
  StringRef letters = tile.isFree ? "bnlo" : "bntol";
  SmallVector<NamedLoops::Read> reads;
  Value first, nowhere;
  if (tile.isFree) {
    std::tie(bits, first) = splitFreeBits(b, loc, bits);
    reads.push_back({loops.split(bits, {"b", "n", "lo"}), letters});
    reads.push_back({first, "bn"});
    // A weight that keeps nothing has no value to read for dropped elements.
    nowhere = tensor::DimOp::create(b, loc, values, 0);
    values = appendZeros(b, loc, values, 1);
  } else {
    reads.push_back({loops.split(bits, {"b", "n", "t", "ol"}), letters});
    nowhere = arith::ConstantIndexOp::create(b, loc, 0);
  }
  if (wordCount > 1)
    reads.push_back({countBefore(loops, reads[0].tensor, letters), letters});
  int64_t piece = BitmapTile::kPieceBytes * 8 / element.getIntOrFloatBitWidth();
  Value dense = loops.build(
      "btlrno", reads, "btlrno", element,
      [&](ImplicitLocOpBuilder &b, ValueRange elements,
          function_ref<Value(char)> at) -> Value {
        auto index = [&](Value word) -> Value {
          return arith::IndexCastUIOp::create(b, b.getIndexType(), word);
        };
        auto word = [&](int64_t value) -> Value {
          return arith::ConstantOp::create(b, b.getI32IntegerAttr(value));
        };
        // The first row is the highest bit.
        Value row = arith::IndexCastUIOp::create(b, b.getI32Type(), at('r'));
        Value upTo = arith::ShRUIOp::create(
            b, elements[0], arith::SubIOp::create(b, word(31), row));
        Value isKept = arith::TruncIOp::create(b, b.getI1Type(), upTo);
        Value rank = countBits(b, arith::ShRUIOp::create(b, upTo, word(1)));
        if (wordCount > 1)
          rank = arith::AddIOp::create(b, rank, elements[tile.isFree ? 2 : 1]);
        rank = index(rank);
        Value firstPiece = tile.isFree ? index(elements[1]) : Value();
        Value place = buildPlace(b, rank, firstPiece, at('o'), piece);
        SmallVector<Value> from;
        if (!tile.isFree) {
          if (type.getRank() == 4)
            from.push_back(at('b'));
          from.append({at('n'), at('t')});
        }
        from.push_back(arith::SelectOp::create(b, isKept, place, nowhere));
        Value zero = arith::ConstantOp::create(b, b.getZeroAttr(element));
        return arith::SelectOp::create(
            b, isKept, tensor::ExtractOp::create(b, values, from), zero);
      });
  if (tile.isFree)
    return loops.join(dense, {"b", "lr", "no"});
  dense = loops.join(dense, {"b", "t", "lr", "no"});
  // The last word of a tile may have more bits than rows.
  SmallVector<int64_t> shape(
      cast<RankedTensorType>(dense.getType()).getShape());
  shape[shape.size() - 2] = tile.rows;
  loops.set('k', tile.rows);
  loops.set('x', shape.back());
  return loops.join(takeLeading(b, loc, dense, shape), {"b", "tk", "x"});
}
