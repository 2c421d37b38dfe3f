//===- ClusterPieces.h - who adds which piece of a tile ---------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Under `split_k = S, in_cluster = true`, the S CTAs of a cluster have a share
// each of the sum of one tile, and leave it in their own shared memory. Each
// then adds the shares of its piece, some rows of the tile, which it reads from
// all S.
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_DIALECT_NMTILE_IR_CLUSTERPIECES_H
#define NM_SPARSE_DIALECT_NMTILE_IR_CLUSTERPIECES_H

#include "nm_sparse/Dialect/NMTile/IR/Schedule.h"

namespace mlir::nm_sparse {

/// Sums have elements of four bytes; this many lie in one access of a thread.
inline constexpr int64_t kPieceAccess = 4;

struct ClusterPieces {
  /// The pieces of a tile of `schedule`, whose rows are tokens or, where
  /// neighbouring tokens lie side by side in the result, outputs.
  ClusterPieces(ScheduleAttr schedule, bool tokensContiguous);

  /// Returns true if each CTA has rows of the tile to add up.
  bool haveRows() const { return rows * (ctas - 1) < tileRows; }
  /// Bytes of shared memory for the share of a CTA.
  int64_t getBytes() const { return tileRows * pitch * 4; }

  int64_t ctas;
  /// Rows of a piece. The last pieces may end behind the tile, or begin there:
  /// their CTAs add up other rows instead, and write nothing.
  int64_t rows;
  /// Rows and columns of the tile.
  int64_t tileRows, columns;
  /// Elements from one row of a share to the next, such that the rows of a
  /// fragment lie in different banks.
  int64_t pitch;
};

/// The layout in which `threads` threads hold a piece: neighbours have
/// neighbouring columns.
AccumulatorAttr layOutPiece(MLIRContext *context, int64_t rows, int64_t columns,
                            int64_t threads, bool tokensContiguous);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_DIALECT_NMTILE_IR_CLUSTERPIECES_H
