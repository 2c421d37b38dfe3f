//===- MakeError.h - errors with formatted text -----------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_SUPPORT_MAKEERROR_H
#define NM_SPARSE_SUPPORT_MAKEERROR_H

#include "llvm/Support/Error.h"
#include "llvm/Support/FormatVariadic.h"

namespace mlir::nm_sparse {

/// Returns an error whose text llvm::formatv makes of `format` and `args`.
template <typename... Args>
llvm::Error makeError(const char *format, Args &&...args) {
  return llvm::createStringError(
      llvm::formatv(format, std::forward<Args>(args)...).str());
}

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_SUPPORT_MAKEERROR_H
