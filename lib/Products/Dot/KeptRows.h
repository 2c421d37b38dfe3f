//===- KeptRows.h - rows that the bits of an output name --------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_PRODUCTS_DOT_KEPTROWS_H
#define NM_SPARSE_LIB_PRODUCTS_DOT_KEPTROWS_H

#include "mlir/IR/Builders.h"
#include "nm_sparse/Dialect/NMTile/IR/Schedule.h"

namespace mlir::nm_sparse {

/// Takes the highest bit out of `mask`, an i32; its place, counted from there.
/// Where `mayBeEmpty`, a mask without bits stays one, and has no place.
Value takeHighestBit(OpBuilder &b, Location loc, Value &mask,
                     bool mayBeEmpty = false);

/// Walks over the kept rows of one output in a tile of a weight that is stored
/// as bitmaps: from the highest bit of a word down, without a branch where a
/// number of whole windows fits into a word.
class KeptRows {
public:
  /// `words` are those of the output, as i32.
  KeptRows(OpBuilder &b, Location loc, EncodingAttr encoding,
           ArrayRef<Value> words);

  /// Rows of the whole windows that fit into a word, which make a group; 0
  /// where windows are longer.
  int64_t getGroupRows() const { return groupRows; }
  int64_t getGroupOf(int64_t value) const { return value / groupValues; }

  /// The next kept row, as an i32: of its group, or of the tile where there are
  /// no groups. Called once for each value.
  Value next();

private:
  Value constant(int64_t value);
  /// The word whose first bit is that of `row`.
  Value getWordAt(int64_t row);
  Value nextOfGroup();
  Value nextOfWords();
  void selectWord(int64_t most);
  void searchWord(int64_t most);

  OpBuilder &b;
  Location loc;
  SmallVector<Value> words;
  /// Rows and values of the whole windows that fit into a word, or 0.
  int64_t groupRows, groupValues;
  int64_t windowRows, windowValues;
  int64_t taken = 0;
  Value mask;
  /// Where windows are longer than a word: the word that mask is left of.
  Value word;
  int64_t least = 0; ///< The first that it can be.
};

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_LIB_PRODUCTS_DOT_KEPTROWS_H
