//===- Patterns.h - patterns of the exit conversion -------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_CONVERSION_NMSPARSETONVGPU_PATTERNS_H
#define NM_SPARSE_LIB_CONVERSION_NMSPARSETONVGPU_PATTERNS_H

#include "ThreadLayout.h"

#include "mlir/Transforms/DialectConversion.h"

namespace mlir::nm_sparse {

/// async_copy and async_gather -> nvgpu.device_async_copy.
void populateTileCopyPatterns(const TypeConverter &converter,
                              const ThreadLayout &layout,
                              RewritePatternSet &patterns);

/// tile_matmul with a `simt` schedule -> vector.load and math.fma.
void populateSimtPatterns(const TypeConverter &converter,
                          const ThreadLayout &layout,
                          RewritePatternSet &patterns);

/// tile_matmul with an `mma` schedule -> nvgpu.ldmatrix and nvgpu.mma.sync.
void populateMmaPatterns(const TypeConverter &converter,
                         const ThreadLayout &layout,
                         RewritePatternSet &patterns);

/// Elementwise operations, constants, transfers of CTA-tile vectors -> scalars.
void populateTileVectorPatterns(const TypeConverter &converter,
                                const ThreadLayout &layout,
                                RewritePatternSet &patterns);

/// Column at which element (`row`, `column`) of a shared-memory tile is stored.
Value emitTileColumn(OpBuilder &b, Location loc, Value tile, Value row,
                     Value column);

/// Selects the row of the x tile that holds kept row `row` of the step, for
/// outputs of panel `panel` (counted from the tile's first): position in the
/// condensed tile, or the index's position in its window. Rows past the index's
/// extent hold zero values; they are directed to a row that exists.
Value emitXRow(OpBuilder &b, Location loc, TileMatmulOp op, Value row,
               Value panel);

/// Panel, counted from the tile's first, of output `output` of the CTA tile.
Value emitPanel(OpBuilder &b, Location loc, TileMatmulOp op, Value output);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_LIB_CONVERSION_NMSPARSETONVGPU_PATTERNS_H
