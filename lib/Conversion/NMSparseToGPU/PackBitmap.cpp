//===- PackBitmap.cpp - what is kept as bitmaps ---------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The last step of a kernel that packs a weight into bitmaps (section 7 of
// docs/Encoding.md). Lanes lie along the outputs, so that a warp writes whole
// lines: a word of bits for each output, or a piece of 16 bytes.
//
//===----------------------------------------------------------------------===//

#include "PackKernel.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::nm_sparse;

/// Bits of a word.
static constexpr int64_t kWordBits = 32;

void PackKernel::forEachOutput(
    int64_t count,
    function_ref<void(Value number, Value tileNumber, Value column)> body) {
  int64_t tiles = tiling.rows() / tiling.bitmap->rows;
  int64_t columns = tiling.columns();
  Value tileCount =
      constant(llvm::divideCeil(tiling.shape.k, tiling.bitmap->rows));
  Value columnCount =
      constant(llvm::alignTo(tiling.shape.outputs, BitmapTile::kOutputs));
  Value firstColumn = mul(firstPanel, tiling.level.blockN);
  Value firstTile =
      split(firstWindow, tiling.bitmap->rows / tiling.level.getWindowRows())
          .first;
  forEach(thread, count * tiles * columns, tiling.threads(), [&](Value item) {
    Value rest, column, number, tileNumber;
    std::tie(rest, column) = split(item, columns);
    std::tie(tileNumber, number) = split(rest, count);
    emitIf(both(isLess(add(firstTile, tileNumber), tileCount),
                isLess(add(firstColumn, column), columnCount)),
           [&] { body(number, tileNumber, column); });
  });
}

/// Returns the indices of element `at` of the last dimension.
SmallVector<Value> PackKernel::getBitmapIndices(Value tileNumber, Value column,
                                                Value at) {
  int64_t windows = tiling.bitmap->rows / tiling.level.getWindowRows();
  Value block = split(add(mul(firstPanel, tiling.level.blockN), column),
                      BitmapTile::kOutputs)
                    .first;
  Value atTile = add(split(firstWindow, windows).first, tileNumber);
  SmallVector<Value> indices = {block, atTile, at};
  if (tiling.shape.batch != 0)
    indices.insert(indices.begin(), batch);
  return indices;
}

/// The bits of rows `first` to `last` of a tile that are in `word`. The first
/// row of a word is its highest bit.
static uint32_t getRun(int64_t first, int64_t last, int64_t word) {
  uint32_t bits = 0;
  for (int64_t row = first; row <= last; ++row)
    if (row / kWordBits == word)
      bits |= uint32_t(1) << (kWordBits - 1 - row % kWordBits);
  return bits;
}

void PackKernel::writeBits() {
  const SparsityLevel &level = tiling.level;
  const BitmapTile &bitmap = *tiling.bitmap;
  int64_t windows = bitmap.rows / level.getWindowRows();
  forEachOutput(1, [&](Value, Value tileNumber, Value column) {
    Value panel = split(column, level.blockN).first;
    SmallVector<Value> words(bitmap.words, word(0));
    for (int64_t window = 0; window < windows; ++window) {
      Value kept = load(live, {add(mul(tileNumber, windows), window), panel});
      for (int64_t position = 0; position < level.m; ++position) {
        Value isKept = isNonzero(bitAnd(kept, mask(int64_t(1) << position)));
        int64_t first = (window * level.m + position) * level.blockK;
        int64_t last = first + level.blockK - 1;
        for (int64_t i = first / kWordBits; i <= last / kWordBits; ++i) {
          Value run = word(static_cast<int32_t>(getRun(first, last, i)));
          words[i] = bitOr(words[i], select(isKept, run, word(0)));
        }
      }
    }
    Value output = split(column, BitmapTile::kOutputs).second;
    for (auto [i, bits] : llvm::enumerate(words))
      store(bits, buffers.positions,
            getBitmapIndices(tileNumber, column,
                             add(mul(output, bitmap.words), i)));
  });
}

void PackKernel::copyPieces() {
  int64_t size = tiling.accessElements();
  int64_t values = tiling.bitmap->values;
  auto type = cast<MemRefType>(buffers.values.getType());
  auto pieceType = VectorType::get({size}, type.getElementType());
  auto bitsType =
      VectorType::get({size}, b.getIntegerType(8 * tiling.elementBytes));
  forEachOutput(values / size, [&](Value piece, Value tileNumber,
                                   Value column) {
    Value panel = split(column, tiling.level.blockN).first;
    Value first = add(mul(tileNumber, values), mul(piece, size));
    SmallVector<Value> elements;
    for (int64_t i = 0; i < size; ++i) {
      auto [slot, inBlock] = split(add(first, i), tiling.level.blockK);
      Value row = arith::IndexCastUIOp::create(b, loc, b.getIndexType(),
                                               load(keptRows, {slot, panel}));
      elements.push_back(tile.loadBits(add(row, inBlock), column));
    }
    Value bits = vector::FromElementsOp::create(b, loc, bitsType, elements);
    if (bitsType != pieceType)
      bits = vector::BitCastOp::create(b, loc, pieceType, bits);
    Value output = split(column, BitmapTile::kOutputs).second;
    Value at = mul(add(mul(piece, BitmapTile::kOutputs), output), size);
    vector::StoreOp::create(b, loc, bits, buffers.values,
                            getBitmapIndices(tileNumber, column, at),
                            /*nontemporal=*/false,
                            llvm::Align::Constant<BitmapTile::kPieceBytes>());
  });
}
