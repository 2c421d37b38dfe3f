//===- Driver.cpp - Opening the CUDA driver -------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Loads libcuda once per process, unless the program brought a driver. A
// failure is kept and reported again by every later use: a driver does not
// appear while a process runs.
//
//===----------------------------------------------------------------------===//

#include "Context.h"
#include "Symbols.h"
#include "nm_sparse/Runtime/SetDriver.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <string>

using namespace nms;

namespace {

std::atomic<const cuda::Api *> replacement = nullptr;
std::atomic<int> replacementDevice = 0;

struct Loaded {
  cuda::Api api;
  std::string error;
};

void *openDriver(std::string &error) {
  if (const char *path = getenv("NM_SPARSE_LIBCUDA"); path && *path) {
    if (void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL))
      return handle;
    const char *reason = dlerror();
    error = std::string("no CUDA driver: NM_SPARSE_LIBCUDA=") + path +
            " could not be opened (" + (reason ? reason : "unknown reason") +
            "): unset the variable or name a CUDA driver library";
    return nullptr;
  }
  if (void *handle = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL))
    return handle;
  const char *reason = dlerror();
  error = std::string("no CUDA driver: libcuda.so.1 could not be opened (") +
          (reason ? reason : "unknown reason") +
          "): install the NVIDIA driver, or name the file with "
          "NM_SPARSE_LIBCUDA";
  // Windows' subsystem for Linux keeps it outside of the loader's path.
  return dlopen("/usr/lib/wsl/lib/libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
}

const Loaded *load() {
  auto *loaded = new Loaded;
  void *handle = openDriver(loaded->error);
  if (!handle)
    return loaded;
  loaded->error.clear();
  cuda::Api &api = loaded->api;
  Symbols symbols(handle);
#define NMS_BIND_REQUIRED(NAME, SYMBOL, PARAMS)                                \
  symbols.require(api.NAME, SYMBOL);
#define NMS_BIND_OPTIONAL(NAME, SYMBOL, PARAMS) symbols.bind(api.NAME, SYMBOL);
  NMS_CUDA_REQUIRED(NMS_BIND_REQUIRED)
  NMS_CUDA_OPTIONAL(NMS_BIND_OPTIONAL)
#undef NMS_BIND_REQUIRED
#undef NMS_BIND_OPTIONAL
  if (const char *missing = symbols.getMissing()) {
    loaded->error = std::string("the CUDA driver has no symbol ") + missing +
                    ": install a driver for CUDA 11.4 or newer";
    return loaded;
  }
  if (cuda::Result result = api.init(0)) {
    failResult(api, result, "initializing the CUDA driver");
    loaded->error = nmsLastError();
  }
  return loaded;
}

const char *advice(cuda::Result result) {
  switch (result) {
  case cuda::errorInvalidValue:
    return "check the sizes and pointers that were passed";
  case cuda::errorOutOfMemory:
    return "free device memory or use a smaller problem";
  case cuda::errorDeinitialized:
    return "the driver has shut down: do not use the GPU in exit handlers";
  case cuda::errorNoDevice:
    return "check nvidia-smi, CUDA_VISIBLE_DEVICES and the permissions of "
           "/dev/nvidia*";
  case cuda::errorSystemDriverMismatch:
    return "libcuda and the kernel module differ: reboot, or reinstall the "
           "driver";
  case cuda::errorInvalidImage:
  case cuda::errorNoBinaryForGpu:
    return "compile for the chip of this device (nmsDeviceInfo tells it)";
  case cuda::errorInvalidPtx:
    return "the PTX must be legal for the chip of this device (nmsDeviceInfo "
           "tells it); run ptxas on it for the line";
  case cuda::errorUnsupportedPtxVersion:
    return "update the driver, or compile with a lower +ptx feature";
  case cuda::errorNotFound:
    return "check the name against the .entry lines of the module";
  case cuda::errorIllegalAddress:
  case cuda::errorMisalignedAddress:
  case cuda::errorLaunchFailed:
    return "a kernel went wrong and the context is lost: start the process "
           "again, under compute-sanitizer to find the access";
  case cuda::errorLaunchOutOfResources:
    return "the block needs more registers or shared memory than there are: "
           "use fewer threads or a smaller tile";
  case cuda::errorLaunchTimeout:
    return "the kernel ran too long or never ended: look for a barrier that "
           "not all threads reach";
  case cuda::errorHostMemoryAlreadyRegistered:
    return "unregister it first";
  case cuda::errorHostMemoryNotRegistered:
    return "register it first";
  case cuda::errorEmulatorFault:
    return "correct the kernel; docs/Emulator.md explains the finding";
  case cuda::errorEmulatorKernel:
    return "docs/Emulator.md lists what is emulated";
  case cuda::errorNotEmulated:
    return "use a GPU for this";
  default:
    return "set CUDA_LAUNCH_BLOCKING=1 to see whether an earlier call is the "
           "cause";
  }
}

} // namespace

int nms::failResult(const cuda::Api &api, cuda::Result result,
                    const char *what) {
  const char *name = nullptr, *text = nullptr;
  if (api.getErrorName(result, &name) != cuda::success || !name)
    name = "an unknown CUDA error";
  if (api.getErrorString(result, &text) != cuda::success || !text)
    text = "no description";
  return fail("%s failed: %s (%d, %s): %s", what, name, result, text,
              advice(result));
}

const cuda::Api *nms::driver() {
  if (const cuda::Api *api = replacement)
    return api;
  static const Loaded *loaded = load();
  if (loaded->error.empty())
    return &loaded->api;
  fail("%s", loaded->error.c_str());
  return nullptr;
}

bool nms::isDriverReplaced() { return replacement != nullptr; }

int nms::replacedDefaultDevice() { return replacementDevice; }

bool nms::setDriver(const cuda::Api *api, int device) {
  if (isAnyDeviceOpen() && replacement != api)
    return !fail("a driver cannot be set: this process has already opened a "
                 "device through another one: do it in a process of its own");
  if (cuda::Result result = api->init(0))
    return !failResult(*api, result, "initializing the driver that was set");
  replacementDevice = device;
  replacement = api;
  return true;
}
