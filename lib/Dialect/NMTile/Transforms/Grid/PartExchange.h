//===- PartExchange.h - parts of tiles in device memory ---------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Several CTAs that share the K loop of one tile hand their sums over in a
// workspace in device memory, and count themselves there. The last to arrive
// finds the parts of all others. It also resets the counter, so the kernel can
// be launched again on the same workspace.
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_DIALECT_NMTILE_TRANSFORMS_GRID_PARTEXCHANGE_H
#define NM_SPARSE_LIB_DIALECT_NMTILE_TRANSFORMS_GRID_PARTEXCHANGE_H

#include "mlir/IR/Builders.h"
#include "nm_sparse/Dialect/NMTile/IR/NMTile.h"

namespace mlir::nm_sparse {

class PartExchange {
public:
  /// Exchanges partial sums of tiles like the accumulator of `product`, `parts`
  /// for each tile. Emits at the insertion points of `b`; `emitBarrier` emits a
  /// barrier of the threads that hold the accumulator. With `inThreadOrder`, if
  /// the tile divides that way, each access of a warp is 512 contiguous bytes.
  PartExchange(OpBuilder &b, TileMatmulOp product, int64_t parts,
               bool inThreadOrder, std::function<void()> emitBarrier);

  /// On the host: the workspace and a zeroed counter for each of `tiles` tiles.
  void allocate(Value tiles);
  /// On the host.
  void release();

  void write(Value acc, Value tile, Value part);
  Value read(Value tile, Value part);
  /// The sum of two parts.
  Value addParts(Value a, Value c);

  /// The CTA has written its part of `tile`. i1, the same in all threads: it is
  /// the last.
  Value emitArrival(Value tile) { return emitCount(tile, 1); }
  /// As emitArrival, of a CTA that keeps its part: true if all others have
  /// arrived. If not, it has not arrived either.
  Value emitLateCheck(Value tile) { return emitCount(tile, 0); }

private:
  Value emitCount(Value tile, int64_t arrivals);
  Value constant(int64_t v);
  Value word(int64_t v);

  OpBuilder &b;
  Location loc;
  int64_t parts;
  bool inThreadOrder;
  std::function<void()> emitBarrier;
  VectorType type;
  bool tokensContiguous;
  /// From the coordinates (tile, part, row, column) of the workspace.
  AffineMap map;
  Value workspace, counters;
};

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_LIB_DIALECT_NMTILE_TRANSFORMS_GRID_PARTEXCHANGE_H
