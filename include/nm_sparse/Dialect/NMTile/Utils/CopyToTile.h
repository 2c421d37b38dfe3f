//===- CopyToTile.h - tiles of workgroup memory -----------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_DIALECT_NMTILE_UTILS_COPYTOTILE_H
#define NM_SPARSE_DIALECT_NMTILE_UTILS_COPYTOTILE_H

#include "nm_sparse/Dialect/NMTile/IR/NMTile.h"

namespace mlir::nm_sparse {

/// A new tile of shared memory, which lies in the order of `layout`.
Value allocTile(OpBuilder &b, Location loc, ArrayRef<int64_t> shape,
                Type element, TileLayout layout = TileLayout::Rows);

/// The layout in which the product reads a tile of `shape` of `operand`, and in
/// which its transfer fills it.
TileLayout chooseTileLayout(const PromotedOperand &operand,
                            ArrayRef<int64_t> shape);

/// Maps of a copy from (r, c) or, where `srcFirst` is 1, (c, r), and to the
/// same of `dstFirst`; null where both are the default.
ArrayAttr getTileMaps(OpBuilder &b, unsigned srcFirst, unsigned dstFirst);

/// `source` without its unit batch dimension `dim`; itself when `dim` is none.
Value dropBatch(OpBuilder &b, Location loc, Value source,
                std::optional<int64_t> dim);

/// A copy of `operand` in a new tile of `shape`, in the layout that the product
/// reads.
Value copyToTile(OpBuilder &b, PromotedOperand &operand,
                 ArrayRef<int64_t> shape);

/// A copy of `source` in a new tile of `shape`, row by row.
Value copyToTile(OpBuilder &b, Location loc, Value source,
                 ArrayRef<int64_t> shape);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_DIALECT_NMTILE_UTILS_COPYTOTILE_H
