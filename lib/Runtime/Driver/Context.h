//===- Context.h - Entering the device's context ----------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Every function that touches CUDA begins with
//
//   Context cu;
//   if (!cu)
//     return ...;             // the reason is recorded
//
// and then calls through it: `cu.check(cu->memFree(p), "freeing %p", p)`.
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_RUNTIME_DRIVER_CONTEXT_H
#define NM_SPARSE_LIB_RUNTIME_DRIVER_CONTEXT_H

#include "../Support/ErrorState.h"
#include "nm_sparse/Base/CudaApi.h"
#include "nm_sparse/Runtime/Driver.h"

namespace nms {

struct DeviceState {
  cuda::Context context = nullptr;
  NmsDeviceInfo info = {};
};

/// The driver, loaded and initialized on the first call; null with the reason
/// recorded when that is impossible.
const cuda::Api *driver();

/// True when setDriver() replaced libcuda.
bool isDriverReplaced();

/// The device of threads that chose none, where setDriver() named one.
int replacedDefaultDevice();

/// True once a device was opened: from then on the driver must stay.
bool isAnyDeviceOpen();

/// The calling thread's device, its primary context retained on first use; null
/// with the reason recorded.
const DeviceState *currentDevice();

/// Overrides the device of the calling thread; a negative one ends that.
void setCurrentDevice(int ordinal);

/// Makes the device's primary context current and restores the caller's.
class Context {
public:
  Context();
  ~Context();
  Context(const Context &) = delete;
  Context &operator=(const Context &) = delete;

  explicit operator bool() const { return entered; }
  const cuda::Api *operator->() const { return api; }
  const NmsDeviceInfo &info() const { return device->info; }

  /// True on success. Else records "<what> failed: <CUDA's name> (<CUDA's
  /// text>): <what to do>".
  bool check(cuda::Result result, const char *format, ...) const
      __attribute__((format(printf, 3, 4)));

private:
  const cuda::Api *api = nullptr;
  const DeviceState *device = nullptr;
  bool entered = false;
  bool pushed = false;
};

/// Records "<what> failed: ..." for a result that is no success.
int failResult(const cuda::Api &api, cuda::Result result, const char *what);

/// The stream that nmsSetStream adopted on the calling thread.
struct AdoptedStream {
  bool active = false;
  bool skipSync = false;
  cuda::Stream stream = nullptr;
};
AdoptedStream &adoptedStream();

} // namespace nms

#endif // NM_SPARSE_LIB_RUNTIME_DRIVER_CONTEXT_H
