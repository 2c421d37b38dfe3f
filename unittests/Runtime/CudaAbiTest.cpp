//===- CudaAbiTest.cpp - Own CUDA declarations against cuda.h -------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The runtime declares the driver API itself. Where the toolkit is installed
// the compiler checks those declarations.
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Base/CudaApi.h"

#include <gtest/gtest.h>

#if __has_include(<cuda.h>)
#include <cstddef>
#include <cuda.h>
#include <tuple>
#include <type_traits>

namespace {

namespace own = nms::cuda;

/// Pointers to opaque structs of either side count as the same.
template <typename T>
using Erased =
    std::conditional_t<std::is_enum_v<T>, int,
                       std::conditional_t<std::is_pointer_v<T>, void *, T>>;

template <typename Own, typename Theirs>
struct SameSignature : std::false_type {};
template <typename R, typename... A, typename S, typename... B>
struct SameSignature<R (*)(A...), S (*)(B...)>
    : std::bool_constant<sizeof...(A) == sizeof...(B) &&
                         std::is_same_v<std::tuple<Erased<R>, Erased<A>...>,
                                        std::tuple<Erased<S>, Erased<B>...>>> {
};

#define CHECK(NAME, FUNCTION)                                                  \
  static_assert(                                                               \
      SameSignature<decltype(own::Api::NAME), decltype(&(FUNCTION))>::value,   \
      #FUNCTION)
CHECK(init, cuInit);
CHECK(deviceGetAttribute, cuDeviceGetAttribute);
CHECK(deviceGetName, cuDeviceGetName);
CHECK(deviceTotalMem, cuDeviceTotalMem);
CHECK(primaryCtxRetain, cuDevicePrimaryCtxRetain);
CHECK(ctxGetCurrent, cuCtxGetCurrent);
CHECK(ctxPush, cuCtxPushCurrent);
CHECK(ctxPop, cuCtxPopCurrent);
CHECK(moduleLoadDataEx, cuModuleLoadDataEx);
CHECK(moduleUnload, cuModuleUnload);
CHECK(moduleGetFunction, cuModuleGetFunction);
CHECK(funcGetAttribute, cuFuncGetAttribute);
CHECK(funcSetAttribute, cuFuncSetAttribute);
CHECK(launchKernel, cuLaunchKernel);
CHECK(streamCreate, cuStreamCreate);
CHECK(streamDestroy, cuStreamDestroy);
CHECK(streamWaitEvent, cuStreamWaitEvent);
CHECK(streamBeginCapture, cuStreamBeginCapture);
CHECK(streamIsCapturing, cuStreamIsCapturing);
CHECK(streamEndCapture, cuStreamEndCapture);
CHECK(eventCreate, cuEventCreate);
CHECK(eventRecord, cuEventRecord);
CHECK(memAlloc, cuMemAlloc);
CHECK(memAllocManaged, cuMemAllocManaged);
CHECK(memFree, cuMemFree);
CHECK(memcpyAsync, cuMemcpyAsync);
CHECK(memcpyHtoD, cuMemcpyHtoD);
CHECK(memcpyDtoH, cuMemcpyDtoH);
CHECK(memsetD32Async, cuMemsetD32Async);
CHECK(memsetD16Async, cuMemsetD16Async);
CHECK(memHostRegister, cuMemHostRegister);
CHECK(graphInstantiate, cuGraphInstantiateWithFlags);
CHECK(graphLaunch, cuGraphLaunch);
CHECK(launchKernelEx, cuLaunchKernelEx);
CHECK(moduleGetGlobal, cuModuleGetGlobal);
CHECK(tensorMapEncodeTiled, cuTensorMapEncodeTiled);
CHECK(tensorMapEncodeIm2col, cuTensorMapEncodeIm2col);
#if CUDA_VERSION >= 12040
CHECK(funcGetParamInfo, cuFuncGetParamInfo);
#endif
#undef CHECK

#define CHECK(OWN, THEIRS)                                                     \
  static_assert(static_cast<int>(own::OWN) == static_cast<int>(THEIRS), #THEIRS)
CHECK(errorInvalidValue, CUDA_ERROR_INVALID_VALUE);
CHECK(errorOutOfMemory, CUDA_ERROR_OUT_OF_MEMORY);
CHECK(errorDeinitialized, CUDA_ERROR_DEINITIALIZED);
CHECK(errorNoDevice, CUDA_ERROR_NO_DEVICE);
CHECK(errorInvalidImage, CUDA_ERROR_INVALID_IMAGE);
CHECK(errorNoBinaryForGpu, CUDA_ERROR_NO_BINARY_FOR_GPU);
CHECK(errorInvalidPtx, CUDA_ERROR_INVALID_PTX);
CHECK(errorUnsupportedPtxVersion, CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
CHECK(errorNotFound, CUDA_ERROR_NOT_FOUND);
CHECK(errorIllegalAddress, CUDA_ERROR_ILLEGAL_ADDRESS);
CHECK(errorLaunchOutOfResources, CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
CHECK(errorLaunchTimeout, CUDA_ERROR_LAUNCH_TIMEOUT);
CHECK(errorHostMemoryAlreadyRegistered,
      CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
CHECK(errorHostMemoryNotRegistered, CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
CHECK(errorMisalignedAddress, CUDA_ERROR_MISALIGNED_ADDRESS);
CHECK(errorLaunchFailed, CUDA_ERROR_LAUNCH_FAILED);
CHECK(errorSystemDriverMismatch, CUDA_ERROR_SYSTEM_DRIVER_MISMATCH);
CHECK(attrSharedPerBlock, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK);
CHECK(attrClockRate, CU_DEVICE_ATTRIBUTE_CLOCK_RATE);
CHECK(attrMultiprocessors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
CHECK(attrPciBus, CU_DEVICE_ATTRIBUTE_PCI_BUS_ID);
CHECK(attrPciDevice, CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID);
CHECK(attrPciDomain, CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID);
CHECK(attrMemoryClockRate, CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE);
CHECK(attrMemoryBusWidth, CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH);
CHECK(attrL2Bytes, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
CHECK(attrCcMajor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
CHECK(attrCcMinor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
CHECK(attrSharedPerMultiprocessor,
      CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR);
CHECK(attrRegistersPerMultiprocessor,
      CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR);
CHECK(attrSharedPerBlockOptin,
      CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
CHECK(funcMaxThreadsPerBlock, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
CHECK(funcSharedBytes, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES);
CHECK(funcRegisters, CU_FUNC_ATTRIBUTE_NUM_REGS);
CHECK(funcMaxDynamicSharedBytes,
      CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
CHECK(funcNonPortableCluster,
      CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED);
CHECK(jitErrorLog, CU_JIT_ERROR_LOG_BUFFER);
CHECK(jitErrorLogBytes, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES);
CHECK(jitOptimizationLevel, CU_JIT_OPTIMIZATION_LEVEL);
CHECK(streamNonBlocking, CU_STREAM_NON_BLOCKING);
CHECK(eventDisableTiming, CU_EVENT_DISABLE_TIMING);
CHECK(memAttachGlobal, CU_MEM_ATTACH_GLOBAL);
CHECK(captureNone, CU_STREAM_CAPTURE_STATUS_NONE);
CHECK(captureThreadLocal, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
CHECK(captureRelaxed, CU_STREAM_CAPTURE_MODE_RELAXED);
CHECK(launchAttributeCluster, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION);
CHECK(launchAttributeProgrammaticSerialization,
      CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION);
#undef CHECK

static_assert(sizeof(own::LaunchAttribute) == sizeof(CUlaunchAttribute));
static_assert(offsetof(own::LaunchAttribute, value) ==
              offsetof(CUlaunchAttribute, value));
static_assert(sizeof(own::LaunchConfig) == sizeof(CUlaunchConfig));
static_assert(offsetof(own::LaunchConfig, attributes) ==
              offsetof(CUlaunchConfig, attrs));
static_assert(offsetof(own::LaunchConfig, attributeCount) ==
              offsetof(CUlaunchConfig, numAttrs));
static_assert(sizeof(own::TensorMap) == sizeof(CUtensorMap));
static_assert(sizeof(own::DevicePtr) == sizeof(CUdeviceptr));

} // namespace

TEST(CudaAbi, MatchesTheToolkit) { SUCCEED(); }

#else

TEST(CudaAbi, MatchesTheToolkit) {
  GTEST_SKIP() << "cuda.h is not installed here";
}

#endif
