//===- RunRequest.h - what nm-run is asked for ------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_EXECUTION_REQUEST_RUNREQUEST_H
#define NM_SPARSE_EXECUTION_REQUEST_RUNREQUEST_H

#include "mlir/IR/DialectRegistry.h"
#include "nm_sparse/Checkpoint/BindWeights.h"
#include "nm_sparse/Support/DefaultCodeBytes.h"
#include <optional>
#include <string>

namespace mlir::nm_sparse {

/// Auto: CUDA where there is a GPU, else Emulate.
enum class Device { Auto, CPU, CUDA, Emulate };

struct RunRequest {
  std::string file;
  std::string entry; ///< Empty: the only public function.
  Device device = Device::Auto;
  std::string chip; ///< Empty: the GPU's own; sm_90a for the emulator.
  std::string gpu;  ///< Whose rates to choose by; empty: the GPU's own.
  /// Of each dynamic dimension that no weight or operation determines.
  int64_t dynamicSize = 64;
  /// Numbers of tokens to compile for, where theirs is dynamic; none: as the
  /// cost model says. nullopt: `dynamicSize` alone.
  std::optional<SmallVector<int64_t>> tokens;
  int64_t maxKernels = 8;       ///< Of `tokens`, at most.
  std::string storage = "auto"; ///< Of packed weights, as for the pipelines.
  /// Of weights that are 2:4, too, and of more of them, as for the pipelines.
  std::string embed = "auto";
  bool embedChecked = false;
  int64_t density = 50; ///< Percent that `free` weights keep.
  SmallVector<WeightBinding>
      bindings; ///< Arguments of `entry` to be constants.
  /// Constants that may become code, and how much, as for the pipelines.
  bool specializeConstants = false;
  int64_t maxCodeBytes = kDefaultMaxCodeBytes;
  std::string pack = "auto"; ///< Where, as for the pipelines.
  /// Merged or separate, as for the pipelines.
  std::string launches = "merged";
  uint64_t seed = 0;
  std::string schedule; ///< Forced on every sparse matmul when not empty.
  /// Output of `nm-opt --nm-sparse-to-nvvm=host-memory=true` that is run in
  /// place of what the compiler makes of `file`; empty: none.
  std::string lowered;
  std::string output;        ///< Results go to OUTPUT.N.npy when not empty.
  unsigned emulatorJobs = 0; ///< Threads of the emulator; 0: one for each core.
  bool lastFirst = false;    ///< The emulator runs the last CTAs first.
  bool bankConflicts = false; ///< The emulator counts them.
  bool check = false;
  bool bench = false;
  int64_t benchBudget = 0;  ///< Milliseconds for the samples; 0: no limit.
  bool energy = false;      ///< With `bench`.
  double energySeconds = 1; ///< Of a loop, at least.
  int64_t energyRepeats = 5;
  /// Runs that name the same file here take times alone: the GPU is shared only
  /// by runs that take none. Empty: the GPU is this run's own.
  std::string lock;
  double tolerance = -1; ///< Negative: by the types that results pass.
  /// Registers dialects and products beside those of this compiler; may be
  /// null.
  void (*extend)(DialectRegistry &registry) = nullptr;
};

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_EXECUTION_REQUEST_RUNREQUEST_H
