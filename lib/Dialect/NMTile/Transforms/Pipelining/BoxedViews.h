//===- BoxedViews.h - operands in the order of products ---------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_DIALECT_NMTILE_TRANSFORMS_PIPELINING_BOXEDVIEWS_H
#define NM_SPARSE_LIB_DIALECT_NMTILE_TRANSFORMS_PIPELINING_BOXEDVIEWS_H

#include "mlir/IR/Builders.h"
#include "nm_sparse/Dialect/NMTile/IR/Segment.h"

namespace mlir::nm_sparse {

/// The tensor that a map describes, and the part that a bulk copy takes of it.
struct BoxedView {
  Value tensor;
  SmallVector<int64_t> box;
  /// Boxes along each dimension; empty where only the last has several.
  SmallVector<int64_t> boxes;
  SmallVector<OpFoldResult> coordinates;
};

/// Rows of feature-major activations, `root`, for a `tile` of these whose rows
/// are in the order in which products multiply segments. `coordinates` are
/// those of the tile in `root`, whose rows count groups of kLanes segments.
BoxedView viewRows(OpBuilder &b, Location loc, Value root,
                   ArrayRef<OpFoldResult> coordinates, MemRefType tile,
                   const Segment &segment);

/// Values of bitmaps, `root`, for a `tile` of these as
/// TileLayout::SegmentLines.
BoxedView viewValues(OpBuilder &b, Location loc, Value root,
                     ArrayRef<OpFoldResult> coordinates, MemRefType tile,
                     const Segment &segment);

/// Values of bitmaps, `root`, which may have batches, for a `tile` of these as
/// TileLayout::CoreMatrices, of which each of `ctas` copies its part.
BoxedView viewCoreMatrices(OpBuilder &b, Location loc, Value root,
                           ArrayRef<OpFoldResult> coordinates, MemRefType tile,
                           int64_t ctas);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_LIB_DIALECT_NMTILE_TRANSFORMS_PIPELINING_BOXEDVIEWS_H
