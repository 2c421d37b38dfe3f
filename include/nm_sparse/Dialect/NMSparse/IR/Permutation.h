//===- Permutation.h - what ops with a permutation have in common -*- C++ -*-=//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_DIALECT_NMSPARSE_IR_PERMUTATION_H
#define NM_SPARSE_DIALECT_NMSPARSE_IR_PERMUTATION_H

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Operation.h"
#include <optional>

namespace mlir::nm_sparse {

/// Checks that `perm` is a permutation of dimension `dim` of `source` or, with
/// `batch`, one permutation for each entry of that dimension. Emits an error on
/// `op` that names the mistake.
LogicalResult verifyPermutation(Operation *op, ShapedType source,
                                ShapedType perm, int64_t dim,
                                std::optional<int64_t> batch);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_DIALECT_NMSPARSE_IR_PERMUTATION_H
