//===- DenseTile.h - the part of a weight that a CTA packs ------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_CONVERSION_NMSPARSETOGPU_DENSETILE_H
#define NM_SPARSE_LIB_CONVERSION_NMSPARSETOGPU_DENSETILE_H

#include "PackTiling.h"
#include "ThreadEmitter.h"

namespace mlir::nm_sparse {

/// Emits reads of a tile of a dense weight, as the bits of its elements. What
/// lies past the end of the weight reads as +0.
class DenseTile : ThreadEmitter {
public:
  /// Where the tile begins in the weight.
  struct Place {
    Value batch, row, column;
  };

  /// `dense` is a buffer of the weight that `tiling` is for, whose rows have no
  /// gaps.
  DenseTile(OpBuilder &b, Location loc, const PackTiling &tiling, Value dense,
            Place place);

  /// Copies a tile that is staged to shared memory. `thread` is the number of
  /// the thread in its CTA; `isAligned` (i1) says whether all rows of the
  /// weight begin at multiples of 16 bytes. A barrier must follow.
  void stage(Value thread, Value isAligned);

  /// Unit `number` of row `row` of the tile: a vector of integers.
  Value loadUnit(Value row, Value number);
  /// One element of a tile that is staged: an integer.
  Value loadBits(Value row, Value column) { return load(tile, {row, column}); }

private:
  void stagePieces(Value thread);
  void stageBlocks(Value thread);
  void stageElements(Value thread);
  Value loadPiece(Value row, Value column);
  Value loadElement(Value row, Value column);
  SmallVector<Value> getIndices(Value row, Value column);
  /// Stores a vector of 16 bytes.
  void storePiece(Value piece, Value row, Value column);
  Value transposeColumn(ArrayRef<Value> lines, int64_t column);

  const PackTiling &tiling;
  Value dense;
  Place place;
  IntegerType bits; ///< As wide as an element.
  Value tile;       ///< In shared memory; null unless the tile is staged.
};

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_LIB_CONVERSION_NMSPARSETOGPU_DENSETILE_H
