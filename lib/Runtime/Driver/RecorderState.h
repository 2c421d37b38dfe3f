//===- RecorderState.h - Hooks of the launch recorder -----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The calls by which entry points tell the recorder, and what the benchmark
// reads from it. All hooks do nothing while no recording is open.
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_RUNTIME_DRIVER_RECORDERSTATE_H
#define NM_SPARSE_LIB_RUNTIME_DRIVER_RECORDERSTATE_H

#include "Functions.h"
#include "nm_sparse/Runtime/Recorder.h"

namespace nms {

bool recording();

/// Copies a launch. `paramCount` is negative when the caller does not know it.
/// False with the reason recorded when the arguments cannot be copied.
bool recordLaunch(cuda::Function function, const FunctionInfo &info,
                  const LaunchShape &shape, void **params, void **extra,
                  int64_t paramCount);

void recordMemset(cuda::DevicePtr dst, uint32_t value, size_t count,
                  int elementBytes);

/// True when the recorder took over the freeing.
bool deferFree(void *pointer);
bool deferUnregister(void *base, size_t bytes);

/// True when `base` is still registered because its unregistering was deferred;
/// it then counts as registered again.
bool reviveHostRange(void *base, size_t bytes);

/// Enqueues call number `call` of the `calls` of a program that were recorded
/// on `stream`.
bool replayRecorded(const Context &cu, cuda::Stream stream, bool includeMemsets,
                    int program, int call, int calls);

/// False with the reason recorded when there are other than `programs`
/// programs, or the launches of one are not those of `calls` equal calls.
bool checkRecorded(const char *entry, int programs, int calls);

} // namespace nms

#endif // NM_SPARSE_LIB_RUNTIME_DRIVER_RECORDERSTATE_H
