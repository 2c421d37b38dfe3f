//===- NvmlApi.cpp - Opening NVML -----------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "NvmlApi.h"
#include "../Driver/Symbols.h"

#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <string>

using namespace nms;

namespace {

struct Loaded {
  nvml::Api api;
  std::string error;
};

const Loaded *load() {
  auto *loaded = new Loaded;
  const char *chosen = getenv("NM_SPARSE_NVML");
  bool isChosen = chosen && *chosen;
  const char *file = isChosen ? chosen : "libnvidia-ml.so.1";
  void *handle = dlopen(file, RTLD_NOW | RTLD_LOCAL);
  if (!handle) {
    const char *reason = dlerror();
    loaded->error = std::string("no NVML to measure energy with: ") + file +
                    " could not be opened (" +
                    (reason ? reason : "unknown reason") +
                    "): install the NVIDIA driver, or name the file with "
                    "NM_SPARSE_NVML";
    return loaded;
  }
  nvml::Api &api = loaded->api;
  Symbols symbols(handle);
#define NMS_BIND(NAME, SYMBOL, PARAMS) symbols.require(api.NAME, SYMBOL);
  NMS_NVML_REQUIRED(NMS_BIND)
#undef NMS_BIND
  symbols.require(api.errorString, "nvmlErrorString");
  if (const char *missing = symbols.getMissing()) {
    loaded->error =
        isChosen ? std::string("NM_SPARSE_NVML=") + file + " has no symbol " +
                       missing +
                       ": unset the variable or name the libnvidia-ml.so.1 of "
                       "a driver for CUDA 11 or newer"
                 : std::string("NVML has no symbol ") + missing +
                       ": install a driver for CUDA 11 or newer";
    return loaded;
  }
  if (nvml::Status status = api.init())
    loaded->error = std::string("starting NVML failed: ") +
                    api.errorString(status) + ": check that nvidia-smi runs";
  return loaded;
}

} // namespace

const nvml::Api *nvml::api() {
  static const Loaded *loaded = load();
  if (loaded->error.empty())
    return &loaded->api;
  fail("%s", loaded->error.c_str());
  return nullptr;
}

bool nvml::check(const Api &nvml, Status status, const char *what) {
  if (status == 0)
    return true;
  return !fail("%s failed: %s (%d)", what, nvml.errorString(status), status);
}

nvml::Device nvml::findDevice(const Api &nvml, const nms::Context &cu) {
  cuda::Device device = 0;
  if (!cu.check(cu->deviceGet(&device, cu.info().ordinal), "opening device %d",
                cu.info().ordinal))
    return nullptr;
  constexpr int attributes[] = {cuda::attrPciDomain, cuda::attrPciBus,
                                cuda::attrPciDevice};
  int place[3] = {};
  for (int i = 0; i < 3; ++i)
    if (!cu.check(cu->deviceGetAttribute(&place[i], attributes[i], device),
                  "asking for the bus of device %d", cu.info().ordinal))
      return nullptr;
  char bus[32];
  snprintf(bus, sizeof(bus), "%08x:%02x:%02x.0", unsigned(place[0]),
           unsigned(place[1]), unsigned(place[2]));
  Device result = nullptr;
  std::string what = std::string("finding the GPU at ") + bus + " by NVML";
  if (!check(nvml, nvml.getDevice(bus, &result), what.c_str()))
    return nullptr;
  return result;
}
