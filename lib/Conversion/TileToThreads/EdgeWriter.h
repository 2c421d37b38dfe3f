//===- EdgeWriter.h - writes where a buffer ends ----------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_CONVERSION_TILETOTHREADS_EDGEWRITER_H
#define NM_SPARSE_LIB_CONVERSION_TILETOTHREADS_EDGEWRITER_H

#include "FragmentStore.h"
#include "TileAccess.h"

#include "llvm/ADT/MapVector.h"

namespace mlir::nm_sparse {

/// Writes those elements of a tile that exist.
class EdgeWriter {
public:
  /// To be made where the code goes. `form` is how the tile is written where
  /// all of it exists. With `unties` the elements are copied first, see
  /// copyToAnyRegister. With `hasWholeRuns` no row ends inside of an access.
  EdgeWriter(const TileAccess &access, StoreForm form, bool unties,
             bool hasWholeRuns = false);

  /// Writes `runs`: as wide as they are where rows are aligned, and element by
  /// element where they are not.
  void write(ArrayRef<TileRun> runs, ValueRange scalars);
  /// As wide as they are; rows are aligned.
  void writeWide(ArrayRef<TileRun> runs, ValueRange scalars);

private:
  /// The access in which a row ends, as far as it is known, and how many
  /// elements of it exist. `at` is where the row begins.
  struct Tail {
    Value vector, count;
    SmallVector<Value> at;
    TileOffset offset;
    int64_t accesses = 0;
  };

  int64_t getOffset(TileOffset offset, unsigned side) const {
    return side ? offset.output : offset.token;
  }
  Value constant(int64_t v);
  /// i32: elements of the thread's part of the tile along `side`, less what
  /// they move; null where all exist.
  Value countLeft(unsigned side, Value shift);
  /// i1: `width` elements at `offset` along `side` exist; null where they are
  /// known to.
  Value exists(Value left, int64_t offset, int64_t width);
  /// Stores `vector` at `at`, which is in the row of `offset`.
  void storeIf(Value condition, Value vector, ArrayRef<Value> at,
               TileOffset offset);
  void writeElements(ArrayRef<TileRun> runs, ValueRange scalars);
  /// The thread's elements move by `shift` along memory, if it is not null.
  void writeVector(Value vector, TileOffset offset, Value shift);
  void addTail(Tail &tail, Value vector, TileOffset offset, Value isRow,
               Value left);
  void writeTail(const Tail &tail);

  ThreadLayout layout;
  TileAccess access;
  OpBuilder &b;
  Location loc;
  StoreForm form;
  bool unties;
  /// The side that is contiguous in memory.
  unsigned along;
  /// Elements in an access, and whether an access whose first element exists
  /// may be made: no row ends inside, or it ends in padding.
  int64_t width;
  bool isWhole;
  /// Accesses of a row that a thread makes in all.
  int64_t accessesOfRow;
  /// The results of countLeft for each side and shift.
  llvm::DenseMap<std::pair<unsigned, Value>, Value> known;
  /// The tail of each row of the thread, by the row's offset.
  llvm::MapVector<int64_t, Tail> tails;
};

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_LIB_CONVERSION_TILETOTHREADS_EDGEWRITER_H
