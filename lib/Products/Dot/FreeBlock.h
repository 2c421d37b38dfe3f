//===- FreeBlock.h - products of free elements ------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_PRODUCTS_DOT_FREEBLOCK_H
#define NM_SPARSE_LIB_PRODUCTS_DOT_FREEBLOCK_H

#include "nm_sparse/Dialect/NMTile/IR/NMTile.h"
#include "nm_sparse/Dialect/NMTile/Utils/IndexMath.h"

namespace mlir::nm_sparse {

/// Emits what a warp does with its share of a block of 32 outputs, whose free
/// elements are stored as docs/Encoding.md says: with every so many segments of
/// their values, a lane for each output.
class FreeBlock {
public:
  /// Adds the product of `weight` and the activations in `row` to the sums,
  /// unless the weight is +0: it may stand for an element that is dropped, and,
  /// where not `isWhole`, for a row that does not exist.
  using MultiplyFn = function_ref<void(Value weight, Value row, bool isWhole)>;

  /// `values` and `bits` are the components of the weight, whose block is the
  /// first one of `bits`, and which has `rows` rows. `multiply` changes `sums`.
  FreeBlock(OpBuilder &b, Location loc, Value values, Value bits, Value rows,
            Value lane, MutableArrayRef<Value> sums, MultiplyFn multiply);

  /// Registers of a thread, so that what it reads at once is there in time.
  static int64_t getRegisters(int64_t tokens);

  /// The segments `first`, `first` + `step` and so on, which are i32.
  void emit(Value first, Value step);

private:
  /// The data that gives the row from which a segment's first value starts.
  struct Start {
    Value base; ///< The least row of all lanes.
    Value word; ///< Has a byte that says how much later this lane starts.
  };

  Value loadWord(Value at, int64_t count = 1);
  /// Loads the start of `segment`. If it does not exist, the start of another
  /// segment is loaded.
  Start loadStart(Value segment);
  Value getRow(Start start);
  SmallVector<Value> loadPieces(Value first, int64_t count);
  /// Asks L2 for the bits of a segment.
  void emitPrefetch(Value start);
  Value getMask(bool isWhole);
  /// Multiplies a group of a piece by rows from `row` on, which moves.
  void addGroup(Value piece, int64_t first, bool isWhole);
  void addPiece(Value piece, bool isWhole);
  void emitSegment(Value segment);
  void waitFor(ArrayRef<Value> loaded);
  /// Pieces `begin` to `end` - 1.
  void emitPieces(Value begin, Value end, int64_t atOnce, bool isWhole);

  OpBuilder &b;
  Location loc;
  IndexMath math;
  Value values, bits, rows, lane;
  MutableArrayRef<Value> sums;
  MultiplyFn multiply;
  VectorType pieceType;
  int64_t pieceValues, segmentPieces;
  int64_t bitsWords;                           ///< Words of the block's bits.
  int64_t segments;                            ///< That it may have.
  Value firstPiece, wholePieces, pieces, zero; ///< Read from the header.
  Value row;     ///< Rows before it are done, as an i32.
  Value awaited; ///< No bits, as soon as pieces are there.
};

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_LIB_PRODUCTS_DOT_FREEBLOCK_H
