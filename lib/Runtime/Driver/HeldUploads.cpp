//===- HeldUploads.cpp - host memory that is uploaded once ----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "HeldUploads.h"

#include "nm_sparse/Runtime/MGPU.h"

#include <mutex>
#include <vector>

using namespace nms;

namespace {

struct Upload {
  const char *host;
  size_t bytes;
  cuda::DevicePtr copy = 0; // 0: not made yet
};

struct State {
  std::mutex mutex;
  std::vector<Upload> uploads;
};

State &state() {
  static State *instance = new State;
  return *instance;
}

/// Copies to the device, and waits for it. 0 where there is no memory.
cuda::DevicePtr upload(const Context &cu, const Upload &own) {
  cuda::DevicePtr copy = 0;
  if (cu->memAlloc(&copy, own.bytes) != cuda::success)
    return 0;
  cuda::Result copied = cu->memcpyAsync(
      copy, reinterpret_cast<cuda::DevicePtr>(own.host), own.bytes, nullptr);
  if (copied == cuda::success &&
      cu->streamSynchronize(nullptr) == cuda::success)
    return copy;
  (void)cu->memFree(copy);
  return 0;
}

} // namespace

cuda::DevicePtr nms::findHeldUpload(const Context &cu, const void *host,
                                    size_t bytes) {
  std::lock_guard<std::mutex> lock(state().mutex);
  const char *begin = static_cast<const char *>(host);
  for (Upload &own : state().uploads) {
    if (begin < own.host || begin + bytes > own.host + own.bytes)
      continue;
    if (!own.copy)
      own.copy = upload(cu, own);
    return own.copy ? own.copy + size_t(begin - own.host) : 0;
  }
  return 0;
}

extern "C" int nmsHoldUpload(const void *host, size_t bytes) {
  if (!host || bytes == 0)
    return fail("nmsHoldUpload: %zu bytes at %p are no memory", bytes, host);
  std::lock_guard<std::mutex> lock(state().mutex);
  state().uploads.push_back({static_cast<const char *>(host), bytes});
  return 0;
}

extern "C" int nmsReleaseUploads() {
  std::lock_guard<std::mutex> lock(state().mutex);
  bool isFreed = true;
  for (const Upload &own : state().uploads) {
    if (!own.copy)
      continue;
    Context cu;
    isFreed &= cu && cu.check(cu->memFree(own.copy), "freeing a held upload");
  }
  state().uploads.clear();
  return isFreed ? 0 : 1;
}
