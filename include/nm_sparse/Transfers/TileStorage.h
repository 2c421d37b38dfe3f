//===- TileStorage.h - where elements of a tile lie -------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The layouts of tiles (SharedAttr), as index arithmetic on a buffer.
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_TRANSFERS_TILESTORAGE_H
#define NM_SPARSE_TRANSFERS_TILESTORAGE_H

#include "mlir/IR/Builders.h"
#include "nm_sparse/Dialect/NMTile/IR/TileLayout.h"

namespace mlir::nm_sparse {

class TileStorage {
public:
  /// Describes `tile`, a buffer in shared memory whose type has a layout. It
  /// may emit a view of the buffer at the builder's insertion point.
  TileStorage(OpBuilder &b, Location loc, Value tile);

  /// The buffer that getIndices is about.
  Value getBuffer() const { return buffer; }
  TileLayout getLayout() const { return layout; }

  /// Indices of element (`row`, `column`) of the tile, whose rows are those of
  /// all but its last dimension. Aligned words of 16 bytes of a row stay
  /// together. `swizzleRow` may be a row that differs from `row` by a multiple
  /// of 8, if that one is cheaper to find.
  SmallVector<Value> getIndices(OpBuilder &b, Location loc, Value row,
                                Value column, Value swizzleRow = {}) const;

private:
  TileLayout layout;
  Value buffer;
};

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_TRANSFERS_TILESTORAGE_H
