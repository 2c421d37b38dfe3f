//===- NvmlApi.h - The part of NVML in use ----------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// It only reads: none of the functions that change a GPU is opened.
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_RUNTIME_VENDOR_NVMLAPI_H
#define NM_SPARSE_LIB_RUNTIME_VENDOR_NVMLAPI_H

#include "../Driver/Context.h"

namespace nms::nvml {

using Status = int;
using Device = struct DeviceTag *;

enum : int { clockSm = 1, clockMemory = 2, temperatureGpu = 0 };

#define NMS_NVML_REQUIRED(X)                                                   \
  X(init, "nvmlInit_v2", ())                                                   \
  X(getDevice, "nvmlDeviceGetHandleByPciBusId_v2", (const char *, Device *))   \
  X(getEnergy, "nvmlDeviceGetTotalEnergyConsumption",                          \
    (Device, unsigned long long *))                                            \
  X(getClock, "nvmlDeviceGetClockInfo", (Device, int, unsigned *))             \
  X(getSlowdowns, "nvmlDeviceGetCurrentClocksThrottleReasons",                 \
    (Device, unsigned long long *))                                            \
  X(getTemperature, "nvmlDeviceGetTemperature", (Device, int, unsigned *))     \
  X(getLimit, "nvmlDeviceGetEnforcedPowerLimit", (Device, unsigned *))

struct Api {
// A declarator, which parentheses would change.
// NOLINTNEXTLINE(bugprone-macro-parentheses)
#define NMS_MEMBER(NAME, SYMBOL, PARAMS) Status(*NAME) PARAMS = nullptr;
  NMS_NVML_REQUIRED(NMS_MEMBER)
#undef NMS_MEMBER
  const char *(*errorString)(Status) = nullptr;
};

/// Opens NVML on the first call; null with the reason recorded. Looks at
/// NM_SPARSE_NVML (a file), then the loader's path.
const Api *api();

/// The device of `cu`; null with the reason recorded.
Device findDevice(const Api &nvml, const nms::Context &cu);

/// True on success, else records "<what> failed: <NVML's text>".
bool check(const Api &nvml, Status status, const char *what);

} // namespace nms::nvml

#endif // NM_SPARSE_LIB_RUNTIME_VENDOR_NVMLAPI_H
