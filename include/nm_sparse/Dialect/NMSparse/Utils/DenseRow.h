//===- DenseRow.h - from kept rows to rows of the weight --------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_DIALECT_NMSPARSE_UTILS_DENSEROW_H
#define NM_SPARSE_DIALECT_NMSPARSE_UTILS_DENSEROW_H

#include "nm_sparse/Dialect/NMSparse/IR/NMSparse.h"

namespace mlir::nm_sparse {

/// Builds the code that finds where a kept row of a level lies in the array
/// that the level packs (`docs/Encoding.md`):
///   block = row / bk, window = block / n * m
///   (window + position) * bk + row % bk
/// with the position in its window that the index has for that block.
class DenseRow {
public:
  DenseRow(OpBuilder &b, Location loc, const SparsityLevel &level)
      : b(b), loc(loc), level(level) {}

  /// The block, which is the row of the index, that kept row `row` is in.
  Value getBlock(Value row) const;
  /// The first block of the window that contains kept block `block`.
  Value getWindow(Value block) const;
  /// The row for `row`, whose block has that position in the window that begins
  /// with block `window`: an element of the index, of its own type or an index.
  Value get(Value row, Value window, Value position) const;

private:
  Value constant(int64_t value) const;
  Value divide(Value value, int64_t by) const;

  OpBuilder &b;
  Location loc;
  SparsityLevel level;
};

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_DIALECT_NMSPARSE_UTILS_DENSEROW_H
