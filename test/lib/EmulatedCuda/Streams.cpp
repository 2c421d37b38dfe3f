//===- Streams.cpp - streams and events -----------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "EmulatedCuda.h"

using namespace nms::cuda;
using namespace emulated_cuda;

CUDA_FUNCTION cuStreamCreate(Stream *stream, unsigned flags) {
  return getDriver() ? getDriver()->streamCreate(stream, flags)
                     : errorNotInitialized;
}
CUDA_FUNCTION cuStreamCreateWithPriority(Stream *stream, unsigned flags, int) {
  return cuStreamCreate(stream, flags);
}
CUDA_FUNCTION cuStreamDestroy_v2(Stream stream) {
  return getDriver() ? getDriver()->streamDestroy(stream) : errorNotInitialized;
}
CUDA_FUNCTION cuStreamSynchronize(Stream) { return success; }
CUDA_FUNCTION cuStreamQuery(Stream) { return success; }
CUDA_FUNCTION cuStreamWaitEvent(Stream, Event, unsigned) { return success; }
CUDA_FUNCTION cuStreamIsCapturing(Stream, int *status) {
  *status = captureNone;
  return success;
}
CUDA_FUNCTION cuThreadExchangeStreamCaptureMode(int *mode) {
  *mode = captureNone;
  return success;
}
CUDA_FUNCTION cuStreamBeginCapture_v2(Stream stream, int mode) {
  return getDriver() ? getDriver()->streamBeginCapture(stream, mode)
                     : errorNotInitialized;
}
CUDA_FUNCTION cuStreamEndCapture(Stream stream, Graph *graph) {
  return getDriver() ? getDriver()->streamEndCapture(stream, graph)
                     : errorNotInitialized;
}
CUDA_FUNCTION cuStreamGetPriority(Stream, int *priority) {
  *priority = 0;
  return success;
}
CUDA_FUNCTION cuLaunchHostFunc(Stream, void (*function)(void *), void *data) {
  function(data);
  return success;
}
CUDA_FUNCTION cuStreamAddCallback(Stream stream,
                                  void (*function)(Stream, Result, void *),
                                  void *data, unsigned) {
  function(stream, success, data);
  return success;
}

CUDA_FUNCTION cuEventCreate(Event *event, unsigned flags) {
  return getDriver() ? getDriver()->eventCreate(event, flags)
                     : errorNotInitialized;
}
CUDA_FUNCTION cuEventDestroy_v2(Event event) {
  return getDriver() ? getDriver()->eventDestroy(event) : errorNotInitialized;
}
CUDA_FUNCTION cuEventRecord(Event event, Stream stream) {
  return getDriver() ? getDriver()->eventRecord(event, stream)
                     : errorNotInitialized;
}
CUDA_FUNCTION cuEventRecordWithFlags(Event event, Stream stream, unsigned) {
  return cuEventRecord(event, stream);
}
CUDA_FUNCTION cuEventQuery(Event) { return success; }
CUDA_FUNCTION cuEventSynchronize(Event) { return success; }
CUDA_FUNCTION cuEventElapsedTime_v2(float *milliseconds, Event start,
                                    Event end) {
  return getDriver() ? getDriver()->eventElapsedTime(milliseconds, start, end)
                     : errorNotInitialized;
}
CUDA_FUNCTION cuEventElapsedTime(float *milliseconds, Event start, Event end) {
  return cuEventElapsedTime_v2(milliseconds, start, end);
}
