//===- PatchSlice.h - a part of the matrix of an image ----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_DIALECT_NMTILE_TRANSFORMS_TILING_PATCHSLICE_H
#define NM_SPARSE_LIB_DIALECT_NMTILE_TRANSFORMS_TILING_PATCHSLICE_H

#include "nm_sparse/Dialect/NMSparse/IR/NMSparse.h"

namespace mlir::nm_sparse {

/// A part of the matrix that nm_sparse.patches makes of an image.
struct PatchSlice {
  PatchesAttr patches;
  /// Where the batch comes first, the entry of it that the part is of.
  Value image;
  /// First row, first column, rows and columns.
  SmallVector<Value> slice;
};

/// The part that the activations of `op` are, if they are one that its kernel
/// can read where it lies: by a transfer, whose tokens are those of all entries
/// of a batch, or by a product with its weight in the code, which has those of
/// one entry, too. Null elsewhere.
PatchSlice findPatchSlice(OpBuilder &b, MatmulOp op);

/// Erases the slices that lead to `x`, and the patches, when nothing uses them:
/// what is left of them is computed.
void eraseUnusedPatches(RewriterBase &rewriter, Value x);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_LIB_DIALECT_NMTILE_TRANSFORMS_TILING_PATCHSLICE_H
