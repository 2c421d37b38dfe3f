//===- HiddenIndex.h - indices that LLVM does not know ----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_DIALECT_NMTILE_UTILS_HIDDENINDEX_H
#define NM_SPARSE_DIALECT_NMTILE_UTILS_HIDDENINDEX_H

#include "mlir/IR/Builders.h"

namespace mlir::nm_sparse {

/// A 32-bit copy of `index` that is opaque to LLVM: computations on it stay
/// where they are and take no registers elsewhere, and a loop up to it is not
/// unrolled. For code of kernels alone.
Value hideIndex(OpBuilder &b, Location loc, Value index);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_DIALECT_NMTILE_UTILS_HIDDENINDEX_H
