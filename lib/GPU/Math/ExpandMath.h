//===- ExpandMath.h - math functions in terms of others ---------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_GPU_MATH_EXPANDMATH_H
#define NM_SPARSE_LIB_GPU_MATH_EXPANDMATH_H

#include "mlir/IR/Operation.h"

namespace mlir::nm_sparse {

/// Rewrites functions below `root` that have neither an instruction nor a
/// polynomial in terms of those that do.
void expandMath(Operation *root);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_LIB_GPU_MATH_EXPANDMATH_H
