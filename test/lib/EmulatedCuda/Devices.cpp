//===- Devices.cpp - the device and its context ---------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "EmulatedCuda.h"

#include "Driver/Driver.h"
#include "nm_sparse/Emulator/Emulator.h"
#include <algorithm>
#include <cstdlib>

using namespace nms::cuda;
using namespace emulated_cuda;
using mlir::nm_sparse::EmulatedDriver;
using mlir::nm_sparse::EmulatorOptions;

static EmulatedDriver driver = {nullptr, 0};
static std::string openingError;

const Api *emulated_cuda::getDriver() { return driver.api; }
Device emulated_cuda::getEmulatedDevice() { return driver.device; }
const char *emulated_cuda::getOpeningError() { return openingError.c_str(); }

Result emulated_cuda::fail(Result result, const llvm::Twine &text) {
  return mlir::nm_sparse::emulator::reportResult(result, text);
}

Result emulated_cuda::openDriver() {
  static std::once_flag once;
  std::call_once(once, [] {
    EmulatorOptions options;
    if (const char *chip = std::getenv("NM_EMULATED_CHIP"))
      options.chip = chip;
    auto opened = mlir::nm_sparse::openEmulator(options);
    if (opened)
      driver = *opened;
    else
      openingError = "NM_EMULATED_CHIP: " + llvm::toString(opened.takeError());
  });
  return openingError.empty() ? success : errorNoDevice;
}

//===----------------------------------------------------------------------===//
// Devices
//===----------------------------------------------------------------------===//

CUDA_FUNCTION cuInit(unsigned) { return openDriver(); }

CUDA_FUNCTION cuDriverGetVersion(int *version) {
  if (Result result = openDriver())
    return result;
  return driver.api->driverGetVersion(version);
}

static Result checkDevice(Device device) {
  if (!driver.api)
    return errorNotInitialized;
  return device == 0 ? success
                     : fail(errorInvalidDevice, "there is only device 0");
}

CUDA_FUNCTION cuDeviceGetCount(int *count) {
  *count = 1;
  return checkDevice(0);
}

CUDA_FUNCTION cuDeviceGet(Device *device, int ordinal) {
  *device = ordinal;
  return checkDevice(ordinal);
}

CUDA_FUNCTION cuDeviceGetName(char *name, int bytes, Device device) {
  if (Result result = checkDevice(device))
    return result;
  return driver.api->deviceGetName(name, bytes, driver.device);
}

/// The same in every process.
CUDA_FUNCTION cuDeviceGetUuid(char *bytes, Device device) {
  constexpr char uuid[] = "nm_sparse_emulat";
  std::copy_n(uuid, 16, bytes);
  return checkDevice(device);
}
CUDA_FUNCTION cuDeviceGetUuid_v2(char *bytes, Device device) {
  return cuDeviceGetUuid(bytes, device);
}

CUDA_FUNCTION cuDeviceTotalMem_v2(size_t *bytes, Device device) {
  if (Result result = checkDevice(device))
    return result;
  return driver.api->deviceTotalMem(bytes, driver.device);
}

/// Attributes that the emulated driver leaves out; those that are not here are
/// 0: no, or none.
static int getOtherAttribute(int attribute, bool isHopper) {
  switch (attribute) {
  case 1: // Threads of a block.
  case 2: // Its extents x and y.
  case 3:
    return 1024;
  case 4: // Extent z.
    return 64;
  case 5: // Extents of a grid.
    return 2147483647;
  case 6:
  case 7:
    return 65535;
  case 9: // Constant memory.
    return 65536;
  case 10: // Threads of a warp.
    return 32;
  case 12: // Registers of a block.
    return 65536;
  case 39: // Threads of a multiprocessor.
    return 2048;
  case 106: // Blocks of a multiprocessor.
    return 32;
  case 19:  // Can map host memory.
  case 41:  // One address space.
  case 83:  // Managed memory.
  case 99:  // Can register host memory.
  case 115: // Pools of memory.
    return 1;
  case 120: // Clusters.
  case 127: // Tensor maps.
    return isHopper;
  default:
    return 0;
  }
}

