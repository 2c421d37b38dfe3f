//===- CSupport.cpp - what all files of C share ---------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CSupport.h"

using namespace mlir;

StringRef nm_sparse::getCSupport() {
  return R"c(#if CUDA_VERSION < 12000
#error "the kernels need CUDA 12.0 or newer"
#endif

#define TRY(call)                                                              \
  do {                                                                         \
    status = (call);                                                           \
    if (status != CUDA_SUCCESS)                                                \
      goto done;                                                               \
  } while (0)

// Not every file calls all of these.
#define UNUSED __attribute__((unused))

enum { SHARED_WITHOUT_CONSENT = 48 * 1024, DEVICES = 64, MAX_RANK = 5 };

static CUkernel kernels[KERNELS];
// 0: not loaded, 1: being loaded, 2: loaded.
static int loaded;

// A library belongs to no context: its kernels run on each device.
static CUresult load(void) {
  CUlibrary library;
  CUresult status =
      cuLibraryLoadData(&library, image, NULL, NULL, 0, NULL, NULL, 0);
  for (int i = 0; status == CUDA_SUCCESS && i < KERNELS; ++i)
    status = cuLibraryGetKernel(&kernels[i], library, kernel_names[i]);
  return status;
}

static CUresult prepare(void) {
  while (__atomic_load_n(&loaded, __ATOMIC_ACQUIRE) != 2) {
    int none = 0;
    if (!__atomic_compare_exchange_n(&loaded, &none, 1, 0, __ATOMIC_ACQUIRE,
                                     __ATOMIC_RELAXED))
      continue;
    CUresult status = load();
    __atomic_store_n(&loaded, status == CUDA_SUCCESS ? 2 : 0, __ATOMIC_RELEASE);
    if (status != CUDA_SUCCESS)
      return status;
  }
  return CUDA_SUCCESS;
}

static UNUSED int64_t ceil_div(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}
static UNUSED int64_t minimum(int64_t a, int64_t b) { return a < b ? a : b; }
static UNUSED int64_t maximum(int64_t a, int64_t b) { return a > b ? a : b; }

// A kernel takes it as 32 bits, which it has no sign in.
static UNUSED CUresult narrow(int32_t *to, int64_t number) {
  *to = (int32_t)number;
  return number < 0 || number > INT32_MAX ? CUDA_ERROR_INVALID_VALUE
                                          : CUDA_SUCCESS;
}

// Where the next buffer of so many bytes begins in the workspace.
static UNUSED int64_t take(int64_t *bytes, int64_t size) {
  int64_t at = *bytes;
  *bytes += (size + 255) / 256 * 256;
  return at;
}

// A kernel may use more shared memory than usual once its device agrees.
static CUresult allow_shared(int kernel, unsigned bytes) {
  static unsigned allowed[KERNELS][DEVICES];
  CUdevice device;
  CUresult status = cuCtxGetDevice(&device);
  if (status != CUDA_SUCCESS || bytes <= SHARED_WITHOUT_CONSENT)
    return status;
  unsigned *known = device < DEVICES ? &allowed[kernel][device] : NULL;
  if (known && __atomic_load_n(known, __ATOMIC_RELAXED) >= bytes)
    return CUDA_SUCCESS;
  status =
      cuKernelSetAttribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                           (int)bytes, kernels[kernel], device);
  if (status == CUDA_SUCCESS && known)
    __atomic_store_n(known, bytes, __ATOMIC_RELAXED);
  return status;
}

static CUresult launch(int kernel, const int64_t *grid, const int64_t *block,
                       int64_t shared, void **parameters, CUstream stream) {
  CUresult status = allow_shared(kernel, (unsigned)shared);
  if (status != CUDA_SUCCESS)
    return status;
  CUlaunchAttribute early = {0};
  early.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
  early.value.programmaticStreamSerializationAllowed = 1;
  CUlaunchConfig config = {0};
  config.gridDimX = (unsigned)grid[0];
  config.gridDimY = (unsigned)grid[1];
  config.gridDimZ = (unsigned)grid[2];
  config.blockDimX = (unsigned)block[0];
  config.blockDimY = (unsigned)block[1];
  config.blockDimZ = (unsigned)block[2];
  config.sharedMemBytes = (unsigned)shared;
  config.hStream = stream;
  config.attrs = &early;
  config.numAttrs = kernel_waits[kernel];
  return cuLaunchKernelEx(&config, (CUfunction)kernels[kernel], parameters,
                          NULL);
}

