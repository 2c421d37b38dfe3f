//===- StagedBitmaps.cpp - bitmaps in shared memory -----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The bits before the rows of a lane count the values before theirs. Most of
// the count is known: a window that begins before these rows has n values for
// each m rows.
//
//===----------------------------------------------------------------------===//

#include "StagedBitmaps.h"
#include "../SharedLoads.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "nm_sparse/Dialect/NMTile/IR/TileLayout.h"

using namespace mlir;
using namespace mlir::nm_sparse;

static constexpr int64_t kBitsBytes = 4, kRegisterBytes = 4;

StagedBitmaps::StagedBitmaps(OpBuilder &b, TileMatmulOp op, Value lane,
                             Value output, Value share, int64_t shares)
    : b(b), loc(op.getLoc()), math(b, loc), encoding(op.getEncoding()),
      tile(*op.getStoredTile()), bitsTile(op.getIndex()) {
  auto valuesType = cast<MemRefType>(op.getRhs().getType());
  valueBytes = valuesType.getElementTypeBitWidth() / 8;
  registerRows = kRegisterBytes / valueBytes;
  blocks = valuesType.getDimSize(0);
  tiles = valuesType.getDimSize(1);
  ownTiles = tiles / shares;
  columnElements = getColumnBlock(valuesType);
  bitsBlock = getColumnBlock(cast<MemRefType>(bitsTile.getType()));
  firstOfGroup = math.narrow(math.mul(math.rem(lane, 4), registerRows));
  Value block = math.div(output, BitmapTile::kOutputs);
  inBlock = math.rem(output, BitmapTile::kOutputs);
  firstTile = math.mul(block, tiles);
  if (share)
    firstTile = math.add(firstTile, math.mul(share, ownTiles));
  // The piece of a tile's outputs fills one block of columns, or several.
  int64_t columnOutputs = columnElements / getPieceValues();
  Value column = math.div(inBlock, columnOutputs);
  Value row = math.add(math.mul(column, blocks * tiles), firstTile);
  values = getPointer(
      b, loc, op.getRhs(),
      math.add(math.mul(row, columnElements),
               math.mul(math.rem(inBlock, columnOutputs), getPieceValues())));
  if (bitsBlock == tile.words * BitmapTile::kOutputs)
    bits = getPointer(b, loc, bitsTile,
                      math.add(math.mul(firstTile, bitsBlock),
                               math.mul(inBlock, tile.words)));
}

Value StagedBitmaps::permute(Value low, Value high, Value selector) {
  return NVVM::PermuteOp::create(b, loc, b.getI32Type(), low, high, selector,
                                 NVVM::PermuteMode::DEFAULT);
}

Value StagedBitmaps::getBits(int64_t tileNumber, int64_t number, Side side) {
  Value &known = words[{side.getNumber(), tileNumber * tile.words + number}];
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

/// The bits of rows `first` of a word to `last` of it and the lane's first row
/// of a group behind that, without the last one.
Value StagedBitmaps::getMask(int64_t first, int64_t last) {
  Value &known = masks[{first, last}];
  if (known)
    return known;
  constexpr int64_t all = 0xffffffff;
  Value to = word(0);
  if (last < kWordBits)
    to = arith::ShRUIOp::create(
        b, loc, word(all),
        arith::AddIOp::create(b, loc, firstOfGroup, word(last)));
  return known = arith::AndIOp::create(
             b, loc, arith::XOrIOp::create(b, loc, to, word(all)),
             word(all >> first));
}

Value StagedBitmaps::countBefore(int64_t tileNumber, int64_t row, Side side) {
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

Value StagedBitmaps::loadFrom(int64_t tileNumber, Side side, Value number,
                              std::optional<int64_t> piece, int64_t further,
                              Type type) {
  int64_t pieceBytes =
      blocks * tiles * BitmapTile::kOutputs * BitmapTile::kPieceBytes;
  int64_t bytes = (side.output / BitmapTile::kOutputs * tiles + tileNumber) *
                      columnElements * valueBytes +
                  (side.isUpper ? 8 * BitmapTile::kPieceBytes : 0) +
                  further * valueBytes;
  Value distance =
      valueBytes == 1
          ? number
          : arith::MulIOp::create(b, loc, number, word(valueBytes)).getResult();
  if (piece) {
    bytes += *piece * (pieceBytes - BitmapTile::kPieceBytes);
  } else {
    Value inPieces =
        arith::AndIOp::create(b, loc, number, word(-getPieceValues()));
    int64_t apart = pieceBytes / getPieceValues() - valueBytes;
    distance = arith::AddIOp::create(
        b, loc, distance, arith::MulIOp::create(b, loc, inPieces, word(apart)));
  }
  Value pointer = LLVM::GEPOp::create(b, loc, values.getType(), b.getI8Type(),
                                      values, ArrayRef<LLVM::GEPArg>{distance});
  return loadAt(b, loc, pointer, bytes, type);
}