CUDA_FUNCTION cuDeviceGetAttribute(int *value, int attribute, Device device) {
  if (Result result = checkDevice(device))
    return result;
  if (driver.api->deviceGetAttribute(value, attribute, driver.device) ==
      success)
    return success;
  int major = 0;
  if (Result result =
          driver.api->deviceGetAttribute(&major, attrCcMajor, driver.device))
    return result;
  *value = getOtherAttribute(attribute, major >= 9);
  return success;
}

CUDA_FUNCTION cuDeviceCanAccessPeer(int *can, Device, Device) {
  *can = 0;
  return success;
}

//===----------------------------------------------------------------------===//
// Contexts
//===----------------------------------------------------------------------===//

// All contexts are the primary one.

CUDA_FUNCTION cuDevicePrimaryCtxRetain(Context *context, Device device) {
  if (Result result = checkDevice(device))
    return result;
  return driver.api->primaryCtxRetain(context, driver.device);
}
CUDA_FUNCTION cuDevicePrimaryCtxRelease_v2(Device device) {
  return checkDevice(device);
}
CUDA_FUNCTION cuDevicePrimaryCtxReset_v2(Device device) {
  return checkDevice(device);
}
CUDA_FUNCTION cuDevicePrimaryCtxSetFlags_v2(Device device, unsigned) {
  return checkDevice(device);
}
CUDA_FUNCTION cuDevicePrimaryCtxGetState(Device device, unsigned *flags,
                                         int *active) {
  *flags = 0;
  *active = 1;
  return checkDevice(device);
}

CUDA_FUNCTION cuCtxGetCurrent(Context *context) {
  return driver.api ? driver.api->ctxGetCurrent(context) : errorNotInitialized;
}

CUDA_FUNCTION cuCtxPushCurrent_v2(Context context) {
  if (!driver.api)
    return errorNotInitialized;
  return context ? driver.api->ctxPush(context)
                 : fail(errorInvalidContext, "the context is null");
}

CUDA_FUNCTION cuCtxPopCurrent_v2(Context *context) {
  Context current = nullptr;
  if (!driver.api)
    return errorNotInitialized;
  if (driver.api->ctxPop(&current))
    return errorInvalidContext;
  if (context)
    *context = current;
  return success;
}

/// In place of the one that was entered last.
CUDA_FUNCTION cuCtxSetCurrent(Context context) {
  if (!driver.api)
    return errorNotInitialized;
  Context current = nullptr;
  driver.api->ctxGetCurrent(&current);
  if (current)
    driver.api->ctxPop(&current);
  return context ? driver.api->ctxPush(context) : success;
}

CUDA_FUNCTION cuCtxCreate_v2(Context *context, unsigned, Device device) {
  if (Result result = cuDevicePrimaryCtxRetain(context, device))
    return result;
  return driver.api->ctxPush(*context);
}
CUDA_FUNCTION cuCtxCreate_v4(Context *context, void *, unsigned flags,
                             Device device) {
  return cuCtxCreate_v2(context, flags, device);
}

CUDA_FUNCTION cuCtxDestroy_v2(Context context) {
  Context current = nullptr;
  if (Result result = cuCtxGetCurrent(&current))
    return result;
  return current == context ? driver.api->ctxPop(&current) : success;
}

CUDA_FUNCTION cuCtxGetDevice(Device *device) {
  *device = 0;
  Context current = nullptr;
  if (Result result = cuCtxGetCurrent(&current))
    return result;
  return current ? success : fail(errorInvalidContext, "no context is current");
}

CUDA_FUNCTION cuCtxSynchronize() { return checkDevice(0); }

CUDA_FUNCTION cuCtxGetApiVersion(Context, unsigned *version) {
  *version = 3020;
  return checkDevice(0);
}

CUDA_FUNCTION cuCtxGetStreamPriorityRange(int *least, int *greatest) {
  if (least)
    *least = 0;
  if (greatest)
    *greatest = 0;
  return checkDevice(0);
}

CUDA_FUNCTION cuCtxSetLimit(int, size_t) { return checkDevice(0); }
CUDA_FUNCTION cuCtxSetCacheConfig(int) { return checkDevice(0); }
