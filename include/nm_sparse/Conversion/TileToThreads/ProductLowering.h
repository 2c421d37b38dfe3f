//===- ProductLowering.h - products as the code of threads ------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_CONVERSION_TILETOTHREADS_PRODUCTLOWERING_H
#define NM_SPARSE_CONVERSION_TILETOTHREADS_PRODUCTLOWERING_H

#include "nm_sparse/Conversion/TileToThreads/ThreadLayout.h"

#include "nm_sparse/Conversion/TileToThreads/ProductLowering.h.inc"

namespace mlir::nm_sparse {

/// Selects the row of the x tile that holds kept row `row` of the step, for
/// outputs of panel `panel` (counted from the tile's first): position in the
/// condensed tile, or the index's position in its window. Rows past the index's
/// extent hold zero values; they are directed to a row that exists.
Value emitXRow(OpBuilder &b, Location loc, TileMatmulOp op, Value row,
               Value panel);

/// Panel, counted from the tile's first, of output `output` of the CTA tile.
Value emitPanel(OpBuilder &b, Location loc, TileMatmulOp op, Value output);

/// Emits `emitThen` where `condition` holds, else `emitElse`, if there is one;
/// each may change `values`, but not their types.
void emitIf(OpBuilder &b, Location loc, Value condition,
            MutableArrayRef<Value> values, function_ref<void()> emitThen,
            function_ref<void()> emitElse = {});

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_CONVERSION_TILETOTHREADS_PRODUCTLOWERING_H
