//===- Buffers.h - buffers behind views -------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_DIALECT_NMSPARSE_UTILS_BUFFERS_H
#define NM_SPARSE_DIALECT_NMSPARSE_UTILS_BUFFERS_H

#include "mlir/IR/Value.h"

namespace mlir::nm_sparse {

/// The buffer that `value`, a view or a buffer, is in; `value` itself when it
/// is no memref.
Value getBufferOf(Value value);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_DIALECT_NMSPARSE_UTILS_BUFFERS_H
