//===- Memory.cpp - allocations, copies, pools ----------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "EmulatedCuda.h"

#include "Driver/Driver.h"
#include <cstdlib>
#include <map>

using namespace nms::cuda;
using namespace emulated_cuda;
using mlir::nm_sparse::emulator::AccessKind;
using mlir::nm_sparse::emulator::getDriverMemory;

//===----------------------------------------------------------------------===//
// Allocations
//===----------------------------------------------------------------------===//

static std::mutex allocationsMutex;
/// Bytes by address.
static std::map<DevicePtr, size_t> &getAllocations() {
  static auto *allocations = new std::map<DevicePtr, size_t>;
  return *allocations;
}

static Result note(Result result, const DevicePtr *pointer, size_t bytes) {
  if (result != success)
    return result;
  std::lock_guard<std::mutex> lock(allocationsMutex);
  getAllocations()[*pointer] = bytes;
  return success;
}

/// The allocation that holds `address`; no bytes where there is none.
static std::pair<DevicePtr, size_t> findAllocation(DevicePtr address) {
  std::lock_guard<std::mutex> lock(allocationsMutex);
  auto after = getAllocations().upper_bound(address);
  if (after == getAllocations().begin())
    return {0, 0};
  auto [begin, bytes] = *std::prev(after);
  return address < begin + bytes ? std::pair(begin, bytes)
                                 : std::pair<DevicePtr, size_t>(0, 0);
}

void emulated_cuda::markWritten(DevicePtr address) {
  auto [begin, bytes] = findAllocation(address);
  if (bytes != 0)
    (void)getDriverMemory().access(begin, bytes, AccessKind::Write);
}

CUDA_FUNCTION cuMemAlloc_v2(DevicePtr *pointer, size_t bytes) {
  if (!getDriver())
    return errorNotInitialized;
  return note(getDriver()->memAlloc(pointer, bytes), pointer, bytes);
}

CUDA_FUNCTION cuMemAllocManaged(DevicePtr *pointer, size_t bytes,
                                unsigned flags) {
  if (!getDriver())
    return errorNotInitialized;
  return note(getDriver()->memAllocManaged(pointer, bytes, flags), pointer,
              bytes);
}

CUDA_FUNCTION cuMemFree_v2(DevicePtr pointer) {
  if (!getDriver())
    return errorNotInitialized;
  if (pointer == 0)
    return success;
  {
    std::lock_guard<std::mutex> lock(allocationsMutex);
    getAllocations().erase(pointer);
  }
  return getDriver()->memFree(pointer);
}

CUDA_FUNCTION cuMemAllocAsync(DevicePtr *pointer, size_t bytes, Stream) {
  return cuMemAlloc_v2(pointer, bytes);
}
CUDA_FUNCTION cuMemAllocFromPoolAsync(DevicePtr *pointer, size_t bytes, void *,
                                      Stream) {
  return cuMemAlloc_v2(pointer, bytes);
}
CUDA_FUNCTION cuMemFreeAsync(DevicePtr pointer, Stream) {
  return cuMemFree_v2(pointer);
}

CUDA_FUNCTION cuMemGetInfo_v2(size_t *unused, size_t *total) {
  if (!getDriver())
    return errorNotInitialized;
  Result result = getDriver()->deviceTotalMem(total, getEmulatedDevice());
  *unused = *total;
  return result;
}

CUDA_FUNCTION cuMemGetAddressRange_v2(DevicePtr *base, size_t *bytes,
                                      DevicePtr address) {
  auto [begin, count] = findAllocation(address);
  if (base)
    *base = begin;
  if (bytes)
    *bytes = count;
  return count != 0 ? success
                    : fail(errorNotFound, "the address is of no allocation");
}

//===----------------------------------------------------------------------===//
// Memory of the host
//===----------------------------------------------------------------------===//

CUDA_FUNCTION cuMemHostRegister_v2(void *pointer, size_t bytes,
                                   unsigned flags) {
  if (!getDriver())
    return errorNotInitialized;
  return getDriver()->memHostRegister(pointer, bytes, flags);
}

CUDA_FUNCTION cuMemHostUnregister(void *pointer) {
  if (!getDriver())
    return errorNotInitialized;
  return getDriver()->memHostUnregister(pointer);
}

CUDA_FUNCTION cuMemHostAlloc(void **pointer, size_t bytes, unsigned flags) {
  constexpr size_t page = 4096;
  *pointer = std::aligned_alloc(page, (bytes + page - 1) / page * page);
  if (!*pointer)
    return fail(errorOutOfMemory, "the host has too little memory");
  Result result = cuMemHostRegister_v2(*pointer, bytes, flags);
  if (result != success)
    std::free(*pointer);
  return result;
}
CUDA_FUNCTION cuMemAllocHost_v2(void **pointer, size_t bytes) {
  return cuMemHostAlloc(pointer, bytes, 0);
}

CUDA_FUNCTION cuMemFreeHost(void *pointer) {
  Result result = cuMemHostUnregister(pointer);
  if (result == success)
    std::free(pointer);
  return result;
}

