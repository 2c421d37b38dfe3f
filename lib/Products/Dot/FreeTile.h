//===- FreeTile.h - products of free elements -------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_PRODUCTS_DOT_FREETILE_H
#define NM_SPARSE_LIB_PRODUCTS_DOT_FREETILE_H

#include "nm_sparse/Dialect/NMTile/IR/NMTile.h"
#include "nm_sparse/Dialect/NMTile/Utils/IndexMath.h"

namespace mlir::nm_sparse {

/// Emits what a warp does with a tile of free elements. Each lane walks over
/// the bits of its output, a piece of four values at a time: first over those
/// that all lanes have, which lie side by side, then over the others, of which
/// each lane finds its own by a vote.
class FreeTile {
public:
  /// Adds the product of `weight` and the activations in `row` to the sums.
  using MultiplyFn = function_ref<void(Value weight, Value row)>;

  /// `values` and `bits` are the components of the weight, `tile` is the number
  /// of the tile among those of `bits`. `multiply` changes `sums`.
  FreeTile(OpBuilder &b, Location loc, Value values, Value bits, Value tile,
           Value lane, MutableArrayRef<Value> sums, MultiplyFn multiply);

  void emit();

private:
  using BodyFn = function_ref<void(Value piece)>;

  Value loadWord(Value at);
  Value countValues();
  Value loadPiece(Value piece);
  /// The bits of the 32 rows from `from` on; those past the tile are arbitrary.
  Value getBitsFrom(Value from);
  /// The next row that is kept, of which there must be one.
  Value nextRow();
  /// The next rows, as many as a piece has values, counted from `from`, which
  /// stays.
  SmallVector<Value> nextPlaces();
  /// Adds value `i` of a piece in row `start` + `place` of the tile.
  void addValue(Value piece, int64_t i, Value start, Value place);
  void addPiece(Value piece);
  void emitPrefetch(Value count);
  void emitWholePieces(Value count);
  void emitOtherPieces(Value count, Value begin, Value end);
  void emitRests(Value count);

  /// The position in the tile and the rest, then the sums.
  SmallVector<Value> getState() const;
  void setState(ValueRange state);
  void emitLoop(Value begin, Value end, int64_t step, BodyFn body);
  void emitIf(Value condition, function_ref<void()> emitThen);

  OpBuilder &b;
  Location loc;
  IndexMath math;
  Value values, bits, tile, lane;
  MutableArrayRef<Value> sums;
  MultiplyFn multiply;
  Value from;      ///< Rows before it are done, as an i32.
  Value nextPiece; ///< Where the next pieces of all lanes begin.
  Value rest;      ///< The last piece, where it has fewer values.
};

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_LIB_PRODUCTS_DOT_FREETILE_H
