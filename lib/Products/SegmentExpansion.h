//===- SegmentExpansion.h - dense rows of a segment -------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_PRODUCTS_SEGMENTEXPANSION_H
#define NM_SPARSE_LIB_PRODUCTS_SEGMENTEXPANSION_H

#include "nm_sparse/Dialect/NMTile/IR/Segment.h"
#include "nm_sparse/Dialect/NMTile/Utils/IndexMath.h"

namespace mlir::nm_sparse {

/// The bits of all numbers of four bits, a number in each lane of a half warp.
class NibbleTable {
public:
  NibbleTable(OpBuilder &b, Location loc, Value lane);

  /// Returns the low four bits of `number` in each lane as bytes, the lowest
  /// bit in the lowest byte.
  Value getBits(OpBuilder &b, Location loc, Value number) const;

private:
  Value bytes;
};

/// Expands the values of a segment to its dense rows, two of 16 bits to a
/// register.
class SegmentExpansion {
public:
  /// `values` are registers of two values each, `words` bits of which the
  /// highest one of the first is that of the first row.
  SegmentExpansion(OpBuilder &b, Location loc, const Segment &segment,
                   ArrayRef<Value> values, ArrayRef<Value> words,
                   const NibbleTable &table);

  /// Rows `row` and `row + 1`, an even one and the next, as an i32.
  Value getPair(int64_t row);

  /// The order in which the chunks of a segment keep the fewest registers.
  static SmallVector<int64_t> getChunkOrder(const Segment &segment);

private:
  /// Values of a span that are not expanded yet, seen from one of its ends. The
  /// next one is the low half of the first register of the front, and the high
  /// half of that of the back.
  struct End {
    SmallVector<Value> queue;
    int64_t done = 0; ///< Pairs of rows.
  };

  Value expandNext(int64_t span, bool isBack);
  SmallVector<Value> startQueue(int64_t span, bool isBack);
  void advance(End &end, Value bits, bool isUpper, bool isBack);
  Value getNibble(int64_t row);
  Value shift(Value low, Value high, Value by, bool isBack);
  Value addBits(Value bits, bool isUpper, int64_t first, int64_t second,
                int64_t start);
  int64_t getPairs(bool isBack) const;
  int64_t countNeeded(int64_t done, bool isBack) const;

  OpBuilder &b;
  Location loc;
  IndexMath math;
  Segment segment;
  SmallVector<Value> values, words;
  const NibbleTable &table;
  llvm::SmallDenseMap<int64_t, Value> nibbles;
  SmallVector<Value> pairs;
  SmallVector<std::array<End, 2>> spans;
};

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_LIB_PRODUCTS_SEGMENTEXPANSION_H
