//===- PatchSource.h - the image that patches are copied from ---*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_DIALECT_NMTILE_UTILS_PATCHSOURCE_H
#define NM_SPARSE_DIALECT_NMTILE_UTILS_PATCHSOURCE_H

#include "nm_sparse/Dialect/NMSparse/IR/NMSparse.h"

namespace mlir::nm_sparse {

/// Finds elements of the im2col matrix (nm_sparse.patches) in the image; with a
/// batch of matrices, in the first one. The place of an element is the sum of
/// two offsets: one for its row, which depends on the kept row alone, and one
/// for its token, which a thread computes once. Numbers are 32 bits wide if the
/// image spans less than 2^31 elements (`isFast`).
class PatchSource {
public:
  /// Reads from a buffer. Rows and tokens count from `firstRow` and
  /// `firstToken` on; null stands for the very first.
  PatchSource(OpBuilder &b, Location loc, PatchesAttr patches, Value image,
              Value firstRow, Value firstToken);

  /// Says if `width` tokens that start at a multiple of `width` are neighbours
  /// in the image (or rows, if tokens are the rows of the matrix). The first
  /// function answers by what is known statically, the second one returns an
  /// i1, or null if the first one says all.
  bool mayHaveRuns(int64_t width) const;
  Value hasRuns(OpBuilder &b, Location loc, int64_t width) const;

  /// Returns true if tokens are rows of the matrix.
  bool isTokenMajor() const { return patches.isTokenMajor(); }

  /// Elements from the start of the image, and its row and column. For a token,
  /// they may lie in front of the image.
  struct Part {
    Value place, y, x;
  };
  Part findRow(OpBuilder &b, Location loc, Value row, bool isFast) const;
  Part findToken(OpBuilder &b, Location loc, Value token, bool isFast) const;

  struct Element {
    /// In the flat image, as an index; any where it does not exist.
    Value place;
    /// i1; null where it always does.
    Value exists;
  };
  Element find(OpBuilder &b, Location loc, const Part &row, const Part &token,
               bool isFast) const;

  /// The place of a known row: its distance from the start of the image in
  /// elements, an index. Also an i1 that says if a token exists in it; null if
  /// all do.
  Value getPlace(OpBuilder &b, Location loc, PatchesAttr::Row row) const;
  Value isInside(OpBuilder &b, Location loc, PatchesAttr::Row row,
                 const Part &token, bool isFast) const;

private:
  PatchesAttr patches;
  int64_t channels, height, width;
  Value firstRow, firstToken, batch;
  /// Elements from one image, channel, row and column to the next.
  Value batchStride, channelStride, rowStride, columnStride;
};

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_DIALECT_NMTILE_UTILS_PATCHSOURCE_H
