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

namespace mlir::nm_sparse {

/// Position in a CTA tile, relative to a thread's base.
struct TileOffset {
  int64_t token;
  int64_t output;
};

class ThreadLayout {
public:
  /// Layout of the accumulator of `op`; the index arithmetic of the thread's
  /// coordinates is emitted at the builder's insertion point. Fails with an
  /// error on `op` when the schedule cannot hold the encoding.
  static FailureOr<ThreadLayout> create(OpBuilder &builder, TileMatmulOp op);

  int64_t getNumElements() const { return offsets.size(); }
  TileOffset getOffset(int64_t element) const { return offsets[element]; }

  /// Elements grouped into runs that are neighbours along tokens (or outputs),
  /// each run a power of two of at most `maxWidth` elements and aligned to its
  /// width relative to the tile.
  SmallVector<SmallVector<int64_t>> getRuns(bool alongTokens,
                                            int64_t maxWidth) const;

  /// Tokens x outputs of the CTA tile.
  int64_t tileTokens, tileOutputs;
  /// Tokens x outputs of one warp.
  int64_t warpTokens, warpOutputs;
  /// Tokens x outputs of one simt thread.
  int64_t threadTokens = 0, threadOutputs = 0;
  /// Neighbouring tokens of one simt thread, and the offset of its token `i`:
  /// the chunks of 8 lanes lie side by side.
  int64_t tokenChunk = 1;
  int64_t getTokenOffset(int64_t i) const {
    return i / tokenChunk * 8 * tokenChunk + i % tokenChunk;
  }
  /// The same of outputs, whose chunks of 4 lanes lie side by side.
  int64_t outputChunk = 1;
  int64_t getOutputOffset(int64_t j) const {
    return j / outputChunk * 4 * outputChunk + j % outputChunk;
  }
  /// mma and wgmma: the 16-wide side of a fragment lies along outputs, not
  /// tokens.
  bool outputsAreRows = false;
  ScheduleAttr schedule;
  ScheduleKind kind;
  int64_t numThreads;

  Value threadId, lane;
  /// First token and output of the warp, under wgmma of the warpgroup, in the
  /// CTA tile.
  Value warpToken, warpOutput;
  /// First token and output of the thread in the CTA tile.
  Value token, output;

private:
  void layOutWarpgroups(OpBuilder &builder, Location loc,
                        ScheduleAttr schedule);

  SmallVector<TileOffset> offsets;
};

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_CONVERSION_TILETOTHREADS_THREADLAYOUT_H
