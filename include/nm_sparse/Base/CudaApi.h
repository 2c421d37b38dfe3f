//===- CudaApi.h - The part of the CUDA driver API in use -------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Own declarations, so that neither building nor using the runtime needs the
// CUDA toolkit. unittests/Runtime/CudaAbiTest.cpp checks them against cuda.h
// where there is one. A program that brings a driver of its own, such as the
// emulator, fills the table.
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_BASE_CUDAAPI_H
#define NM_SPARSE_BASE_CUDAAPI_H

#include "nm_sparse/Base/Kind.h"
#include <cstddef>
#include <cstdint>

namespace nms::cuda {

using Result = int;
using Device = int;
using DevicePtr = unsigned long long;
using Context = struct ContextTag *;
using Module = struct ModuleTag *;
using Function = struct FunctionTag *;
using Stream = struct StreamTag *;
using Event = struct EventTag *;
using Graph = struct GraphTag *;
using GraphExec = struct GraphExecTag *;

enum : Result {
  success = 0,
  errorInvalidValue = 1,
  errorOutOfMemory = 2,
  errorDeinitialized = 4,
  errorNoDevice = 100,
  errorInvalidDevice = 101,
  errorInvalidImage = 200,
  errorNoBinaryForGpu = 209,
  errorInvalidPtx = 218,
  errorUnsupportedPtxVersion = 222,
  errorNotFound = 500,
  errorIllegalAddress = 700,
  errorLaunchOutOfResources = 701,
  errorLaunchTimeout = 702,
  errorHostMemoryAlreadyRegistered = 712,
  errorHostMemoryNotRegistered = 713,
  errorMisalignedAddress = 716,
  errorLaunchFailed = 719,
  errorNotSupported = 801,
  errorSystemDriverMismatch = 803,
  // None of CUDA's: results of the emulator.
  errorEmulatorFault = 9001,
  errorEmulatorKernel = 9002,
  errorNotEmulated = 9003,
};

enum DeviceAttribute : int {
  attrSharedPerBlock = 8,
  attrClockRate = 13,
  attrMultiprocessors = 16,
  attrPciBus = 33,
  attrPciDevice = 34,
  attrMemoryClockRate = 36,
  attrMemoryBusWidth = 37,
  attrL2Bytes = 38,
  attrPciDomain = 50,
  attrCcMajor = 75,
  attrCcMinor = 76,
  attrSharedPerMultiprocessor = 81,
  attrRegistersPerMultiprocessor = 82,
  attrSharedPerBlockOptin = 97,
};

enum FunctionAttribute : int {
  funcMaxThreadsPerBlock = 0,
  funcSharedBytes = 1,
  funcRegisters = 4,
  funcMaxDynamicSharedBytes = 8,
  funcNonPortableCluster = 14,
};

enum JitOption : int {
  jitErrorLog = 5,
  jitErrorLogBytes = 6,
  jitOptimizationLevel = 7,
};

enum : unsigned {
  streamNonBlocking = 1,
  eventDefault = 0,
  eventDisableTiming = 2,
  memAttachGlobal = 1,
  captureNone = 0, // of a stream
  captureThreadLocal = 1,
  captureRelaxed = 2,
  launchAttributeCluster = 4,
  launchAttributeProgrammaticSerialization = 6,
};

union LaunchAttributeValue {
  char pad[64];
  struct {
    unsigned x, y, z;
  } cluster;
  int programmaticSerialization;
};

struct LaunchAttribute {
  unsigned id;
  char pad[8 - sizeof(unsigned)];
  LaunchAttributeValue value;
};

struct LaunchConfig {
  unsigned gridX, gridY, gridZ, blockX, blockY, blockZ, sharedBytes;
  Stream stream;
  LaunchAttribute *attributes;
  unsigned attributeCount;
};

struct alignas(64) TensorMap {
  uint64_t opaque[16];
};

// Name of the member, symbol in libcuda, parameter types.
#define NMS_CUDA_REQUIRED(X)                                                   \
  X(init, "cuInit", (unsigned))                                                \
  X(driverGetVersion, "cuDriverGetVersion", (int *))                           \
  X(getErrorName, "cuGetErrorName", (Result, const char **))                   \
  X(getErrorString, "cuGetErrorString", (Result, const char **))               \
  X(deviceGetCount, "cuDeviceGetCount", (int *))                               \
  X(deviceGet, "cuDeviceGet", (Device *, int))                                 \
  X(deviceGetName, "cuDeviceGetName", (char *, int, Device))                   \
  X(deviceGetAttribute, "cuDeviceGetAttribute", (int *, int, Device))          \
  X(deviceTotalMem, "cuDeviceTotalMem_v2", (size_t *, Device))                 \
  X(primaryCtxRetain, "cuDevicePrimaryCtxRetain", (Context *, Device))         \
  X(ctxGetCurrent, "cuCtxGetCurrent", (Context *))                             \
  X(ctxPush, "cuCtxPushCurrent_v2", (Context))                                 \
  X(ctxPop, "cuCtxPopCurrent_v2", (Context *))                                 \
  X(ctxSynchronize, "cuCtxSynchronize", ())                                    \
  X(moduleLoadDataEx, "cuModuleLoadDataEx",                                    \
    (Module *, const void *, unsigned, int *, void **))                        \
  X(moduleUnload, "cuModuleUnload", (Module))                                  \
  X(moduleGetFunction, "cuModuleGetFunction",                                  \
    (Function *, Module, const char *))                                        \
  X(funcGetAttribute, "cuFuncGetAttribute", (int *, int, Function))            \
  X(funcSetAttribute, "cuFuncSetAttribute", (Function, int, int))              \
  X(launchKernel, "cuLaunchKernel",                                            \
    (Function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,     \
     unsigned, Stream, void **, void **))                                      \
  X(streamCreate, "cuStreamCreate", (Stream *, unsigned))                      \
  X(streamDestroy, "cuStreamDestroy_v2", (Stream))                             \
  X(streamSynchronize, "cuStreamSynchronize", (Stream))                        \
  X(streamWaitEvent, "cuStreamWaitEvent", (Stream, Event, unsigned))           \
  X(streamBeginCapture, "cuStreamBeginCapture_v2", (Stream, int))              \
  X(streamEndCapture, "cuStreamEndCapture", (Stream, Graph *))                 \
  X(eventCreate, "cuEventCreate", (Event *, unsigned))                         \
  X(eventDestroy, "cuEventDestroy_v2", (Event))                                \
  X(eventRecord, "cuEventRecord", (Event, Stream))                             \
  X(eventSynchronize, "cuEventSynchronize", (Event))                           \
  X(eventElapsedTime, "cuEventElapsedTime", (float *, Event, Event))           \
  X(memAlloc, "cuMemAlloc_v2", (DevicePtr *, size_t))                          \
  X(memAllocManaged, "cuMemAllocManaged", (DevicePtr *, size_t, unsigned))     \
  X(memFree, "cuMemFree_v2", (DevicePtr))                                      \
  X(memcpyAsync, "cuMemcpyAsync", (DevicePtr, DevicePtr, size_t, Stream))      \
  X(memcpyHtoD, "cuMemcpyHtoD_v2", (DevicePtr, const void *, size_t))          \
  X(memcpyDtoH, "cuMemcpyDtoH_v2", (void *, DevicePtr, size_t))                \
  X(memsetD32Async, "cuMemsetD32Async", (DevicePtr, unsigned, size_t, Stream)) \
  X(memsetD16Async, "cuMemsetD16Async",                                        \
    (DevicePtr, unsigned short, size_t, Stream))                               \
  X(memHostRegister, "cuMemHostRegister_v2", (void *, size_t, unsigned))       \
  X(memHostUnregister, "cuMemHostUnregister", (void *))                        \
  X(graphInstantiate, "cuGraphInstantiateWithFlags",                           \
    (GraphExec *, Graph, unsigned long long))                                  \
  X(graphLaunch, "cuGraphLaunch", (GraphExec, Stream))                         \
  X(graphExecDestroy, "cuGraphExecDestroy", (GraphExec))                       \
  X(graphDestroy, "cuGraphDestroy", (Graph))

// Null when the driver is too old to have them.
#define NMS_CUDA_OPTIONAL(X)                                                   \
  X(moduleGetGlobal, "cuModuleGetGlobal_v2",                                   \
    (DevicePtr *, size_t *, Module, const char *))                             \
  X(launchKernelEx, "cuLaunchKernelEx",                                        \
    (const LaunchConfig *, Function, void **, void **))                        \
  X(funcGetParamInfo, "cuFuncGetParamInfo",                                    \
    (Function, size_t, size_t *, size_t *))                                    \
  X(streamIsCapturing, "cuStreamIsCapturing", (Stream, int *))                 \
  X(threadExchangeCaptureMode, "cuThreadExchangeStreamCaptureMode", (int *))   \
  X(tensorMapEncodeTiled, "cuTensorMapEncodeTiled",                            \
    (TensorMap *, int, uint32_t, void *, const uint64_t *, const uint64_t *,   \
     const uint32_t *, const uint32_t *, int, int, int, int))                  \
  X(tensorMapEncodeIm2col, "cuTensorMapEncodeIm2col",                          \
    (TensorMap *, int, uint32_t, void *, const uint64_t *, const uint64_t *,   \
     const int *, const int *, uint32_t, uint32_t, const uint32_t *, int, int, \
     int, int))

struct Api {
// NOLINTNEXTLINE(bugprone-macro-parentheses)
#define NMS_MEMBER(NAME, SYMBOL, PARAMS) Result(*NAME) PARAMS = nullptr;
  NMS_CUDA_REQUIRED(NMS_MEMBER)
  NMS_CUDA_OPTIONAL(NMS_MEMBER)
#undef NMS_MEMBER
};

} // namespace nms::cuda

#endif // NM_SPARSE_BASE_CUDAAPI_H
