//===- QuoteName.h - names of strangers in messages -------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_SUPPORT_QUOTENAME_H
#define NM_SPARSE_SUPPORT_QUOTENAME_H

#include "llvm/ADT/StringRef.h"
#include <string>

namespace mlir::nm_sparse {

/// `name` in quotes, without characters that move the cursor of a terminal.
std::string quoteName(llvm::StringRef name);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_SUPPORT_QUOTENAME_H
