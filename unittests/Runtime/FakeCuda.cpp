//===- FakeCuda.cpp - A driver and a cuBLAS without a GPU -----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A shared library with the symbols of libcuda that the runtime opens; those of
// libcublas and libcublasLt are in FakeCublas.cpp. Device memory is host
// memory; a clock counts 10 us for a kernel. One device: sm_90, 227 KB of
// shared memory.
//
//===----------------------------------------------------------------------===//

#include "FakeCuda.h"

#include "nm_sparse/Base/CudaApi.h"
#include "nm_sparse/Base/KernelSymbols.h"

#include <cstdlib>
#include <cstring>
#include <utility>

using namespace nms::cuda;

#define FAKE extern "C" __attribute__((visibility("default")))

namespace {

FakeState state;
double clockUs = 0;
bool capturing = false;
double capturedUs = 0;
Context current = nullptr, saved = nullptr;

Context primary() { return reinterpret_cast<Context>(0x1000); }

template <typename T>
T box(double value) {
  return reinterpret_cast<T>(new double(value));
}
template <typename T>
double &unbox(T handle) {
  return *reinterpret_cast<double *>(handle);
}

Result launched(const unsigned *cluster, unsigned x, unsigned y, unsigned z,
                void **params) {
  if (state.failNextLaunch) {
    Result result = state.failNextLaunch;
    state.failNextLaunch = 0;
    return result;
  }
  state.launches += !capturing;
  state.overlaps = false;
  for (int i = 0; i < 3; ++i)
    state.cluster[i] = cluster ? cluster[i] : 0;
  state.grid[0] = x;
  state.grid[1] = y;
  state.grid[2] = z;
  if (params)
    memcpy(&state.firstParam, params[0], 8);
  state.sumOfFirstParams += state.firstParam;
  spendFakeTime(10);
  return success;
}

} // namespace

void spendFakeTime(double us) { (capturing ? capturedUs : clockUs) += us; }

FAKE FakeState *fakeState() { return &state; }

FAKE Result cuInit(unsigned) { return success; }
FAKE Result cuDriverGetVersion(int *version) {
  *version = 12080;
  return success;
}
FAKE Result cuGetErrorName(Result result, const char **name) {
  *name = result == errorInvalidPtx ? "CUDA_ERROR_INVALID_PTX"
          : result == errorNotFound ? "CUDA_ERROR_NOT_FOUND"
          : result == errorLaunchOutOfResources
              ? "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES"
              : nullptr;
  return *name ? success : errorInvalidValue;
}
FAKE Result cuGetErrorString(Result, const char **text) {
  *text = "as the fake driver says";
  return success;
}
FAKE Result cuDeviceGetCount(int *count) {
  *count = 1;
  return success;
}
FAKE Result cuDeviceGet(Device *device, int) {
  *device = 0;
  return success;
}
FAKE Result cuDeviceGetName(char *name, int, Device) {
  strcpy(name, "Fake GPU");
  return success;
}
FAKE Result cuDeviceGetAttribute(int *value, int attribute, Device) {
  switch (attribute) {
  case attrCcMajor:
    *value = 9;
    break;
  case attrCcMinor:
    *value = 0;
    break;
  case attrSharedPerBlockOptin:
    *value = 232448;
    break;
  case attrClockRate: // as drivers of CUDA 13 do
    return errorInvalidValue;
  default:
    *value = 132;
  }
  return success;
}
FAKE Result cuDeviceTotalMem_v2(size_t *bytes, Device) {
  *bytes = size_t(80) << 30;
  return success;
}
FAKE Result cuDevicePrimaryCtxRetain(Context *context, Device) {
  *context = primary();
  return success;
}
FAKE Result cuCtxGetCurrent(Context *context) {
  *context = current;
  return success;
}
FAKE Result cuCtxPushCurrent_v2(Context context) {
  saved = current;
  current = context;
  ++state.contextDepth;
  return success;
}
FAKE Result cuCtxPopCurrent_v2(Context *context) {
  *context = current;
  current = saved;
  --state.contextDepth;
  return success;
}
FAKE Result cuCtxSynchronize() { return success; }

