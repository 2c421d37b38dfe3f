//===- CopyToTile.h - tiles of workgroup memory -----------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_DIALECT_NMTILE_UTILS_COPYTOTILE_H
#define NM_SPARSE_DIALECT_NMTILE_UTILS_COPYTOTILE_H

#include "nm_sparse/Dialect/NMTile/IR/NMTile.h"

namespace mlir::nm_sparse {

/// A new tile of workgroup memory.
Value allocTile(OpBuilder &b, Location loc, ArrayRef<int64_t> shape,
                Type element);

/// Maps of a copy from (r, c) or, where `srcFirst` is 1, (c, r), and to the
/// same of `dstFirst`; null where both are the default.
ArrayAttr getTileMaps(OpBuilder &b, unsigned srcFirst, unsigned dstFirst);

/// `source` without its unit batch dimension `dim`; itself when `dim` is none.
Value dropBatch(OpBuilder &b, Location loc, Value source,
                std::optional<int64_t> dim);

/// A copy of `source` in a new tile of `shape`; with `patches`, of the part
/// `slice` of the matrix that these make of the image `source`.
Value copyToTile(OpBuilder &b, Location loc, Value source,
                 ArrayRef<int64_t> shape, bool transposed = false,
                 PatchesAttr patches = {}, ValueRange slice = {});

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_DIALECT_NMTILE_UTILS_COPYTOTILE_H
