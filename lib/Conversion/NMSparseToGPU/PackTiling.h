//===- PackTiling.h - a weight as CTAs and threads pack it ------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_CONVERSION_NMSPARSETOGPU_PACKTILING_H
#define NM_SPARSE_LIB_CONVERSION_NMSPARSETOGPU_PACKTILING_H

#include "nm_sparse/Dialect/NMSparse/IR/NMSparse.h"

namespace mlir::nm_sparse {

/// How a dense weight of one level is divided. A CTA packs a tile of whole
/// windows and whole panels, and a thread handles a unit at a time:
/// neighbouring outputs of one row and one panel, 16 bytes at most.
struct PackTiling {
  /// Positions of a window are bits of one integer.
  static constexpr int64_t kMaxPositions = 64;
  /// Bytes that a thread reads or writes at once.
  static constexpr int64_t kAccessBytes = 16;

  /// Tiles a legal weight of one n:m level and static shape, with elements of
  /// 1, 2 or 4 bytes and at most kMaxPositions positions. For bitmaps, a tile
  /// is a whole number of bitmap tiles, and must be staged.
  PackTiling(RankedTensorType weight, EncodingAttr encoding, bool isBitmap);

  // The weight.
  SparsityLevel level;
  PackedShape shape;
  int64_t elementBytes;
  bool isTransposed;                ///< Its rows run along the contraction.
  std::optional<BitmapTile> bitmap; ///< Set if the packed form has bitmaps.

  // A tile.
  int64_t unit;    ///< Outputs.
  int64_t windows; ///< Whose rows are `rows()`.
  int64_t panels;  ///< Whose outputs are `columns()`.
  /// The tile is copied to shared memory. A window of a panel that is too large
  /// for that is read twice.
  bool isStaged;

  // A CTA.
  int64_t threadsX; ///< Along the units of a row.
  int64_t threadsY;
  /// Parts of a window whose positions different threads look at.
  int64_t groups;

  int64_t rows() const { return windows * level.getWindowRows(); }
  int64_t columns() const { return panels * level.blockN; }
  int64_t units() const { return columns() / unit; }
  int64_t unitsOfPanel() const { return level.blockN / unit; }
  int64_t threads() const { return threadsX * threadsY; }
  /// Elements that a thread reads or writes at once.
  int64_t accessElements() const { return kAccessBytes / elementBytes; }
};

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_LIB_CONVERSION_NMSPARSETOGPU_PACKTILING_H
