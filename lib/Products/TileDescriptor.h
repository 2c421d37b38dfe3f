//===- TileDescriptor.h - tiles as products of warpgroups read them -*- C++
//-*-//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_PRODUCTS_TILEDESCRIPTOR_H
#define NM_SPARSE_LIB_PRODUCTS_TILEDESCRIPTOR_H

#include "mlir/IR/Builders.h"
#include "nm_sparse/Dialect/NMSparse/IR/TileLayout.h"

namespace mlir::nm_sparse {

/// Makes the matrix descriptors of one tile in shared memory, stored as
/// TileLayout::SwizzledBlocks: blocks of 64 columns, one after the other, of
/// one line of 128 bytes for each row.
class TileDescriptor {
public:
  /// `alongRows`: the contraction lies along the rows of the tile ("K-major"),
  /// else along its columns.
  TileDescriptor(OpBuilder &b, Location loc, Value tile, bool alongRows);

  /// Starts at place `first` of the dimension that is not contracted, a
  /// multiple of 64.
  void startAt(Value first);

  /// From step `k` of the contraction on, and from place `other` of the other
  /// dimension, a multiple of 64.
  Value at(int64_t k, int64_t other) { return at(Value(), k, other); }

  /// As above, `offset` steps further, a value known at run time; along rows a
  /// multiple of 64.
  Value at(Value offset, int64_t k, int64_t other);

private:
  int64_t getLines(int64_t row, int64_t column) const {
    return column / kSwizzledColumns * rows + row;
  }
  Value constant(int64_t v);
  Value constant64(uint64_t v);

  OpBuilder &b;
  Location loc;
  bool alongRows;
  int64_t rows;
  Value tile, base;
};

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_LIB_PRODUCTS_TILEDESCRIPTOR_H
