//===- SimtLayout.h - the rectangle of a simt thread ------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_PRODUCTS_SIMT_SIMTLAYOUT_H
#define NM_SPARSE_LIB_PRODUCTS_SIMT_SIMTLAYOUT_H

#include "nm_sparse/Conversion/TileToThreads/ThreadLayout.h"

namespace mlir::nm_sparse {

/// The tokens and outputs of one thread, relative to its first. A 16-byte read
/// costs one wavefront a half warp, not two, when lanes 2i and 2i + 1 (or 4i +
/// j and 4i + j + 2) read the same word: so lanes are numbered 2 outputs, 8
/// tokens, 2 outputs. Then 8 words lie side by side along tokens, in all banks;
/// a thread's tokens come in chunks of 4. Along outputs only 2 words are read
/// at a time; where all outputs of a warp share a panel they come in chunks of
/// 4 too, for then the lanes that store a row of the result side by side fill
/// whole sectors. Two lanes side by side whose outputs are in different panels
/// read two rows of x, though, which lie in the same banks: there lanes are
/// numbered 8 tokens, 4 outputs, and each quarter of a warp reads one row.
struct SimtLayout {
  /// Describes the [tokens, outputs] `warps` that divide a tile of `schedule`.
  SimtLayout(ScheduleAttr schedule, ArrayRef<int64_t> warps,
             EncodingAttr encoding);

  /// Tokens x outputs of a thread.
  int64_t tokens, outputs;
  /// Neighbouring tokens; the chunks of 8 lanes lie side by side.
  int64_t tokenChunk;
  /// Neighbouring outputs; the chunks of 4 lanes lie side by side.
  int64_t outputChunk;
  /// Lanes along outputs that are numbered before those along tokens: 2 or 1.
  int64_t innerOutputLanes = 1;

  int64_t getTokenOffset(int64_t i) const {
    return i / tokenChunk * 8 * tokenChunk + i % tokenChunk;
  }
  int64_t getOutputOffset(int64_t j) const {
    return j / outputChunk * 4 * outputChunk + j % outputChunk;
  }
};

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_LIB_PRODUCTS_SIMT_SIMTLAYOUT_H
