//===- Json.h - JSON of strangers -------------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_SUPPORT_JSON_H
#define NM_SPARSE_SUPPORT_JSON_H

#include "llvm/Support/JSON.h"

namespace mlir::nm_sparse {

/// Parses an object. Unlike json::parse alone it refuses nesting that is too
/// deep for the stack, and duplicate names, of which one would be lost. Errors
/// begin with `path` and name `what`, a part of it.
llvm::Expected<llvm::json::Object>
parseObject(llvm::StringRef text, llvm::StringRef path, llvm::StringRef what);

/// Reads a file of that kind, which must be small: an index or a config.
llvm::Expected<llvm::json::Object> readObject(llvm::StringRef path,
                                              llvm::StringRef what);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_SUPPORT_JSON_H