FAKE Result cuModuleLoadDataEx(Module *module, const void *data, unsigned count,
                               int *options, void **values) {
  if (strstr(static_cast<const char *>(data), "broken")) {
    for (unsigned i = 0; i < count; ++i)
      if (options[i] == jitErrorLog)
        strcpy(static_cast<char *>(values[i]), "line 7: syntax error\n");
    return errorInvalidPtx;
  }
  ++state.moduleLoads;
  state.loadedInMode = state.captureMode;
  *module = box<Module>(0);
  return success;
}
FAKE Result cuModuleUnload(Module) {
  ++state.moduleUnloads;
  return success;
}
FAKE Result cuModuleGetFunction(Function *function, Module, const char *name) {
  if (strcmp(name, "missing") == 0)
    return errorNotFound;
  *function = box<Function>(0);
  return success;
}
FAKE Result cuModuleGetGlobal_v2(DevicePtr *, size_t *, Module,
                                 const char *name) {
  bool exists =
      state.kernelsWait && strstr(name, nms::getWaitsSymbol("").c_str());
  return exists ? success : errorNotFound;
}
FAKE Result cuFuncGetAttribute(int *value, int attribute, Function) {
  *value = attribute == funcMaxThreadsPerBlock ? 1024
           : attribute == funcSharedBytes      ? 1024
                                               : 64;
  return success;
}
FAKE Result cuFuncSetAttribute(Function, int attribute, int value) {
  if (attribute == funcMaxDynamicSharedBytes)
    state.maxDynamicShared = value;
  return success;
}
FAKE Result cuFuncGetParamInfo(Function, size_t index, size_t *offset,
                               size_t *bytes) {
  if (index >= 2)
    return errorInvalidValue;
  *offset = 8 * index;
  *bytes = index == 0 ? 8 : 4;
  return success;
}
FAKE Result cuLaunchKernel(Function, unsigned x, unsigned y, unsigned z,
                           unsigned, unsigned, unsigned, unsigned, Stream,
                           void **params, void **) {
  return launched(nullptr, x, y, z, params);
}
FAKE Result cuLaunchKernelEx(const LaunchConfig *config, Function,
                             void **params, void **) {
  unsigned sizes[3] = {0, 0, 0};
  bool overlaps = false;
  for (unsigned i = 0; i < config->attributeCount; ++i) {
    const LaunchAttribute &attribute = config->attributes[i];
    const auto &cluster = attribute.value.cluster;
    if (attribute.id == launchAttributeProgrammaticSerialization) {
      overlaps = attribute.value.programmaticSerialization != 0;
      continue;
    }
    sizes[0] = cluster.x;
    sizes[1] = cluster.y;
    sizes[2] = cluster.z;
  }
  Result result =
      launched(sizes, config->gridX, config->gridY, config->gridZ, params);
  state.overlaps = overlaps;
  return result;
}

FAKE Result cuStreamCreate(Stream *stream, unsigned) {
  *stream = box<Stream>(0);
  return success;
}
FAKE Result cuStreamDestroy_v2(Stream stream) {
  delete &unbox(stream);
  return success;
}
FAKE Result cuStreamSynchronize(Stream) {
  ++state.syncs;
  return success;
}
FAKE Result cuStreamWaitEvent(Stream, Event, unsigned) { return success; }
FAKE Result cuStreamIsCapturing(Stream, int *status) {
  *status = state.streamCapture;
  return success;
}
FAKE Result cuThreadExchangeStreamCaptureMode(int *mode) {
  std::swap(*mode, state.captureMode);
  return success;
}
FAKE Result cuStreamBeginCapture_v2(Stream, int) {
  capturing = true;
  capturedUs = 0;
  return success;
}
FAKE Result cuStreamEndCapture(Stream, Graph *graph) {
  capturing = false;
  *graph = box<Graph>(capturedUs);
  return success;
}
FAKE Result cuGraphInstantiateWithFlags(GraphExec *exec, Graph graph,
                                        unsigned long long) {
  *exec = box<GraphExec>(unbox(graph));
  return success;
}
FAKE Result cuGraphLaunch(GraphExec exec, Stream) {
  ++state.graphLaunches;
  clockUs += unbox(exec);
  return success;
}
FAKE Result cuGraphExecDestroy(GraphExec exec) {
  delete &unbox(exec);
  return success;
}
FAKE Result cuGraphDestroy(Graph graph) {
  delete &unbox(graph);
  return success;
}

