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

/// What a value is another arrangement of.
struct WeightView {
  Value weight;
  AffineMap map; ///< Dimensions of the value to those of the weight.
};

/// What the result of `op` arranges anew: the operand of a transposition or a
/// broadcast, named or generic, of a reshape that adds dimensions of size 1, or
/// of a cast that changes nothing but the encoding and what is known of the
/// shape.
std::optional<WeightView> getRearrangement(Operation *op);

/// The encoded weight behind `value`, which it is itself, or a rearrangement of
/// any number of steps.
std::optional<WeightView> findWeight(Value value);

/// Whether `op` is a contraction with an encoded weight, also one that is
/// rearranged before, or a convolution with one.
bool hasEncodedWeight(linalg::LinalgOp op);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_DIALECT_NMSPARSE_UTILS_WEIGHTVIEW_H
