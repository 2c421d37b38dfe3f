//===- RowOrigin.h - where rows of activations begin ------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A caller's rows may lie at any distance; those of the program are aligned
// (--nm-sparse-align-rows). It changes no IR.
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_DIALECT_NMTILE_UTILS_ROWORIGIN_H
#define NM_SPARSE_DIALECT_NMTILE_UTILS_ROWORIGIN_H

#include "mlir/IR/BuiltinTypeInterfaces.h"
#include "nm_sparse/Dialect/NMTile/IR/NMTile.h"

namespace mlir::nm_sparse {

/// The origin of the rows of activations.
struct RowOrigin {
  /// The type whose last dimension is the distance between rows.
  ShapedType rows;
  /// The op that aligns the rows, if any.
  AlignRowsOp aligned;
  /// The program allocates them.
  bool isOwn;
  /// They begin inside of rows, or at places of a shape that is not known.
  bool isShifted;

  /// Follows the tensor `x` to what it is stored in.
  static RowOrigin find(Value x);

  /// Returns true if the rows may begin anywhere.
  bool isGiven() const { return (!isOwn && !aligned) || isShifted; }

  /// The power of two of bytes, at most 32, at whose multiples they begin in
  /// any case.
  int64_t getAlignment();
};

/// Returns true if the tensor memory accelerator can copy rows of `x`: they
/// begin at multiples of 16 bytes in a buffer that is known before the launch.
bool canCopyInBulk(Value x);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_DIALECT_NMTILE_UTILS_ROWORIGIN_H
