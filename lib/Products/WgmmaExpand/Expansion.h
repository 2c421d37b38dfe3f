//===- Expansion.h - fragments of weights stored as bitmaps -----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_PRODUCTS_WGMMAEXPAND_EXPANSION_H
#define NM_SPARSE_LIB_PRODUCTS_WGMMAEXPAND_EXPANSION_H

#include "nm_sparse/Dialect/NMTile/IR/NMTile.h"
#include "nm_sparse/Dialect/NMTile/Utils/IndexMath.h"
#include "llvm/ADT/DenseMap.h"

namespace mlir::nm_sparse {

/// Emits what makes dense fragments of the tiles of one K step of a weight of
/// 16-bit elements that is stored as bitmaps, in shared memory. A fragment is
/// 16 rows of the outputs of a warp; as the first operand of a product, lane `4
/// g + t` has of outputs g and g + 8 the rows 2 t, 2 t + 1 and 8 further.
class Expansion {
public:
  /// `op` has the tiles; `output` is output g of the lane, of the CTA tile, a
  /// multiple of 16 and g. Of `shares` of the K step, `share` is the lane's;
  /// null where there is one.
  Expansion(OpBuilder &b, TileMatmulOp op, Value lane, Value output,
            Value share, int64_t shares);

  /// Rows of a share of the K step.
  int64_t getRows() const { return ownTiles * tile.rows; }

  /// Loads what `getFragment` of the same rows and outputs permutes: well
  /// before it, that hides the latency.
  void load(int64_t row, int64_t output);

  /// Registers of rows `row` to `row + 15` of the step, of outputs `output`
  /// further, a multiple of 64. Each a pair of rows, i32: of output g, of
  /// g + 8, and of both 8 rows further.
  SmallVector<Value> getFragment(int64_t row, int64_t output);

private:
  /// Which of the outputs of a lane: `output` further than g, or than g + 8.
  struct Side {
    int64_t output;
    bool isUpper;
  };
  /// Byte selectors of four pairs of rows.
  struct Selectors {
    Value outer, inner;
  };
  /// Two values, and which of their bytes a pair of rows has.
  struct LoadedPair {
    Value first, second, selector;
  };
  Value word(int64_t v) { return math.word(v); }
  std::array<std::pair<int64_t, Side>, 4> getPairs(int64_t row,
                                                   int64_t output) const;
  LoadedPair &getLoaded(int64_t row, Side side);
  Value getBits(int64_t tileNumber, int64_t number, Side side);
  Value getSelector(int64_t tileNumber, int64_t row, Side side);
  Value getMask(int64_t first, int64_t last);
  Value countBefore(int64_t tileNumber, int64_t row, Side side);
  Value loadValue(int64_t tileNumber, Side side, Value number,
                  std::optional<int64_t> piece, int64_t further);
  Value permute(Value low, Value high, Value selector);

  OpBuilder &b;
  Location loc;
  IndexMath math;
  EncodingAttr encoding;
  BitmapTile tile;
  /// Blocks of 32 outputs and tiles of rows in the K step, and the tiles of a
  /// share.
  int64_t blocks, tiles, ownTiles;
  int64_t pieceElements, bitsBlock;
  /// Values of the lane: twice t, its output in its block of outputs, the first
  /// tile of its share in that block, and pointers to its first value and word.
  Value twoT, inBlock, firstTile, values, bits, bitsTile;
  llvm::DenseMap<std::pair<int64_t, int64_t>, Value> masks, words;
  llvm::DenseMap<std::pair<int64_t, int64_t>, Selectors> selectors;
  llvm::DenseMap<std::pair<int64_t, int64_t>, LoadedPair> loaded;
};

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_LIB_PRODUCTS_WGMMAEXPAND_EXPANSION_H
