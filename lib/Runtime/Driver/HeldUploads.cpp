//===- HeldUploads.cpp - host memory that is uploaded once ----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "HeldUploads.h"

#include "nm_sparse/Runtime/MGPU.h"

#include <algorithm>
#include <atomic>
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
  std::atomic<size_t> count = 0; // of uploads, for who needs no more
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

cuda::Result nms::copyAsync(const Context &cu, cuda::DevicePtr dst,
                            const void *src, size_t bytes,
                            cuda::Stream stream) {
  if (state().count == 0)
    return cu->memcpyAsync(dst, reinterpret_cast<cuda::DevicePtr>(src), bytes,
                           stream);
  // Held while it copies: nobody frees the copy meanwhile, and freeing waits
  // for what was enqueued.
  std::lock_guard<std::mutex> lock(state().mutex);
  const char *begin = static_cast<const char *>(src);
  auto from = reinterpret_cast<cuda::DevicePtr>(src);
  for (Upload &own : state().uploads) {
    if (begin < own.host || begin + bytes > own.host + own.bytes)
      continue;
    if (!own.copy)
      own.copy = upload(cu, own);
    if (own.copy)
      from = own.copy + size_t(begin - own.host);
    break;
  }
  return cu->memcpyAsync(dst, from, bytes, stream);
}

extern "C" int nmsHoldUpload(const void *host, size_t bytes) {
  if (!host || bytes == 0)
    return fail("nmsHoldUpload: %zu bytes at %p are no memory", bytes, host);
  std::lock_guard<std::mutex> lock(state().mutex);
  state().uploads.push_back({static_cast<const char *>(host), bytes});
  ++state().count;
  return 0;
}

extern "C" int nmsReleaseUpload(const void *host) {
  std::lock_guard<std::mutex> lock(state().mutex);
  auto own = std::find_if(state().uploads.begin(), state().uploads.end(),
                          [&](const Upload &one) { return one.host == host; });
  if (own == state().uploads.end())
    return fail("nmsReleaseUpload: no memory at %p is held", host);
  cuda::DevicePtr copy = own->copy;
  state().uploads.erase(own);
  --state().count;
  if (!copy)
    return 0;
  Context cu;
  return cu && cu.check(cu->memFree(copy), "freeing a held upload") ? 0 : 1;
}
