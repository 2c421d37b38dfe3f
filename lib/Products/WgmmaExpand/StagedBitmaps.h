//===- StagedBitmaps.h - bitmaps in shared memory ---------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_PRODUCTS_WGMMAEXPAND_STAGEDBITMAPS_H
#define NM_SPARSE_LIB_PRODUCTS_WGMMAEXPAND_STAGEDBITMAPS_H

#include "nm_sparse/Dialect/NMTile/IR/NMTile.h"
#include "nm_sparse/Dialect/NMTile/Utils/IndexMath.h"
#include "llvm/ADT/DenseMap.h"

namespace mlir::nm_sparse {

/// The tiles of one K step of a weight that is stored as bitmaps, in shared
/// memory, and where a lane finds what it expands. Fragments have rows in
/// groups: lane `4 g + t` has of each group the rows of one register, from
/// `registerRows * t` on, of outputs g and g + 8.
class StagedBitmaps {
public:
  /// `op` has the tiles; `output` is output g of the lane, of the CTA tile, a
  /// multiple of 16 and g. Of `shares` of the K step, `share` is the lane's;
  /// null where there is one.
  StagedBitmaps(OpBuilder &b, TileMatmulOp op, Value lane, Value output,
                Value share, int64_t shares);

  /// Rows of a share of the K step.
  int64_t getRows() const { return ownTiles * tile.rows; }

protected:
  static constexpr int64_t kWordBits = 32;

  /// Which of the outputs of a lane: `output` further than g, or than g + 8.
  struct Side {
    int64_t output;
    bool isUpper;
    /// A number of its own.
    int64_t getNumber() const { return output * 2 + isUpper; }
  };

  Value word(int64_t v) { return math.word(v); }
  /// The last of the tiles has nothing but other outputs behind it.
  bool isLast(int64_t tileNumber) const { return tileNumber == ownTiles - 1; }
  /// Values of a piece.
  int64_t getPieceValues() const {
    return BitmapTile::kPieceBytes / valueBytes;
  }
  int64_t getGroupRows() const { return 4 * registerRows; }

  /// Word `number` of the bits of tile `tileNumber`.
  Value getBits(int64_t tileNumber, int64_t number, Side side);
  /// The number of the first value, in its tile, of the rows of the lane in the
  /// group that begins with `row`.
  Value countBefore(int64_t tileNumber, int64_t row, Side side);
  /// Loads `type` from value `number`, which begins one, in `piece` of its tile
  /// or in one that is known at run time, `further` values behind it.
  Value loadFrom(int64_t tileNumber, Side side, Value number,
                 std::optional<int64_t> piece, int64_t further, Type type);
  Value permute(Value low, Value high, Value selector);

  OpBuilder &b;
  Location loc;
  IndexMath math;
  EncodingAttr encoding;
  BitmapTile tile;
  int64_t valueBytes, registerRows;
  /// The lane's first row of each group, and its output in its block of
  /// outputs.
  Value firstOfGroup, inBlock;

private:
  Value getMask(int64_t first, int64_t last);

  /// Blocks of 32 outputs and tiles of rows in the K step, and the tiles of a
  /// share.
  int64_t blocks, tiles, ownTiles;
  /// Elements of a row of a block of columns, of the values and of the bits.
  int64_t columnElements, bitsBlock;
  /// The first tile of the lane's share in its block, and pointers to its first
  /// value and word.
  Value firstTile, values, bits, bitsTile;
  llvm::DenseMap<std::pair<int64_t, int64_t>, Value> masks, words;
};

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_LIB_PRODUCTS_WGMMAEXPAND_STAGEDBITMAPS_H
