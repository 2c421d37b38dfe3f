//===- SegmentFragments.h - fragments of whole windows ----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_PRODUCTS_WGMMAEXPAND_SEGMENTFRAGMENTS_H
#define NM_SPARSE_LIB_PRODUCTS_WGMMAEXPAND_SEGMENTFRAGMENTS_H

#include "../SegmentExpansion.h"
#include "nm_sparse/Dialect/NMTile/IR/NMTile.h"
#include <map>
#include <tuple>

namespace mlir::nm_sparse {

/// As Expansion, of values in shared memory as TileLayout::SegmentLines, where
/// lane `4 g + t` of a warp expands segment t of a group of four, of outputs g
/// and g + 8. Rows of the step are in the order of Segment.
class SegmentFragments {
public:
  /// As those of Expansion.
  SegmentFragments(OpBuilder &b, TileMatmulOp op, Value lane, Value output,
                   Value share, int64_t shares);

  /// Rows of a share of the K step.
  int64_t getRows() const { return groups * getGroupRows(); }

  /// The first rows of parts of kPartRows, in the order that keeps the fewest
  /// registers, of each group of four segments.
  SmallVector<SmallVector<int64_t>> getParts() const;
  static constexpr int64_t kPartRows = 32;

  /// Loads what `getFragment` of the same rows and outputs expands.
  void load(int64_t row, int64_t output);

  /// Registers of rows `row` to `row + 15` of the step, of outputs `output`
  /// further, a multiple of 64. Each a pair of rows, i32: of output g, of
  /// g + 8, and of both the next pair.
  SmallVector<Value> getFragment(int64_t row, int64_t output);

private:
  int64_t getGroupRows() const { return Segment::kLanes * segment.rows; }
  SegmentExpansion &getSegment(int64_t group, int64_t output, bool isUpper);

  OpBuilder &b;
  Location loc;
  BitmapTile tile;
  Segment segment;
  NibbleTable table;
  /// Blocks of 32 outputs and tiles in the K step, and the groups of a share of
  /// it.
  int64_t blocks, tiles, groups;
  /// Pointers to what the lane reads of its first segment; and by how many bits
  /// its own begin in a word that several segments share, null where none do.
  Value values, bits, place;
  std::map<std::tuple<int64_t, int64_t, bool>, SegmentExpansion> segments;
};

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_LIB_PRODUCTS_WGMMAEXPAND_SEGMENTFRAGMENTS_H
