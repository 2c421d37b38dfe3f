//===- DeviceMeter.h - products measured on the GPU -------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_TUNER_DEVICEMETER_H
#define NM_SPARSE_TUNER_DEVICEMETER_H

#include "nm_sparse/Tuner/Tune.h"

namespace mlir::nm_sparse {

/// How the products of a search are measured.
struct MeterOptions {
  /// CUDA, or Emulate, where results are checked alone.
  Device device = Device::CUDA;
  int64_t sampleMs = 400; ///< Milliseconds of samples for each turn.
  uint64_t seed = 0;      ///< Of weights and activations.
  unsigned jobs = 0;      ///< Threads that compile; 0: one for each core.
  std::string lock;       ///< A file; empty: the GPU belongs to this search.
};

/// Meters of the GPU of this machine, or of the emulator.
MakeMeter makeDeviceMeters(const TuneTarget &target, MeterOptions options);

/// The GPU of this machine, which `name` says unless it is empty. An error is
/// that there is none, another one, or one that this compiler does not know.
llvm::Expected<const Chip *> findOwnGPU(StringRef name);

/// The version of CUDA that the driver has, such as 13.0; empty without one.
std::string getDriverVersion();

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_TUNER_DEVICEMETER_H
