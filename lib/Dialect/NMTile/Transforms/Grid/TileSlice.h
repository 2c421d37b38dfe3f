//===- TileSlice.h - the same operations on a piece of a tile ---*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_DIALECT_NMTILE_TRANSFORMS_GRID_TILESLICE_H
#define NM_SPARSE_LIB_DIALECT_NMTILE_TRANSFORMS_GRID_TILESLICE_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/VectorInterfaces.h"

namespace mlir::nm_sparse {

/// Rewrites operations on vectors of a tile's shape as ones on a piece of it.
class TileSlice {
public:
  /// `size` elements along dimension `dim` of `tile`, from `offset` on. A piece
  /// that `goesBeyond` the tile reads padding there, and writes nothing.
  TileSlice(OpBuilder &b, VectorType tile, unsigned dim, int64_t size,
            Value offset, bool goesBeyond)
      : b(b), tile(tile), dim(dim), size(size), offset(offset),
        goesBeyond(goesBeyond) {}

  /// Fails, with an error at `op`, where an operation that takes or makes a
  /// vector of the tile's shape is none that can be rewritten.
  static LogicalResult check(Operation *op, VectorType tile);

  /// `value` as the piece `piece`.
  void map(Value value, Value piece) { pieces.map(value, piece); }

  /// The piece of `value`. What makes it is made again, for the piece.
  Value slice(Value value);

  /// `op`, which takes or makes tiles, for the piece. Erases nothing.
  void rewrite(Operation *op);

  /// Returns true if `op` takes or makes vectors of the shape of `tile`.
  static bool isOfTile(Operation *op, VectorType tile);

private:
  Type getPieceType(Type type) const;
  void moveTransfer(VectorTransferOpInterface transfer);

  OpBuilder &b;
  VectorType tile;
  unsigned dim;
  int64_t size;
  Value offset;
  bool goesBeyond;
  IRMapping pieces;
};

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_LIB_DIALECT_NMTILE_TRANSFORMS_GRID_TILESLICE_H
