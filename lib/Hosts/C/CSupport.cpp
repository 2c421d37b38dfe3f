//===- CSupport.cpp - what all files of C share ---------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CSupport.h"

using namespace mlir;

static constexpr llvm::StringLiteral kSupport =
    R"c(#if CUDA_VERSION < 12000
#error "the kernels need CUDA 12.0 or newer"
#endif

#define NMS_TRY(call)                                                          \
  do {                                                                         \
    status = (call);                                                           \
    if (status != CUDA_SUCCESS)                                                \
      goto done;                                                               \
  } while (0)

// Not every file calls all of these.
#define NMS_UNUSED __attribute__((unused))

enum {
  NMS_SHARED_WITHOUT_CONSENT = 48 * 1024,
  NMS_DEVICES = 64,
  NMS_ALIGNMENT = 256, // of the workspace and of the buffers in it
  NMS_MAX_RANK = 5
};

static CUkernel nms_kernels[NMS_KERNELS];
// 0: not loaded, 1: being loaded, 2: loaded.
static int nms_loaded;

// A library belongs to no context: its kernels run on each device.
static CUresult nms_load(void) {
  CUlibrary library;
  CUresult status =
      cuLibraryLoadData(&library, nms_image, NULL, NULL, 0, NULL, NULL, 0);
  if (status != CUDA_SUCCESS)
    return status;
  for (int i = 0; status == CUDA_SUCCESS && i < NMS_KERNELS; ++i)
    status = cuLibraryGetKernel(&nms_kernels[i], library, nms_kernel_names[i]);
  if (status != CUDA_SUCCESS)
    cuLibraryUnload(library);
  return status;
}

static CUresult nms_prepare(void) {
  while (__atomic_load_n(&nms_loaded, __ATOMIC_ACQUIRE) != 2) {
    int none = 0;
    if (!__atomic_compare_exchange_n(&nms_loaded, &none, 1, 0, __ATOMIC_ACQUIRE,
                                     __ATOMIC_RELAXED))
      continue;
    CUresult status = nms_load();
    __atomic_store_n(&nms_loaded, status == CUDA_SUCCESS ? 2 : 0,
                     __ATOMIC_RELEASE);
    if (status != CUDA_SUCCESS)
      return status;
  }
  return CUDA_SUCCESS;
}

// Arrays begin at a multiple of 16 bytes, and empty ones need not exist.
static NMS_UNUSED int nms_is_misplaced(const void *array, int has_elements) {
  return (uintptr_t)array % 16 != 0 || (!array && has_elements);
}

static NMS_UNUSED int nms_is_misplaced_workspace(const void *workspace,
                                                 size_t bytes) {
  return bytes > 0 && (!workspace || (uintptr_t)workspace % NMS_ALIGNMENT != 0);
}

static NMS_UNUSED int64_t nms_ceil_div(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}
static NMS_UNUSED int64_t nms_minimum(int64_t a, int64_t b) {
  return a < b ? a : b;
}
static NMS_UNUSED int64_t nms_maximum(int64_t a, int64_t b) {
  return a > b ? a : b;
}

// Kernels take a size as 32 bits, without a sign.
static NMS_UNUSED CUresult nms_narrow(int32_t *to, int64_t number) {
  *to = (int32_t)number;
  return number < 0 || number > INT32_MAX ? CUDA_ERROR_INVALID_VALUE
                                          : CUDA_SUCCESS;
}

// Where the next buffer of so many bytes begins in the workspace.
static NMS_UNUSED int64_t nms_take(int64_t *bytes, int64_t size) {
  int64_t at = *bytes;
  *bytes += (size + NMS_ALIGNMENT - 1) / NMS_ALIGNMENT * NMS_ALIGNMENT;
  return at;
}

// A kernel may use more shared memory than usual once its device agrees.
static NMS_UNUSED CUresult nms_allow_shared(int kernel, unsigned bytes) {
  static unsigned allowed[NMS_KERNELS][NMS_DEVICES];
  CUdevice device;
  CUresult status = cuCtxGetDevice(&device);
  if (status != CUDA_SUCCESS || bytes <= NMS_SHARED_WITHOUT_CONSENT)
    return status;
  unsigned *known = device < NMS_DEVICES ? &allowed[kernel][device] : NULL;
  if (known && __atomic_load_n(known, __ATOMIC_RELAXED) >= bytes)
    return CUDA_SUCCESS;
  status =
      cuKernelSetAttribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                           (int)bytes, nms_kernels[kernel], device);
  if (status == CUDA_SUCCESS && known)
    __atomic_store_n(known, bytes, __ATOMIC_RELAXED);
  return status;
}

