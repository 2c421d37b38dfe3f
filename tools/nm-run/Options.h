//===- Options.h - command line of nm-run -----------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_TOOLS_NM_RUN_OPTIONS_H
#define NM_SPARSE_TOOLS_NM_RUN_OPTIONS_H

#include "nm_sparse/Execution/Run.h"

namespace mlir::nm_sparse {

struct RunOptions {
  RunRequest request;
  std::string json;
  std::string batch;
  /// First and last number of tokens of a sweep.
  std::optional<std::pair<int64_t, int64_t>> sweep;
  int64_t jobs = 1;
  int64_t timeout = 120;
  int64_t deadline = 0;
  bool probe = false;
  bool printEmulated = false;
  bool help = false;
  bool version = false;
};

/// Usage errors are one sentence.
llvm::Expected<RunOptions> parseRunOptions(ArrayRef<const char *> arguments);

/// Runs each line of `options.batch` (the arguments of one nm-run) in a pool of
/// processes. Returns the exit status.
int runBatch(const RunOptions &options, llvm::json::Object header);

/// Times `options.request` for numbers of tokens from the first to the last of
/// `options.sweep`, and prints a table of them. Returns the exit status.
int runSweep(const RunOptions &options, llvm::json::Object header);

/// Writes `value` to `path` at once or not at all.
llvm::Error writeJSON(StringRef path, llvm::json::Value value);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_TOOLS_NM_RUN_OPTIONS_H
