//===- Segment.h - what a lane expands of an output -------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_DIALECT_NMTILE_IR_SEGMENT_H
#define NM_SPARSE_DIALECT_NMTILE_IR_SEGMENT_H

#include "nm_sparse/Dialect/NMTile/IR/Schedule.h"
#include "llvm/Support/MathExtras.h"
#include <numeric>

namespace mlir::nm_sparse {

/// The rows of an output that one lane expands at a time: a tile of its bitmap,
/// or a half or a quarter of it with whole windows and whole pieces of values.
/// Its bits are whole words, or part of the only word of the tile. The fewer
/// rows, the nearer the activations that the lanes of a warp read.
///
/// A product has a register of neighbouring rows of each lane of four, then the
/// next one. So with R rows in a register, what it multiplies as row
/// `4 R j + R t + e` is row `R j + e` of the segment of lane t.
struct Segment {
  /// Rows that one number of four bits has.
  static constexpr int64_t kNibbleRows = 4;
  static constexpr int64_t kWordBits = 32, kRegisterBytes = 4;
  /// Lanes of a warp with the same outputs, each with a segment of its own;
  /// outputs of each; and tokens of a fragment.
  static constexpr int64_t kLanes = 4, kLaneOutputs = 4, kFragmentTokens = 8;

  int64_t registerRows;         ///< Elements of a register: 2 or 4.
  int64_t perTile;              ///< Segments of a tile.
  int64_t rows, values;         ///< Rows and values of a segment.
  int64_t words;                ///< Words that hold its bits; at least 1.
  int64_t spanRows, spanValues; ///< Whole windows, and whole registers of rows.

  /// Elements of 16 bytes: rows whose activations one access reads, and values
  /// of a piece.
  int64_t getChunkRows() const {
    return BitmapTile::kPieceBytes / kRegisterBytes * registerRows;
  }
  int64_t getPieceValues() const { return getChunkRows(); }

  /// Segments of each output that a lane multiplies in a K step of `tiles`,
  /// which `shares` divide.
  int64_t countOfLane(int64_t tiles, int64_t shares) const {
    return llvm::divideCeil(tiles * perTile, kLanes * shares);
  }

  static Segment get(EncodingAttr encoding, const BitmapTile &tile,
                     int64_t elementBytes) {
    Segment segment;
    segment.registerRows = kRegisterBytes / elementBytes;
    int64_t windows = segment.registerRows /
                      std::gcd(segment.registerRows, encoding.getWindowRows());
    segment.spanRows = windows * encoding.getWindowRows();
    segment.spanValues = windows * encoding.getKeptRows();
    for (segment.perTile = 4; segment.perTile > 1; segment.perTile /= 2) {
      int64_t rows = tile.rows / segment.perTile;
      if (tile.rows % segment.perTile == 0 &&
          rows % segment.getChunkRows() == 0 && rows % segment.spanRows == 0 &&
          tile.values % (segment.perTile * segment.getPieceValues()) == 0 &&
          (tile.words == 1 || rows % kWordBits == 0))
        break;
    }
    segment.rows = tile.rows / segment.perTile;
    segment.values = tile.values / segment.perTile;
    segment.words = tile.words == 1 ? 1 : tile.words / segment.perTile;
    return segment;
  }
};

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_DIALECT_NMTILE_IR_SEGMENT_H
