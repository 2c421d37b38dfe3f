//===- TransposedAccess.h - fragments across memory -------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Where the columns of fragments lie along memory, a thread has single elements
// of each row there. movmatrix transposes 8 x 8 16-bit elements of a warp at a
// time: a word then holds two neighbours, and what a warp accesses at once are
// four whole sectors.
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_CONVERSION_TILETOTHREADS_TRANSPOSEDACCESS_H
#define NM_SPARSE_LIB_CONVERSION_TILETOTHREADS_TRANSPOSEDACCESS_H

#include "TileAccess.h"

#include "mlir/Dialect/LLVMIR/LLVMTypes.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

namespace mlir::nm_sparse {

/// The access of all elements of a tile of fragments of 16-bit elements. All
/// threads of a warp make it together.
class TransposedAccess {
public:
  explicit TransposedAccess(TileAccess &access);

  /// Stores the elements of the thread, of a tile that exists as a whole.
  void store(ValueRange scalars);
  /// As store, of a tile at an edge, of each of whose pairs all elements exist
  /// or none does.
  void storeExisting(ValueRange scalars);
  /// The elements of the thread, of a tile that exists as a whole.
  SmallVector<Value> load();
  /// As load, of a tile at an edge, with `padding` where none is.
  SmallVector<Value> loadExisting(Value padding);

private:
  /// The word that the lane stores for the pair of element `e`.
  Value makeWord(ValueRange scalars, int64_t e);
  /// The elements whose words, each of the pair of element `e`, the lanes load
  /// so.
  SmallVector<Value> loadWords(function_ref<Value(int64_t e)> loadWord);
  Value loadWord(Value pointer);
  /// The indices of what getPointer points to.
  SmallVector<Value> getIndices(int64_t e);
  Value getAddress(ArrayRef<Value> place);
  Value constant(int64_t v);
  Value mul(Value a, int64_t v);
  /// The address of the word that the lane accesses for the pair of element
  /// `e`, the next in order.
  Value getPointer(int64_t e);

  TileAccess &access;
  OpBuilder &b;
  Location loc;
  Type element;
  VectorType wordType, pairType;
  LLVM::LLVMPointerType pointerType;
  int64_t bytes;
  /// The side along which the rows of fragments lie, 0 tokens or 1 outputs.
  unsigned row;
  memref::ExtractStridedMetadataOp metadata;
  Value base;
  /// Bytes from a column to the next, and to the eighth behind it.
  Value one, eight;
  /// The lane adds these to its row and column.
  Value rowShift, columnShift;
  /// The last address of even, and of odd, columns.
  Value pointers[2];
};

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_LIB_CONVERSION_TILETOTHREADS_TRANSPOSEDACCESS_H
