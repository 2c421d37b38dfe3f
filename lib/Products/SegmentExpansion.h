//===- SegmentExpansion.h - dense rows of a segment -------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_PRODUCTS_SEGMENTEXPANSION_H
#define NM_SPARSE_LIB_PRODUCTS_SEGMENTEXPANSION_H

#include "NibbleTable.h"
#include "nm_sparse/Dialect/NMTile/IR/Segment.h"

namespace mlir::nm_sparse {

/// Expands the values of a segment to its dense rows, in registers of two rows
/// of 16 bits or four of 8.
class SegmentExpansion {
public:
  /// `values` are registers of as many values, `words` bits of which the
  /// highest one of the first is that of the first row.
  SegmentExpansion(OpBuilder &b, Location loc, const Segment &segment,
                   ArrayRef<Value> values, ArrayRef<Value> words,
                   const NibbleTable &table);

  /// The register, an i32, that begins with `row`, a multiple of the rows of a
  /// register.
  Value getRows(int64_t row);

  /// The order in which the chunks of a segment keep the fewest registers.
  static SmallVector<int64_t> getChunkOrder(const Segment &segment);

private:
  /// Values of a span that are not expanded yet, seen from one of its ends. The
  /// next one is the lowest of the first register of the front, and the highest
  /// of that of the back.
  struct End {
    SmallVector<Value> queue;
    int64_t done = 0; ///< Registers of rows.
  };

  Value expandNext(int64_t span, bool isBack);
  SmallVector<Value> startQueue(int64_t span, bool isBack);
  void advance(End &end, Value by, bool isBack);
  Value getBits(int64_t row);
  Value shift(Value low, Value high, Value by, bool isBack);
  int64_t countRegisters(bool isBack) const;
  int64_t countNeeded(int64_t done, bool isBack) const;

  OpBuilder &b;
  Location loc;
  IndexMath math;
  Segment segment;
  int64_t perRegister;
  SmallVector<Value> values, words;
  const NibbleTable &table;
  llvm::SmallDenseMap<int64_t, Value> nibbles;
  SmallVector<Value> registers;
  SmallVector<std::array<End, 2>> spans;
};

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_LIB_PRODUCTS_SEGMENTEXPANSION_H
