//===- ThreadLayout.h - how threads share a CTA tile ------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A `vector<tokens x outputs>` of a CTA becomes, in each thread, a list of
// scalars. The layout says which: element `e` of a thread lies at the thread's
// base coordinates, known at run time, plus an offset known at compile time.
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_CONVERSION_TILETOTHREADS_THREADLAYOUT_H
#define NM_SPARSE_CONVERSION_TILETOTHREADS_THREADLAYOUT_H

#include "mlir/IR/Builders.h"
#include "nm_sparse/Dialect/NMTile/IR/NMTile.h"
#include "nm_sparse/Dialect/NMTile/Utils/IndexMath.h"

namespace mlir::nm_sparse {

/// Position in a CTA tile, relative to a thread's base.
struct TileOffset {
  int64_t token;
  int64_t output;
};

/// The wishes of a product about the code around it.
struct ThreadUse {
  /// Warps may transpose 16-bit results of fragments as they write them.
  bool transposesFragments = false;
  /// Accumulators that are stored together would share a bank of the register
  /// file with the factors that they are multiplied from.
  bool accumulatorsNeedCopies = false;
  /// Registers of a thread for all its reads of global memory at once, beside
  /// all else; ptxas, which saves registers, would delay the reads.
  std::optional<int64_t> registers = std::nullopt;
  /// The chips of the product have prefetches to L2.
  bool mayPrefetch = false;
};

class ThreadLayout {
public:
  /// The threads of the sum of `op`, as its layout says; the index
  /// arithmetic of a thread's coordinates is emitted at the builder's insertion
  /// point.
  static ThreadLayout create(OpBuilder &builder, SumOpInterface op);

  int64_t getNumElements() const { return offsets.size(); }
  TileOffset getOffset(int64_t element) const { return offsets[element]; }

  /// Elements grouped into runs that are neighbours along tokens (or outputs),
  /// each run a power of two of at most `maxWidth` elements and aligned to its
  /// width relative to the tile.
  SmallVector<SmallVector<int64_t>> getRuns(bool alongTokens,
                                            int64_t maxWidth) const;

  AccumulatorAttr accumulator;
  ScheduleAttr schedule;
  ThreadUse use;

  /// Tokens x outputs of the CTA tile.
  int64_t tileTokens, tileOutputs;
  /// Tokens x outputs of a unit: of one warp, or warpgroup.
  int64_t unitTokens, unitOutputs;
  int64_t numThreads;
  /// Elements are those of fragments, ordered (row fragment, column fragment,
  /// row half, pair), whose rows lie along outputs, or tokens.
  bool hasFragments = false, outputsAreRows = false;
  /// Owners have a share of the contraction, as the other threads do.
  bool dividesContraction = false;

  Value threadId, lane;
  /// First token and output of the unit in the CTA tile.
  Value unitToken, unitOutput;
  /// First token and output of the thread in the CTA tile.
  Value token, output;
  /// i1: the thread holds elements of the result; null where all do. Others
  /// neither read nor write tiles.
  Value isOwner;

private:
  SmallVector<TileOffset> offsets;
};

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_CONVERSION_TILETOTHREADS_THREADLAYOUT_H
