//===- WarpProduct.h - products of warps as PTX -----------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The dialects have no products of dense 8-bit floats, and want fewer registers
// of sparse ones than these have.
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_PRODUCTS_WARPPRODUCT_H
#define NM_SPARSE_LIB_PRODUCTS_WARPPRODUCT_H

#include "mlir/IR/Builders.h"
#include "nm_sparse/Dialect/NMTile/IR/ElementFormat.h"

namespace mlir::nm_sparse {

/// The registers of a product of a warp.
struct WarpOperands {
  ArrayRef<Value> a, b;
  /// Which columns a sparse A has; null of a dense one.
  Value metadata = {};
};

/// Emits `instruction` of elements of `format`, which adds the product of
/// `operands` to `sums`.
void emitWarpProduct(OpBuilder &b, Location loc, const ElementFormat &format,
                     const MatrixInstruction &instruction,
                     const WarpOperands &operands, MutableArrayRef<Value> sums);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_LIB_PRODUCTS_WARPPRODUCT_H