// Sizes, strides (in elements) and box have the outermost dimension first.
static UNUSED CUresult encode(CUtensorMap *map, int type, int rank,
                              int64_t element_bytes, CUdeviceptr base,
                              const int64_t *sizes, const int64_t *strides,
                              const uint32_t *box, int swizzle,
                              int promotion) {
  cuuint64_t extents[MAX_RANK], pitches[MAX_RANK];
  cuuint32_t boxes[MAX_RANK], steps[MAX_RANK];
  for (int i = 0; i < rank; ++i) {
    int dim = rank - 1 - i;
    // The map of an empty array is not read, but must be one.
    extents[i] = (cuuint64_t)maximum(sizes[dim], 1);
    if (i > 0)
      pitches[i - 1] = (cuuint64_t)maximum(strides[dim] * element_bytes, 16);
    boxes[i] = box[dim];
    steps[i] = 1;
  }
  return cuTensorMapEncodeTiled(
      map, (CUtensorMapDataType)type, (cuuint32_t)rank, (void *)base, extents,
      pitches, boxes, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
      (CUtensorMapSwizzle)swizzle, (CUtensorMapL2promotion)promotion,
      CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
}

// Every element becomes `value`, which elements of 4 bytes can have, or any
// ones for 0 and -1.
static UNUSED CUresult fill(CUdeviceptr at, int64_t count,
                            int64_t element_bytes, int64_t value,
                            CUstream stream) {
  if (count == 0)
    return CUDA_SUCCESS;
  if (element_bytes == 4)
    return cuMemsetD32Async(at, (unsigned)value, (size_t)count, stream);
  if (element_bytes == 2)
    return cuMemsetD16Async(at, (unsigned short)value, (size_t)count, stream);
  if (value != 0 && value != -1)
    return CUDA_ERROR_INVALID_VALUE;
  return cuMemsetD8Async(at, (unsigned char)value,
                         (size_t)(count * element_bytes), stream);
}

// Copies an array with strides to rows without gaps.
static UNUSED CUresult copy(CUdeviceptr to, CUdeviceptr from, int rank,
                            const int64_t *sizes, const int64_t *strides,
                            int64_t element_bytes, CUstream stream) {
  if (rank > 2) {
    int64_t step = element_bytes;
    for (int i = 1; i < rank; ++i)
      step *= sizes[i];
    CUresult status = CUDA_SUCCESS;
    for (int64_t i = 0; status == CUDA_SUCCESS && i < sizes[0]; ++i)
      status = copy(to + i * step, from + i * strides[0] * element_bytes,
                    rank - 1, sizes + 1, strides + 1, element_bytes, stream);
    return status;
  }
  CUDA_MEMCPY2D rows = {0};
  rows.srcMemoryType = rows.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  rows.srcDevice = from;
  rows.dstDevice = to;
  rows.Height = rank == 2 ? (size_t)sizes[0] : 1;
  rows.WidthInBytes = (size_t)((rank ? sizes[rank - 1] : 1) * element_bytes);
  rows.dstPitch = rows.WidthInBytes;
  rows.srcPitch =
      rank == 2 ? (size_t)(strides[0] * element_bytes) : rows.WidthInBytes;
  if (rows.Height == 0 || rows.WidthInBytes == 0)
    return CUDA_SUCCESS;
  return cuMemcpy2DAsync(&rows, stream);
}

static inline CUresult release(CUdeviceptr workspace, CUstream stream,
                               CUresult status) {
  CUresult freed = workspace ? cuMemFreeAsync(workspace, stream) : CUDA_SUCCESS;
  return status == CUDA_SUCCESS ? freed : status;
}
)c";
}
