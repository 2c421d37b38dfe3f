//===- Elementwise.h - what can be fused with a product ---------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_DIALECT_NMSPARSE_UTILS_ELEMENTWISE_H
#define NM_SPARSE_DIALECT_NMSPARSE_UTILS_ELEMENTWISE_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace mlir::nm_sparse {

/// True when `op` computes each element of its one result from one element of
/// each operand, with scalar code that also works on vectors: such an op can be
/// fused into a tiled matmul and becomes vector code there.
bool isFusableElementwise(linalg::LinalgOp op);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_DIALECT_NMSPARSE_UTILS_ELEMENTWISE_H
