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
  PatchesOp op;
  SmallVector<OpFoldResult> offsets, sizes;
};

/// Which part `x` is, if it is one.
FailureOr<PatchSlice> findPatches(OpBuilder &b, Location loc, Value x);

/// Erases the slices that lead to `x`, and the patches, when nothing uses them:
/// what is left of them is computed.
void eraseUnusedPatches(RewriterBase &rewriter, Value x);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_LIB_DIALECT_NMTILE_TRANSFORMS_TILING_PATCHSLICE_H