CUDA_FUNCTION cuMemHostGetDevicePointer_v2(DevicePtr *address, void *pointer,
                                           unsigned) {
  *address = reinterpret_cast<DevicePtr>(pointer);
  return getDriver() ? success : errorNotInitialized;
}

//===----------------------------------------------------------------------===//
// Pools
//===----------------------------------------------------------------------===//

// A pool has no memory of its own.
static char pool;

CUDA_FUNCTION cuMemPoolCreate(void **created, const void *) {
  *created = &pool;
  return success;
}
CUDA_FUNCTION cuMemPoolDestroy(void *) { return success; }
CUDA_FUNCTION cuDeviceGetDefaultMemPool(void **found, Device) {
  *found = &pool;
  return success;
}
CUDA_FUNCTION cuDeviceGetMemPool(void **found, Device) {
  *found = &pool;
  return success;
}
/// Attributes up to 3 are of 4 bytes, the others, which count bytes, of 8.
CUDA_FUNCTION cuMemPoolGetAttribute(void *, int attribute, void *value) {
  if (attribute <= 3)
    *static_cast<int *>(value) = 0;
  else
    *static_cast<uint64_t *>(value) = 0;
  return success;
}
CUDA_FUNCTION cuMemPoolSetAttribute(void *, int, void *) { return success; }
CUDA_FUNCTION cuMemPoolSetAccess(void *, const void *, size_t) {
  return success;
}
CUDA_FUNCTION cuMemPoolTrimTo(void *, size_t) { return success; }
CUDA_FUNCTION cuMemPrefetchAsync(DevicePtr, size_t, Device, Stream) {
  return success;
}

//===----------------------------------------------------------------------===//
// Copies
//===----------------------------------------------------------------------===//

CUDA_FUNCTION cuMemcpyAsync(DevicePtr target, DevicePtr source, size_t bytes,
                            Stream stream) {
  if (!getDriver())
    return errorNotInitialized;
  return getDriver()->memcpyAsync(target, source, bytes, stream);
}
CUDA_FUNCTION cuMemcpy(DevicePtr target, DevicePtr source, size_t bytes) {
  return cuMemcpyAsync(target, source, bytes, nullptr);
}
CUDA_FUNCTION cuMemcpyDtoDAsync_v2(DevicePtr target, DevicePtr source,
                                   size_t bytes, Stream stream) {
  return cuMemcpyAsync(target, source, bytes, stream);
}
CUDA_FUNCTION cuMemcpyDtoD_v2(DevicePtr target, DevicePtr source,
                              size_t bytes) {
  return cuMemcpyAsync(target, source, bytes, nullptr);
}
CUDA_FUNCTION cuMemcpyHtoD_v2(DevicePtr target, const void *source,
                              size_t bytes) {
  if (!getDriver())
    return errorNotInitialized;
  return getDriver()->memcpyHtoD(target, source, bytes);
}
CUDA_FUNCTION cuMemcpyHtoDAsync_v2(DevicePtr target, const void *source,
                                   size_t bytes, Stream) {
  return cuMemcpyHtoD_v2(target, source, bytes);
}
CUDA_FUNCTION cuMemcpyDtoH_v2(void *target, DevicePtr source, size_t bytes) {
  if (!getDriver())
    return errorNotInitialized;
  return getDriver()->memcpyDtoH(target, source, bytes);
}
CUDA_FUNCTION cuMemcpyDtoHAsync_v2(void *target, DevicePtr source, size_t bytes,
                                   Stream) {
  return cuMemcpyDtoH_v2(target, source, bytes);
}

CUDA_FUNCTION cuMemsetD32Async(DevicePtr target, unsigned value, size_t count,
                               Stream stream) {
  if (!getDriver())
    return errorNotInitialized;
  return getDriver()->memsetD32Async(target, value, count, stream);
}
CUDA_FUNCTION cuMemsetD32_v2(DevicePtr target, unsigned value, size_t count) {
  return cuMemsetD32Async(target, value, count, nullptr);
}
CUDA_FUNCTION cuMemsetD16Async(DevicePtr target, unsigned short value,
                               size_t count, Stream stream) {
  if (!getDriver())
    return errorNotInitialized;
  return getDriver()->memsetD16Async(target, value, count, stream);
}
CUDA_FUNCTION cuMemsetD16_v2(DevicePtr target, unsigned short value,
                             size_t count) {
  return cuMemsetD16Async(target, value, count, nullptr);
}
/// The emulated driver has no memset of bytes.
CUDA_FUNCTION cuMemsetD8Async(DevicePtr target, unsigned char value,
                              size_t count, Stream) {
  std::string bytes(count, static_cast<char>(value));
  return cuMemcpyHtoD_v2(target, bytes.data(), count);
}
CUDA_FUNCTION cuMemsetD8_v2(DevicePtr target, unsigned char value,
                            size_t count) {
  return cuMemsetD8Async(target, value, count, nullptr);
}
