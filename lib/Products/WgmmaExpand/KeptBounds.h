//===- KeptBounds.h - where the values of rows may lie ----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_PRODUCTS_WGMMAEXPAND_KEPTBOUNDS_H
#define NM_SPARSE_LIB_PRODUCTS_WGMMAEXPAND_KEPTBOUNDS_H

#include "nm_sparse/Dialect/NMTile/IR/Schedule.h"

namespace mlir::nm_sparse {

/// Where the values of an output that a group of rows may have begin and end,
/// counted from the first of the tile, and how many come before those of its
/// last register at most.
struct KeptBounds {
  int64_t first, last, mostBefore;

  /// Returns the bounds of the group that begins with `row` of the tile: the
  /// rows of a register for each of four lanes.
  static KeptBounds get(EncodingAttr encoding, int64_t row,
                        int64_t registerRows) {
    int64_t end = row + 4 * registerRows;
    return {countKept(encoding, row, /*isMost=*/false),
            countKept(encoding, end, /*isMost=*/true) - 1,
            countKept(encoding, end - registerRows, /*isMost=*/true)};
  }

  /// The piece of `pieceValues` values that has them all, if one does.
  std::optional<int64_t> getPiece(int64_t pieceValues) const {
    if (first / pieceValues != last / pieceValues)
      return std::nullopt;
    return first / pieceValues;
  }

private:
  /// Kept rows among the first `rows` of any that begin with a window, at least
  /// or at most.
  static int64_t countKept(EncodingAttr encoding, int64_t rows, bool isMost) {
    int64_t window = encoding.getWindowRows(), kept = encoding.getKeptRows();
    int64_t rest = rows % window;
    int64_t begun = isMost ? std::min(kept, rest)
                           : std::max<int64_t>(0, rest + kept - window);
    return rows / window * kept + begun;
  }
};

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_LIB_PRODUCTS_WGMMAEXPAND_KEPTBOUNDS_H
