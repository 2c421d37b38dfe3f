//===- FragmentLayout.cpp - accumulators of tensor cores ------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FragmentLayout.h"

using namespace mlir;
using namespace mlir::nm_sparse;

AccumulatorAttr nm_sparse::layOutFragments(MLIRContext *context,
                                           const FragmentTile &tile,
                                           ArrayRef<LayoutDigit> units) {
  TileDim rows = tile.rowDim;
  TileDim columns =
      rows == TileDim::Tokens ? TileDim::Outputs : TileDim::Tokens;
  // A thread has elements (lane / 4 + {0, 8}, 2 * (lane % 4) + {0, 1}) of each
  // 16 x 8; the warps of a warpgroup have 16 rows each.
  return makeAccumulator(
      context,
      {{columns, 4, 2}, {rows, 8, 1}, {rows, tile.fragmentRows / 16, 16}},
      units,
      {{columns, 2, 1},
       {rows, 2, 8},
       {columns, tile.columns / 8, 8},
       {rows, tile.rows / tile.fragmentRows, tile.fragmentRows}});
}

SmallVector<LayoutDigit> nm_sparse::divideAmongWarps(ScheduleAttr schedule,
                                                     ArrayRef<int64_t> warps) {
  return {{TileDim::Outputs, warps[1], schedule.getTileOutputs() / warps[1]},
          {TileDim::Tokens, warps[0], schedule.getTileTokens() / warps[0]}};
}
