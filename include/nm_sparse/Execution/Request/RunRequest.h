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

class WeightCache;

/// Auto is CUDA if there is a GPU, otherwise Emulate.
enum class Device { Auto, CPU, CUDA, Emulate };

struct RunRequest {
  std::string file;
  std::string program; ///< Text in place of the file, which names it then.
  std::string entry;   ///< Empty: the only public function.
  Device device = Device::Auto;
  std::string chip; ///< Empty: the GPU's own; sm_90a for the emulator.
  std::string gpu;  ///< Whose rates to choose by; empty: the GPU's own.
  /// The size of each dynamic dimension that no weight or operation determines.
  int64_t dynamicSize = 64;
  /// Numbers of tokens to compile for if the number is dynamic. If the list is
  /// empty, the cost model chooses; nullopt stands for `dynamicSize` alone.
  std::optional<SmallVector<int64_t>> tokens;
  int64_t maxKernels = 8;         ///< Most classes of token counts.
  std::string storage = "auto";   ///< The packed form, as for the pipelines.
  std::string objective = "time"; ///< Choices are compared by it, as there.
  /// The other patterns to store as 2:4, as for the pipelines.
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
  /// The same, once layouts are chosen without it, as a tuning database does.
  std::string tunedSchedule;
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
  double energySeconds = 1; ///< Minimum duration of a loop.
  int64_t energyRepeats = 5;
  /// Runs that name the same file here measure times one after the other, and
  /// share the GPU for all else; a second one, FILE.turn, keeps them in turn.
  /// If this is empty, the GPU belongs to this run.
  std::string lock;
  double tolerance = -1; ///< Negative: by the types that results pass.
  /// Weights that other runs with the same one may make use of; may be null.
  WeightCache *weights = nullptr;
  /// Registers dialects and products beside those of this compiler; may be
  /// null.
  void (*extend)(DialectRegistry &registry) = nullptr;
};

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_EXECUTION_REQUEST_RUNREQUEST_H
