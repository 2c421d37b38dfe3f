//===- PatchSource.h - the image that patches are copied from ---*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_DIALECT_NMTILE_UTILS_PATCHSOURCE_H
#define NM_SPARSE_DIALECT_NMTILE_UTILS_PATCHSOURCE_H

#include "nm_sparse/Dialect/NMSparse/IR/NMSparse.h"

namespace mlir::nm_sparse {

/// Finds elements of the matrix that nm_sparse.patches makes of an image in the
/// image; of a batch of matrices, in the first one. Where an element lies is
/// the sum of what its row says, which depends on the kept row alone, and what
/// its token says, which a thread finds once. Numbers are words where the image
/// spans less than 2^31 elements (`isFast`).
class PatchSource {
public:
  /// Of a buffer; rows and tokens count from `firstRow` and `firstToken` on,
  /// which may be null for the first of all.
  PatchSource(OpBuilder &b, Location loc, PatchesAttr patches, Value image,
              Value firstRow, Value firstToken);

  /// Whether so many tokens, or rows where tokens are rows of the matrix, from
  /// a multiple on, are neighbours in the image: by what is known, and i1, null
  /// where that says all.
  bool mayHaveRuns(int64_t width) const;
  Value hasRuns(OpBuilder &b, Location loc, int64_t width) const;

  /// Whether tokens are rows of the matrix.
  bool isTokenMajor() const { return patches.isTokenMajor(); }

  /// Elements from the start of the image, and its row and column. Of a token,
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

  /// Of a row that is known: elements, an index, from the start of the image;
  /// and whether a token exists in it, i1, null where all do.
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
