//===- PackedWeight.h - the weight of nm_sparse.matmul ----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_DIALECT_NMSPARSE_IR_PACKEDWEIGHT_H
#define NM_SPARSE_LIB_DIALECT_NMSPARSE_IR_PACKEDWEIGHT_H

#include "nm_sparse/Dialect/NMSparse/IR/NMSparse.h"

namespace mlir::nm_sparse {

/// Checks that `op` has an inner index exactly where its encoding has an inner
/// level, and, in the canonical form, the type of it.
LogicalResult verifyInnerIndex(MatmulOp op);

/// Checks the components of the weight of `op`, whose ranks and element types
/// are right, against each other, against x and against the result.
LogicalResult verifyPackedWeight(MatmulOp op);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_LIB_DIALECT_NMSPARSE_IR_PACKEDWEIGHT_H
