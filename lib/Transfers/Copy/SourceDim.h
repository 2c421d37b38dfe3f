//===- SourceDim.h - where a dimension of a tile comes from -----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_TRANSFERS_COPY_SOURCEDIM_H
#define NM_SPARSE_LIB_TRANSFERS_COPY_SOURCEDIM_H

#include "nm_sparse/Dialect/NMTile/IR/NMTile.h"

namespace mlir::nm_sparse {

/// Where an index of the destination lies in the source.
struct SourceIndex {
  Value position;
  /// i1; null where it always exists.
  Value exists;
};

/// The same as a sum: of what several indices of the destination have in
/// common, what is looked up for each (null for nothing), and a constant.
struct SourceTerms {
  Value common, found;
  int64_t offset;
  Value exists;
};

/// Maps the indices of one dimension of the destination to those of a dimension
/// of the source.
class SourceDim {
public:
  virtual ~SourceDim() = default;
  /// Neighbours in the destination are neighbours in the source.
  virtual bool isPlain() const = 0;
  /// Largest number of indices of the destination, from a multiple of it on,
  /// whose sources are neighbours.
  virtual int64_t getRun() const = 0;
  virtual SourceIndex find(OpBuilder &b, Location loc, Value index) const = 0;
  /// Splits `first` + `offset`, if `first` is less than `below` and `offset` is
  /// a multiple of it. For sources whose positions fit in 31 bits.
  virtual SourceTerms split(OpBuilder &b, Location loc, Value first,
                            int64_t below, int64_t offset) const;
  /// Counts the `width` neighbours from `found` on, a multiple of `width`, that
  /// exist; null if all of them do. For sources whose positions fit in 31 bits.
  Value count(OpBuilder &b, Location loc, const SourceIndex &found,
              int64_t width) const;

protected:
  /// Extent of the dimension of the source; null where all that is asked for
  /// lies inside.
  virtual Value getExtent() const = 0;
};

/// Index i of the destination is index i of the source.
class PlainDim : public SourceDim {
public:
  /// A null `extent` says that the source has all indices.
  explicit PlainDim(Value extent) : extent(extent) {}

  bool isPlain() const override { return true; }
  int64_t getRun() const override { return int64_t(1) << 62; }
  SourceIndex find(OpBuilder &b, Location loc, Value index) const override;

protected:
  Value getExtent() const override { return extent; }

private:
  Value extent;
};

/// The tiles of a component of bitmaps, of one block of outputs after the
/// other.
class StoredDim : public SourceDim {
public:
  /// Describes a copy of rank 3.
  StoredDim(OpBuilder &b, AsyncCopyOp op);

  bool isPlain() const override { return false; }
  int64_t getRun() const override { return 1; }
  SourceIndex find(OpBuilder &b, Location loc, Value row) const override;

protected:
  /// No row is part of a chunk.
  Value getExtent() const override { return Value(); }

private:
  /// Tiles of a block in the destination.
  int64_t tiles;
  /// Tiles from one block of the source to the next.
  Value blockTiles;
  /// Extents of the source; null where it has all blocks, and all tiles.
  Value sourceBlocks, sourceTiles;
};

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_LIB_TRANSFERS_COPY_SOURCEDIM_H
