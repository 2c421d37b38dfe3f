//===- MGPU.h - Entry points that lowered host code calls -------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The functions that MLIR 22's host code refers to after gpu-to-llvm, whether
// it runs under mlir-runner, an ExecutionEngine or from an object file.
// Streams, events, modules and functions are the driver's own handles. None of
// them reports a status: a failure goes to the error policy (Error.h).
//
// Differences from a plain wrapper: modules are cached by content; a grid with
// an empty dimension launches nothing; dynamic shared memory above 48 KB is
// opted into; tensor maps live in device memory for the life of the process and
// equal ones share one copy; the calls cooperate with the recorder
// (Recorder.h).
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_RUNTIME_MGPU_H
#define NM_SPARSE_RUNTIME_MGPU_H

#include "nm_sparse/Base/Kind.h"

#ifdef __cplusplus
extern "C" {
#endif

/// A cubin or fatbin of `size` bytes.
NMS_API void *mgpuModuleLoad(const void *data, size_t size);
/// PTX text that ends in a zero byte. `optLevel` is 0 to 4.
NMS_API void *mgpuModuleLoadJIT(const void *data, int32_t optLevel);
NMS_API void mgpuModuleUnload(void *module);
NMS_API void *mgpuModuleGetFunction(void *module, const char *name);

NMS_API void mgpuLaunchKernel(void *function, int64_t gridX, int64_t gridY,
                              int64_t gridZ, int64_t blockX, int64_t blockY,
                              int64_t blockZ, int32_t sharedBytes, void *stream,
                              void **params, void **extra, int64_t paramCount);
NMS_API void mgpuLaunchClusterKernel(void *function, int64_t clusterX,
                                     int64_t clusterY, int64_t clusterZ,
                                     int64_t gridX, int64_t gridY,
                                     int64_t gridZ, int64_t blockX,
                                     int64_t blockY, int64_t blockZ,
                                     int32_t sharedBytes, void *stream,
                                     void **params, void **extra);

NMS_API void *mgpuStreamCreate(void);
NMS_API void mgpuStreamDestroy(void *stream);
NMS_API void mgpuStreamSynchronize(void *stream);
NMS_API void mgpuStreamWaitEvent(void *stream, void *event);

NMS_API void *mgpuEventCreate(void);
NMS_API void mgpuEventDestroy(void *event);
NMS_API void mgpuEventSynchronize(void *event);
NMS_API void mgpuEventRecord(void *event, void *stream);

/// `hostShared` asks for managed memory, which the CPU can use as well.
NMS_API void *mgpuMemAlloc(uint64_t bytes, void *stream, bool hostShared);
NMS_API void mgpuMemFree(void *pointer, void *stream);
NMS_API void mgpuMemcpy(void *dst, void *src, size_t bytes, void *stream);
NMS_API void mgpuMemset32(void *dst, uint32_t value, size_t count,
                          void *stream);
NMS_API void mgpuMemset16(void *dst, uint16_t value, size_t count,
                          void *stream);
/// Says that `bytes` of host memory at `host` do not change until
/// nmsReleaseUpload: mgpuMemcpy copies them to the device once, and from there
/// whenever it is asked for them or a part. Several may be held. Returns 0, or
/// nonzero with nmsLastError() set.
NMS_API int nmsHoldUpload(const void *host, size_t bytes);
/// Ends that, and frees the copy. Returns 0, or nonzero with nmsLastError()
/// set.
NMS_API int nmsReleaseUpload(const void *host);

/// `descriptor` is a ranked memref descriptor without gaps.
NMS_API void mgpuMemHostRegisterMemRef(int64_t rank, void *descriptor,
                                       int64_t elementBytes);
NMS_API void mgpuMemHostUnregisterMemRef(int64_t rank, void *descriptor,
                                         int64_t elementBytes);

NMS_API void mgpuSetDefaultDevice(int32_t device);

/// Encodes a tiled tensor map for a memref of rank 1 to 5 whose innermost
/// stride is 1, and returns a device copy of its 128 bytes. `boxDims` is
/// ordered as the memref is, outermost first; the result is null for one
/// without elements.
NMS_API void *
mgpuTensorMapEncodeTiledMemref(int64_t rank, void *descriptor, int64_t dataType,
                               int64_t interleave, int64_t swizzle,
                               int64_t l2Promotion, int64_t oobFill,
                               const int64_t *boxDims);

/// The same in mode im2col, for a memref of images of (h, w, channels).
/// `boxDims` is the pixels and channels of one copy. It goes over the pixels of
/// an image from `lower` to `upper` beyond the last one in steps of `strides`:
/// two numbers each, for h and w.
NMS_API void *mgpuTensorMapEncodeIm2colMemref(
    int64_t rank, void *descriptor, int64_t dataType, int64_t interleave,
    int64_t swizzle, int64_t l2Promotion, int64_t oobFill,
    const int64_t *boxDims, const int64_t *lower, const int64_t *upper,
    const int64_t *strides);

#ifdef __cplusplus
}
#endif

#endif // NM_SPARSE_RUNTIME_MGPU_H
