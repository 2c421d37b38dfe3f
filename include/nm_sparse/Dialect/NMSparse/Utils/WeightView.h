//===- WeightView.h - weights that are rearranged before use ----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_DIALECT_NMSPARSE_UTILS_WEIGHTVIEW_H
#define NM_SPARSE_DIALECT_NMSPARSE_UTILS_WEIGHTVIEW_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "nm_sparse/Dialect/NMSparse/IR/NMSparse.h"

namespace mlir::nm_sparse {

/// The value that another value rearranges, and how.
struct WeightView {
  Value weight;
  AffineMap map; ///< Dimensions of the value to those of the weight.
};

/// Returns the operand that `op` rearranges, if `op` is a transposition or a
/// broadcast, named or generic, a reshape that adds dimensions of size 1, or a
/// cast that changes nothing but the encoding and what is known about the
/// shape.
std::optional<WeightView> getRearrangement(Operation *op);

/// The encoded weight behind `value`, which it is itself, or a rearrangement of
/// any number of steps.
std::optional<WeightView> findWeight(Value value);

/// Returns true if `op` is a contraction or a convolution with an encoded
/// weight. The weight may be rearranged before.
bool hasEncodedWeight(linalg::LinalgOp op);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_DIALECT_NMSPARSE_UTILS_WEIGHTVIEW_H
