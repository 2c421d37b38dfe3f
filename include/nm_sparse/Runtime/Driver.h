//===- Driver.h - Device, stream and module cache ---------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The CUDA driver is opened on first use (libcuda.so.1, or the file named by
// the environment variable NM_SPARSE_LIBCUDA), and the primary context of the
// device is retained, so that the runtime shares memory and streams with any
// other user of the CUDA runtime API in the process. The device is the one
// that mgpuSetDefaultDevice chose on the calling thread, else NM_SPARSE_DEVICE,
// else 0. Calls enter the context and leave the caller's as it was.
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_RUNTIME_DRIVER_H
#define NM_SPARSE_RUNTIME_DRIVER_H

#include "nm_sparse/Base/Kind.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct NmsDeviceInfo {
  char name[256];
  int32_t ordinal;
  int32_t ccMajor, ccMinor;
  int32_t multiprocessors;
  int32_t sharedPerBlock;      // bytes, without opting in
  int32_t sharedPerBlockOptin; // bytes, the most that a block can have
  int32_t sharedPerMultiprocessor;
  int32_t registersPerMultiprocessor;
  int32_t l2Bytes;
  int32_t clockKHz;       // boost clock of the multiprocessors
  int32_t memoryClockKHz; // both clocks are 0 where the driver tells none
  int32_t memoryBusBits;
  int32_t driverVersion; // 12040 is CUDA 12.4
  uint64_t memoryBytes;
} NmsDeviceInfo;

/// Returns 1 if a driver and a device can be used, otherwise 0 with
/// nmsLastError() set.
NMS_API int nmsDeviceAvailable(void);

/// Fills `info`. Returns 0, or nonzero with nmsLastError() set.
NMS_API int nmsDeviceInfo(NmsDeviceInfo *info);

/// From now on, and on the calling thread, the runtime uses device `ordinal`;
/// -1 is the usual one. Returns what it was.
NMS_API int32_t nmsSetDevice(int32_t ordinal);

/// With this flag mgpuStreamSynchronize returns at once for the adopted stream:
/// the host orders its own work behind the stream. Leave it out when compiled
/// host code reads on the CPU what a kernel wrote.
enum { NMS_STREAM_SKIP_SYNC = 1 };

/// From now on, and on the calling thread, compiled host code uses `stream` (a
/// CUstream or cudaStream_t; null is the legacy default stream):
/// mgpuStreamCreate returns it and mgpuStreamDestroy leaves it alone.
NMS_API void nmsSetStream(void *stream, int32_t flags);

/// Ends nmsSetStream on the calling thread.
NMS_API void nmsResetStream(void);

/// Modules are cached by content (and by device and JIT level), so the same PTX
/// is compiled once per process, even if it was unloaded in between. Returns
/// the number of cached modules, in use or not.
NMS_API int64_t nmsModuleCacheSize(void);

/// Unloads the modules that nobody uses. Returns 0, or nonzero with
/// nmsLastError() set. Not legal while launches are recorded.
NMS_API int nmsModuleCacheClear(void);

#ifdef __cplusplus
}
#endif

#endif // NM_SPARSE_RUNTIME_DRIVER_H
