//===- Driver.h - the emulated CUDA driver ----------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Each file of the driver fills its part of the table of functions. Everything
// is done before a call returns, so streams and events have no work of their
// own. Device addresses are host addresses.
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_EMULATOR_DRIVER_DRIVER_H
#define NM_SPARSE_LIB_EMULATOR_DRIVER_DRIVER_H

#include "Memory/Memory.h"
#include "nm_sparse/Base/CudaApi.h"
#include "nm_sparse/Chip/Chip.h"
#include "nm_sparse/Emulator/Emulator.h"
#include "llvm/ADT/Twine.h"

namespace mlir::nm_sparse::emulator {

/// The memory of all devices. Lives as long as the process.
GlobalMemory &getDriverMemory();

/// The chip of the calling thread's context; null when there is none.
const Chip *getCurrentChip();

/// 90 for sm_90a.
int getCapability(const Chip &chip);
/// From here on there are clusters and tensor maps.
constexpr int firstCapabilityOfHopper = 90;

/// Threads of the host that a launch may use.
unsigned getDriverJobs();
bool takesLastFirst();
bool countsBanks();

/// Adds a launch of `kernel` to what takeEmulatorUse() returns.
void countLaunch(llvm::StringRef kernel, int64_t ctas, double seconds,
                 const std::vector<std::pair<std::string, BankUse>> &banks);

/// Keeps `text` as what cuGetErrorString() answers on this thread, and returns
/// `result`.
nms::cuda::Result reportResult(nms::cuda::Result result, const Twine &text);

/// Devices and contexts: DriverDevice.cpp.
void addDeviceFunctions(nms::cuda::Api &api);
/// Streams, events, graphs: DriverStream.cpp.
void addStreamFunctions(nms::cuda::Api &api);
/// Copies, memsets, allocations, host memory: DriverMemory.cpp.
void addMemoryFunctions(nms::cuda::Api &api);
/// Modules, functions, launches: DriverKernel.cpp.
void addKernelFunctions(nms::cuda::Api &api);
/// cuTensorMapEncodeTiled: EncodeTensorMap.cpp.
void addTensorMapFunctions(nms::cuda::Api &api);

} // namespace mlir::nm_sparse::emulator

#endif // NM_SPARSE_LIB_EMULATOR_DRIVER_DRIVER_H
