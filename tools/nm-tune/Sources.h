//===- Sources.h - what nm-tune is given to tune ----------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_TOOLS_NM_TUNE_SOURCES_H
#define NM_SPARSE_TOOLS_NM_TUNE_SOURCES_H

#include "Options.h"

namespace mlir::nm_sparse {

/// Adds the products of the files, shapes and weights that `options` name.
llvm::Error addSources(const NmTuneOptions &options, TunableFinder &finder);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_TOOLS_NM_TUNE_SOURCES_H
