//===- TileDescriptor.h - tiles as products of warpgroups read them -*- C++
//-*-//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_PRODUCTS_TILEDESCRIPTOR_H
#define NM_SPARSE_LIB_PRODUCTS_TILEDESCRIPTOR_H

#include "mlir/IR/Builders.h"
#include "nm_sparse/Dialect/NMTile/IR/TileLayout.h"

namespace mlir::nm_sparse {

/// Makes the matrix descriptors of one tile in shared memory, stored as
/// TileLayout::SwizzledBlocks: blocks of columns, one after the other, of one
/// line of 128 bytes for each row.
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
  /// multiple of a line's elements.
  Value at(Value offset, int64_t k, int64_t other);

private:
  int64_t getLines(int64_t row, int64_t column) const {
    return column / lineElements * rows + row;
  }
  Value constant64(uint64_t v);

  OpBuilder &b;
  Location loc;
  bool alongRows;
  int64_t rows, lineElements;
  Value tile, base;
};

/// Makes the matrix descriptors of the values of a tile of bitmaps, stored as
/// TileLayout::CoreMatrices: outputs x values of an output.
class CoreMatrices {
public:
  CoreMatrices(OpBuilder &b, Location loc, Value values);

  /// Starts at output `first`, a multiple of 8.
  void startAt(Value first);

  /// From tile `number` along the contraction on, and `output` further, a
  /// multiple of 8.
  Value at(int64_t number, int64_t output);

private:
  OpBuilder &b;
  Location loc;
  Value tile, base;
  /// Words of 16 bytes of an output in a tile, and outputs.
  int64_t pieces, outputs;
};

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_LIB_PRODUCTS_TILEDESCRIPTOR_H