FAKE Result cuEventCreate(Event *event, unsigned) {
  *event = box<Event>(0);
  return success;
}
FAKE Result cuEventDestroy_v2(Event event) {
  delete &unbox(event);
  return success;
}
FAKE Result cuEventRecord(Event event, Stream) {
  unbox(event) = clockUs;
  return success;
}
FAKE Result cuEventSynchronize(Event) { return success; }
FAKE Result cuEventElapsedTime(float *milliseconds, Event begin, Event end) {
  *milliseconds = static_cast<float>((unbox(end) - unbox(begin)) / 1000);
  return success;
}

FAKE Result cuMemAlloc_v2(DevicePtr *pointer, size_t bytes) {
  *pointer = reinterpret_cast<DevicePtr>(malloc(bytes));
  return success;
}
FAKE Result cuMemAllocManaged(DevicePtr *pointer, size_t bytes, unsigned) {
  return cuMemAlloc_v2(pointer, bytes);
}
FAKE Result cuMemFree_v2(DevicePtr pointer) {
  ++state.frees;
  free(reinterpret_cast<void *>(pointer));
  return success;
}
FAKE Result cuMemcpyAsync(DevicePtr dst, DevicePtr src, size_t bytes, Stream) {
  memcpy(reinterpret_cast<void *>(dst), reinterpret_cast<void *>(src), bytes);
  return success;
}
FAKE Result cuMemcpyHtoD_v2(DevicePtr dst, const void *src, size_t bytes) {
  ++state.copiesWithoutStream;
  memcpy(reinterpret_cast<void *>(dst), src, bytes);
  return success;
}
FAKE Result cuMemcpyDtoH_v2(void *dst, DevicePtr src, size_t bytes) {
  memcpy(dst, reinterpret_cast<void *>(src), bytes);
  return success;
}
FAKE Result cuMemsetD32Async(DevicePtr dst, unsigned value, size_t count,
                             Stream) {
  ++state.memsets;
  for (size_t i = 0; i < count; ++i)
    reinterpret_cast<unsigned *>(dst)[i] = value;
  spendFakeTime(1);
  return success;
}
FAKE Result cuMemsetD16Async(DevicePtr dst, unsigned short value, size_t count,
                             Stream) {
  ++state.memsets;
  for (size_t i = 0; i < count; ++i)
    reinterpret_cast<unsigned short *>(dst)[i] = value;
  return success;
}
FAKE Result cuMemHostRegister_v2(void *, size_t, unsigned) { return success; }
FAKE Result cuMemHostUnregister(void *) { return success; }
FAKE Result cuTensorMapEncodeTiled(TensorMap *map, int, uint32_t, void *base,
                                   const uint64_t *, const uint64_t *strides,
                                   const uint32_t *boxes, const uint32_t *, int,
                                   int, int, int) {
  ++state.tensorMaps;
  map->opaque[0] = reinterpret_cast<uint64_t>(base);
  state.boxInner = boxes[0];
  state.boxOuter = boxes[1];
  state.strideBytes = strides[0];
  return success;
}
FAKE Result cuTensorMapEncodeIm2col(TensorMap *map, int, uint32_t, void *base,
                                    const uint64_t *, const uint64_t *strides,
                                    const int *lower, const int *,
                                    uint32_t channels, uint32_t pixels,
                                    const uint32_t *, int, int, int, int) {
  ++state.tensorMaps;
  map->opaque[0] = reinterpret_cast<uint64_t>(base);
  map->opaque[1] = static_cast<uint64_t>(lower[0] + 1000);
  state.boxInner = channels;
  state.boxOuter = pixels;
  state.strideBytes = strides[0];
  return success;
}
