//===- Emulator.h - run kernels without a GPU -------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A CUDA driver that executes kernels of the NVVM dialect on the CPU. Behind
// the runtime library, compiled host code runs unchanged. See docs/Emulator.md.
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_EMULATOR_EMULATOR_H
#define NM_SPARSE_EMULATOR_EMULATOR_H

#include "nm_sparse/Base/CudaApi.h"
#include "nm_sparse/Chip/DefaultChip.h"
#include "llvm/Support/Error.h"
#include <map>
#include <string>

namespace mlir::nm_sparse {

struct EmulatorOptions {
  std::string chip = kDefaultChip; ///< One of getChips().
  unsigned jobs = 0; ///< Threads of the host; 0: one for each core.
  /// Runs CTAs from the last to the first, so that other CTAs than usual wait
  /// for, or come after, each other.
  bool lastFirst = false;
  /// Counts wavefronts and conflicts of accesses to shared memory.
  bool countsBanks = false;
};

/// The functions of the emulated driver, and its device for one chip.
struct EmulatedDriver {
  const nms::cuda::Api *api; ///< Lives as long as the process.
  nms::cuda::Device device;
};

/// The emulator of this process, with `options` from now on. May be called
/// again, for another chip. Starts no threads. An error where the chip is not
/// known.
llvm::Expected<EmulatedDriver> openEmulator(const EmulatorOptions &options);

/// Counts of how warps used the banks of shared memory.
struct BankUse {
  int64_t accesses = 0;   ///< Instructions of a warp.
  int64_t wavefronts = 0; ///< That they took.
  int64_t conflicts = 0;  ///< Wavefronts that they took for conflicts alone.

  BankUse &operator+=(const BankUse &other) {
    accesses += other.accesses;
    wavefronts += other.wavefronts;
    conflicts += other.conflicts;
    return *this;
  }
};

/// A summary of the emulated work.
struct EmulatorUse {
  int64_t launches = 0;
  int64_t ctas = 0;
  double seconds = 0;
  /// Bank use by kernel and by operation (ld.shared), if EmulatorOptions ask
  /// for it.
  std::map<std::string, std::map<std::string, BankUse>> banks;
};

/// Returns the emulated work since the last call.
EmulatorUse takeEmulatorUse();

/// The operations that are emulated, as a table in Markdown.
std::string describeEmulatedOps();

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_EMULATOR_EMULATOR_H