static NMS_UNUSED CUresult nms_launch(int kernel, const int64_t *grid,
                                      const int64_t *block, int64_t shared,
                                      void **parameters, CUstream stream) {
  for (int i = 0; i < 3; ++i)
    if (grid[i] > INT32_MAX)
      return CUDA_ERROR_INVALID_VALUE;
  CUresult status = nms_allow_shared(kernel, (unsigned)shared);
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
  config.numAttrs = nms_kernel_waits[kernel];
  return cuLaunchKernelEx(&config, (CUfunction)nms_kernels[kernel], parameters,
                          NULL);
}

// Sizes and strides (in elements) have the outermost dimension first.
static NMS_UNUSED void nms_describe(int rank, int64_t element_bytes,
                                    const int64_t *sizes,
                                    const int64_t *strides,
                                    cuuint64_t *extents, cuuint64_t *pitches) {
  for (int i = 0; i < rank; ++i) {
    int dim = rank - 1 - i;
    // The map of an empty array is not read, but must be one.
    extents[i] = (cuuint64_t)nms_maximum(sizes[dim], 1);
    if (i > 0)
      pitches[i - 1] =
          (cuuint64_t)nms_maximum(strides[dim] * element_bytes, 16);
  }
}

// As above; so has box.
static NMS_UNUSED CUresult nms_encode(CUtensorMap *map, int type, int rank,
                                      int64_t element_bytes, CUdeviceptr base,
                                      const int64_t *sizes,
                                      const int64_t *strides,
                                      const uint32_t *box, int swizzle,
                                      int promotion) {
  cuuint64_t extents[NMS_MAX_RANK], pitches[NMS_MAX_RANK];
  cuuint32_t boxes[NMS_MAX_RANK], steps[NMS_MAX_RANK];
  nms_describe(rank, element_bytes, sizes, strides, extents, pitches);
  for (int i = 0; i < rank; ++i) {
    boxes[i] = box[rank - 1 - i];
    steps[i] = 1;
  }
  return cuTensorMapEncodeTiled(
      map, (CUtensorMapDataType)type, (cuuint32_t)rank, (void *)base, extents,
      pitches, boxes, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
      (CUtensorMapSwizzle)swizzle, (CUtensorMapL2promotion)promotion,
      CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
}

// The map is in mode im2col, of images of (h, w, channels): a copy takes some
// channels of box[0] pixels, of those from `lower` to `upper` beyond the last
// one in each `step`. These are for (h, w).
static NMS_UNUSED CUresult nms_encode_im2col(
    CUtensorMap *map, int type, int64_t element_bytes, CUdeviceptr base,
    const int64_t *sizes, const int64_t *strides, const uint32_t *box,
    const int *lower, const int *upper, const uint32_t *step, int swizzle,
    int promotion) {
  cuuint64_t extents[4], pitches[4];
  cuuint32_t steps[4] = {1, step[1], step[0], 1};
  int first[2] = {lower[1], lower[0]}, last[2] = {upper[1], upper[0]};
  nms_describe(4, element_bytes, sizes, strides, extents, pitches);
  return cuTensorMapEncodeIm2col(
      map, (CUtensorMapDataType)type, 4, (void *)base, extents, pitches, first,
      last, box[1], box[0], steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
      (CUtensorMapSwizzle)swizzle, (CUtensorMapL2promotion)promotion,
      CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
}

// Every element becomes `value`, which elements of 4 bytes can have, or any
// ones for 0 and -1.
static NMS_UNUSED CUresult nms_fill(CUdeviceptr at, int64_t count,
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
static NMS_UNUSED CUresult nms_copy(CUdeviceptr to, CUdeviceptr from, int rank,
                                    const int64_t *sizes,
                                    const int64_t *strides,
                                    int64_t element_bytes, CUstream stream) {
  if (rank > 2) {
    int64_t step = element_bytes;
    for (int i = 1; i < rank; ++i)
      step *= sizes[i];
    CUresult status = CUDA_SUCCESS;
    for (int64_t i = 0; status == CUDA_SUCCESS && i < sizes[0]; ++i)
      status =
          nms_copy(to + i * step, from + i * strides[0] * element_bytes,
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

static NMS_UNUSED CUresult nms_allocate(void **workspace, size_t bytes,
                                        CUstream stream) {
  CUdeviceptr memory = 0;
  CUresult status =
      bytes > 0 ? cuMemAllocAsync(&memory, bytes, stream) : CUDA_SUCCESS;
  *workspace = (void *)memory;
  return status;
}

static NMS_UNUSED CUresult nms_release(void *workspace, CUstream stream,
                                       CUresult status) {
  CUresult freed = workspace ? cuMemFreeAsync((CUdeviceptr)workspace, stream)
                             : CUDA_SUCCESS;
  return status == CUDA_SUCCESS ? freed : status;
}
)c";

StringRef nm_sparse::getCSupport() { return kSupport; }
