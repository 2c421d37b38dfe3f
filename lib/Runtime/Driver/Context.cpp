//===- Context.cpp - Devices, contexts and adopted streams ----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Context.h"

#include <atomic>
#include <climits>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <utility>

using namespace nms;

namespace {

thread_local int chosenDevice = -1;
std::atomic<bool> anyDeviceOpen = false;

/// NM_SPARSE_DEVICE, 0 when unset, -1 with the reason recorded when malformed.
int defaultDevice() {
  if (isDriverReplaced())
    return replacedDefaultDevice();
  const char *text = getenv("NM_SPARSE_DEVICE");
  if (!text || !*text)
    return 0;
  char *end = nullptr;
  long value = strtol(text, &end, 10);
  if (*end || value < 0 || value > INT_MAX) {
    fail("NM_SPARSE_DEVICE=%s is no device number: set it to 0, 1, ...", text);
    return -1;
  }
  return static_cast<int>(value);
}

bool describe(const cuda::Api &api, int ordinal, cuda::Device handle,
              NmsDeviceInfo &info) {
  info.ordinal = ordinal;
  size_t bytes = 0;
  struct {
    int attribute;
    int32_t *slot;
    bool needed;
  } const wanted[] = {
      {cuda::attrCcMajor, &info.ccMajor, true},
      {cuda::attrCcMinor, &info.ccMinor, true},
      {cuda::attrMultiprocessors, &info.multiprocessors, true},
      {cuda::attrSharedPerBlock, &info.sharedPerBlock, true},
      {cuda::attrSharedPerBlockOptin, &info.sharedPerBlockOptin, true},
      {cuda::attrSharedPerMultiprocessor, &info.sharedPerMultiprocessor, true},
      {cuda::attrRegistersPerMultiprocessor, &info.registersPerMultiprocessor,
       true},
      {cuda::attrL2Bytes, &info.l2Bytes, true},
      {cuda::attrClockRate, &info.clockKHz, false},
      {cuda::attrMemoryClockRate, &info.memoryClockKHz, false},
      {cuda::attrMemoryBusWidth, &info.memoryBusBits, false},
  };
  cuda::Result result = api.deviceGetName(info.name, sizeof(info.name), handle);
  if (!result)
    result = api.driverGetVersion(&info.driverVersion);
  if (!result)
    result = api.deviceTotalMem(&bytes, handle);
  for (const auto &entry : wanted) {
    if (result)
      break;
    cuda::Result status =
        api.deviceGetAttribute(entry.slot, entry.attribute, handle);
    if (entry.needed)
      result = status;
    else if (status)
      *entry.slot = 0;
  }
  info.memoryBytes = bytes;
  return !result || !failResult(api, result, "asking for device attributes");
}

/// Devices are entered once and stay: primary contexts outlive the process's
/// use of them, and releasing one at exit races with other users.
const DeviceState *openDevice(const cuda::Api &api, int ordinal) {
  static std::mutex *mutex = new std::mutex;
  static auto *devices = new std::map<int, DeviceState>;
  std::lock_guard<std::mutex> lock(*mutex);
  auto found = devices->find(ordinal);
  if (found != devices->end())
    return &found->second;

  int count = 0;
  if (cuda::Result result = api.deviceGetCount(&count)) {
    failResult(api, result, "counting the CUDA devices");
    return nullptr;
  }
  if (ordinal >= count) {
    if (count == 0)
      fail("no CUDA device: the driver sees none: check nvidia-smi and "
           "CUDA_VISIBLE_DEVICES");
    else
      fail("device %d was asked for, but the driver sees %d: use a number from "
           "0 to %d (NM_SPARSE_DEVICE, mgpuSetDefaultDevice)",
           ordinal, count, count - 1);
    return nullptr;
  }
  DeviceState state;
  cuda::Device handle = 0;
  if (cuda::Result result = api.deviceGet(&handle, ordinal)) {
    failResult(api, result, "opening the CUDA device");
    return nullptr;
  }
  if (!describe(api, ordinal, handle, state.info))
    return nullptr;
  if (cuda::Result result = api.primaryCtxRetain(&state.context, handle)) {
    failResult(api, result, "retaining the device's primary context");
    return nullptr;
  }
  anyDeviceOpen = true;
  return &(devices->emplace(ordinal, state).first->second);
}

} // namespace

bool nms::isAnyDeviceOpen() { return anyDeviceOpen; }

void nms::setCurrentDevice(int ordinal) { chosenDevice = ordinal; }

extern "C" int32_t nmsSetDevice(int32_t ordinal) {
  return std::exchange(chosenDevice, ordinal < 0 ? -1 : ordinal);
}

const DeviceState *nms::currentDevice() {
  const cuda::Api *api = driver();
  if (!api)
    return nullptr;
  int ordinal = chosenDevice >= 0 ? chosenDevice : defaultDevice();
  return ordinal < 0 ? nullptr : openDevice(*api, ordinal);
}

Context::Context() : api(driver()), device(api ? currentDevice() : nullptr) {
  if (!device)
    return;
  cuda::Context current = nullptr;
  if (!check(api->ctxGetCurrent(&current), "reading the current context"))
    return;
  if (current != device->context) {
    if (!check(api->ctxPush(device->context), "entering the device's context"))
      return;
    pushed = true;
  }
  entered = true;
}

Context::~Context() {
  cuda::Context popped = nullptr;
  if (pushed)
    (void)api->ctxPop(&popped);
}

bool Context::check(cuda::Result result, const char *format, ...) const {
  if (result == cuda::success)
    return true;
  char what[1024];
  va_list args;
  va_start(args, format);
  vsnprintf(what, sizeof(what), format, args);
  va_end(args);
  failResult(*api, result, what);
  return false;
}

AdoptedStream &nms::adoptedStream() {
  thread_local AdoptedStream adopted;
  return adopted;
}

extern "C" int nmsDeviceAvailable() { return currentDevice() != nullptr; }

extern "C" int nmsDeviceInfo(NmsDeviceInfo *info) {
  if (!info)
    return fail("nmsDeviceInfo: the result pointer is null: pass a struct");
  const DeviceState *device = currentDevice();
  if (!device)
    return 1;
  *info = device->info;
  return 0;
}

extern "C" void nmsSetStream(void *stream, int32_t flags) {
  AdoptedStream &adopted = adoptedStream();
  adopted.active = true;
  adopted.skipSync = flags & NMS_STREAM_SKIP_SYNC;
  adopted.stream = static_cast<cuda::Stream>(stream);
}

extern "C" void nmsResetStream() { adoptedStream() = AdoptedStream(); }
