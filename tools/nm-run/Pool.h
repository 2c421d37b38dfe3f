//===- Pool.h - runs in a pool of processes ---------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_TOOLS_NM_RUN_POOL_H
#define NM_SPARSE_TOOLS_NM_RUN_POOL_H

#include "Options.h"
#include <vector>

namespace mlir::nm_sparse {

struct PoolResults {
  /// The reports, in the order of the runs, with their `arguments`; `error` in
  /// place of a report that could not be made. Without runs that were not begun
  /// in time.
  llvm::json::Array reports;
  size_t done, failed, errors;
};

/// Does `runs`, which `texts` say for people, in processes of their own, as
/// many at a time and with the limits that `options` say. Prints each when it
/// is done.
PoolResults runPool(const RunOptions &options, std::vector<RunOptions> runs,
                    std::vector<std::string> texts);

/// Writes the reports behind `header` where `options` ask for JSON. Returns the
/// exit status.
int finishPool(const RunOptions &options, llvm::json::Object header,
               PoolResults pool);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_TOOLS_NM_RUN_POOL_H
