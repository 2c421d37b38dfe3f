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

class ThreadLayout {
public:
  /// Layout of the accumulator of `op`, by its product; the index arithmetic of
  /// the thread's coordinates is emitted at the builder's insertion point.
  /// Fails with an error on `op` when the schedule cannot hold the encoding.
  static FailureOr<ThreadLayout> create(OpBuilder &builder, TileMatmulOp op);

  int64_t getNumElements() const { return offsets.size(); }
  TileOffset getOffset(int64_t element) const { return offsets[element]; }
  /// Adds the next element of a thread.
  void addElement(TileOffset offset) { offsets.push_back(offset); }

  /// Lays `warps` = [tokens, outputs] over the tile: sets warpTokens,
  /// warpOutputs, warpToken and warpOutput.
  void divideAmongWarps(IndexMath &math, ArrayRef<int64_t> warps);
  /// Adds the elements of fragments of `rows` x 8, which lie in a thread as
  /// those of mma.m16n8 do, over `numRows` x `numColumns` of a warp, whose
  /// coordinates in them are set too: 8 rows of 4 lanes with 2 neighbours each,
  /// and 8 rows further.
  void addFragments(IndexMath &math, int64_t rows, int64_t numRows,
                    int64_t numColumns, Value firstRow);

  /// Elements grouped into runs that are neighbours along tokens (or outputs),
  /// each run a power of two of at most `maxWidth` elements and aligned to its
  /// width relative to the tile.
  SmallVector<SmallVector<int64_t>> getRuns(bool alongTokens,
                                            int64_t maxWidth) const;

  /// Tokens x outputs of the CTA tile.
  int64_t tileTokens, tileOutputs;
  /// Tokens x outputs of one warp.
  int64_t warpTokens, warpOutputs;
  /// Neighbouring tokens, and outputs, of a thread; each thread's first is a
  /// multiple of them.
  int64_t tokenRun = 1, outputRun = 1;

  /// Elements are those of fragments, ordered (row fragment, column fragment,
  /// row half, pair).
  bool hasFragments = false;
  /// The rows of fragments lie along outputs, not tokens.
  bool outputsAreRows = false;
  /// Warps may transpose 16-bit results of fragments as they write them.
  bool transposesFragments = false;
  /// Accumulators that are stored together would share a bank of the register
  /// file with the factors that they are multiplied from.
  bool accumulatorsNeedCopies = false;
  /// Registers of a thread for all its reads of global memory at once, beside
  /// all else; ptxas, which saves registers, would delay the reads.
  std::optional<int64_t> registers;
  /// The chips of the product have prefetches to L2.
  bool mayPrefetch = false;

  ScheduleAttr schedule;
  int64_t numThreads;

  Value threadId, lane;
  /// First token and output of the warp, or of the warpgroup, in the CTA tile.
  Value warpToken, warpOutput;
  /// First token and output of the thread in the CTA tile.
  Value token, output;
  /// i1: the thread holds elements of the result; null where all do. Others
  /// neither read nor write tiles.
  Value isOwner;
  /// Groups of warps, or of lanes that a warp has several of, one behind the
  /// other, each with a share of the elements that those of the first group
  /// own.
  int64_t shares = 1;

private:
  SmallVector<TileOffset> offsets;
};

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_CONVERSION_TILETOTHREADS_THREADLAYOUT_H
