//===- Patterns.h - patterns of the exit conversion -------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_CONVERSION_TILETOTHREADS_PATTERNS_H
#define NM_SPARSE_CONVERSION_TILETOTHREADS_PATTERNS_H

#include "nm_sparse/Conversion/TileToThreads/ThreadLayout.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Transforms/DialectConversion.h"

namespace mlir::nm_sparse {

/// async_copy and async_gather -> nvgpu.device_async_copy.
void populateTileCopyPatterns(const TypeConverter &converter,
                              const ThreadLayout &layout,
                              RewritePatternSet &patterns);

/// bulk_copy -> nvvm.cp.async.bulk.tensor in one thread.
void populateTileBulkCopyPatterns(const TypeConverter &converter,
                                  const ThreadLayout &layout,
                                  RewritePatternSet &patterns);

/// Where registers are short, reads what an epilogue needs before the K loop,
/// or brings it to L2.
void prepareEpilogueReads(gpu::LaunchOp launch, const TypeConverter &converter,
                          const ThreadLayout &layout);

/// Splits each epilogue that reads more than registers hold into a version for
/// whole tiles and one for those at an edge, before the conversion; and orders
/// both by what they write, after it.
void splitEpilogues(gpu::LaunchOp launch, const TypeConverter &converter,
                    const ThreadLayout &layout);
void orderEpilogues(gpu::LaunchOp launch, const ThreadLayout &layout,
                    bool sharesTiles);

/// What the conversion made of the operations around the product that have no
/// versions.
struct TileEpilogue {
  /// Scalar operations, and reads of tiles so large that their elements and the
  /// accumulators do not fit in registers together, both in program order.
  SmallVector<Operation *> elementwise, reads;
  /// Tiles written by the launch, and how many of them may be.
  int64_t numWrites = 0, maxWrites = 1;
  /// A thread has so many elements that registers hold no two values of each.
  bool isCrowded = false;

  /// Where registers are short, moves each recorded operation to its first use,
  /// so that an element is read and combined just before it is written.
  void sinkOperations();
};

/// Elementwise operations and constants of CTA-tile vectors -> scalars.
/// `epilogue` records what is made of them.
void populateTileElementwisePatterns(const TypeConverter &converter,
                                     const ThreadLayout &layout,
                                     TileEpilogue &epilogue,
                                     RewritePatternSet &patterns);

/// The vector of `low` and `high`. Two numbers that were made narrower are put
/// together first: one instruction converts both.
Value makePair(OpBuilder &b, Location loc, Value low, Value high);

/// Transfers of CTA-tile vectors -> loads and stores of scalars.
void populateTileReadPatterns(const TypeConverter &converter,
                              const ThreadLayout &layout,
                              TileEpilogue &epilogue,
                              RewritePatternSet &patterns);
void populateTileWritePatterns(const TypeConverter &converter,
                               const ThreadLayout &layout,
                               TileEpilogue &epilogue,
                               RewritePatternSet &patterns);

/// store_part and load_part -> vector.store and vector.load.
void populateTilePartPatterns(const TypeConverter &converter,
                              const ThreadLayout &layout,
                              TileEpilogue &epilogue,
                              RewritePatternSet &patterns);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_CONVERSION_TILETOTHREADS_PATTERNS_H
