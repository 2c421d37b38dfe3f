//===- FragmentLayout.h - accumulators of tensor cores ----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_PRODUCTS_FRAGMENTLAYOUT_H
#define NM_SPARSE_LIB_PRODUCTS_FRAGMENTLAYOUT_H

#include "nm_sparse/Dialect/NMTile/IR/NMTile.h"

namespace mlir::nm_sparse {

/// The part of a tile that one warp or warpgroup multiplies, in fragments whose
/// elements lie in threads as those of mma.m16n8 do.
struct FragmentTile {
  /// Where the rows of fragments lie along; the columns lie along the other.
  TileDim rowDim;
  /// Rows of a fragment: 16 of a warp, 64 of a warpgroup.
  int64_t fragmentRows;
  int64_t rows, columns;
};

/// The layout of warps, or warpgroups, that have `tile` each, numbered by
/// `units`. Elements are ordered (row fragment, column fragment, row half,
/// pair).
AccumulatorAttr layOutFragments(MLIRContext *context, const FragmentTile &tile,
                                ArrayRef<LayoutDigit> units);

/// The numbers of [tokens, outputs] `warps` that divide a tile of `schedule`,
/// outputs first.
SmallVector<LayoutDigit> divideAmongWarps(ScheduleAttr schedule,
                                          ArrayRef<int64_t> warps);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_LIB_PRODUCTS_FRAGMENTLAYOUT_H
