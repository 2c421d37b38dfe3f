//===- SparseTensorEncoding.h - encodings of upstream -----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_CONVERSION_SPARSETENSORENCODING_H
#define NM_SPARSE_CONVERSION_SPARSETENSORENCODING_H

#include "mlir/IR/Operation.h"

namespace mlir::nm_sparse {

/// Replaces `#sparse_tensor.encoding` with `structured[n, m]` by our encoding,
/// in all types and constants of `root` and below, and `sparse_tensor.convert`
/// by `tensor.cast`. Any other encoding is an error, because bufferization
/// would drop it.
LogicalResult replaceSparseTensorEncodings(Operation *root);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_CONVERSION_SPARSETENSORENCODING_H
