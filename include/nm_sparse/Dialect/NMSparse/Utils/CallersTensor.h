//===- CallersTensor.h - tensors that callers pass --------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_DIALECT_NMSPARSE_UTILS_CALLERSTENSOR_H
#define NM_SPARSE_DIALECT_NMSPARSE_UTILS_CALLERSTENSOR_H

#include "mlir/IR/Value.h"

namespace mlir::nm_sparse {

/// The tensor of a caller that `value` is, as it is or under another type or
/// shape; null when the program makes it.
Value getCallersTensor(Value value);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_DIALECT_NMSPARSE_UTILS_CALLERSTENSOR_H
