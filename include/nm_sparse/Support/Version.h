//===- Version.h - what --version prints ------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_SUPPORT_VERSION_H
#define NM_SPARSE_SUPPORT_VERSION_H

#include "nm_sparse/Commit.h"
#include "nm_sparse/Version.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/Support/FormatVariadic.h"
#include <string>

namespace mlir::nm_sparse {

/// One line about this build of `tool`.
inline std::string describeVersion(llvm::StringRef tool) {
  return llvm::formatv("{0} of nm_sparse {1}, commit {2}, LLVM {3}\n", tool,
                       NM_SPARSE_VERSION, NM_SPARSE_COMMIT,
                       LLVM_VERSION_STRING);
}

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_SUPPORT_VERSION_H
