//===- Databases.h - databases that are merged or verified ------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_TOOLS_NM_TUNE_DATABASES_H
#define NM_SPARSE_TOOLS_NM_TUNE_DATABASES_H

#include "Options.h"

namespace mlir::nm_sparse {

/// Makes one database of those that `options` name, the file --database among
/// them if there is one.
llvm::Error mergeDatabases(const NmTuneOptions &options);

/// Compiles the entries of --database again, and prints what is wrong with
/// some. True if nothing is, or it was taken out.
llvm::Expected<bool> verifyDatabase(const NmTuneOptions &options);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_TOOLS_NM_TUNE_DATABASES_H
