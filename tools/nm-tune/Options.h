//===- Options.h - command line of nm-tune ----------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_TOOLS_NM_TUNE_OPTIONS_H
#define NM_SPARSE_TOOLS_NM_TUNE_OPTIONS_H

#include "nm_sparse/Checkpoint/LinearLayers.h"
#include "nm_sparse/Execution/Request/RunRequest.h"
#include "nm_sparse/Tuner/Tune.h"

namespace mlir::nm_sparse {

struct NmTuneOptions {
  TuneOptions search;
  std::vector<std::string> files; ///< Programs; with `merges`, databases.
  std::vector<LayerShape> shapes; ///< Their type is set by `type`.
  std::string encoding; ///< Between the brackets of one; may be empty.
  const StoredType *type = nullptr;
  std::string checkpoint;
  std::vector<std::string> weights; ///< Patterns of names; none: all.
  SmallVector<int64_t> tokens;      ///< None: those that programs have.
  std::string gpu;                  ///< Empty: the one that there is.
  std::string objective = "time";
  std::string lock; ///< A file; empty: the GPU belongs to this search.
  Device device = Device::CUDA;
  int64_t jobs = 0; ///< Threads that compile; 0: one for each core.
  int64_t sampleMs = 400;
  uint64_t seed = 0;
  bool showsTimes = false; ///< Of the parts of the search.
  bool lists = false, merges = false, verifies = false, prunes = false;
  bool help = false, version = false;
};

/// Usage errors are one sentence.
llvm::Expected<NmTuneOptions>
parseTuneOptions(ArrayRef<const char *> arguments);

/// The text of --help.
StringRef getTuneUsage();

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_TOOLS_NM_TUNE_OPTIONS_H
