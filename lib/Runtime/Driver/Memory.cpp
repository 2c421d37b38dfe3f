//===- Memory.cpp - Streams, events and memory of compiled host code ------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../Support/Memref.h"
#include "Functions.h"
#include "HeldUploads.h"
#include "RecorderState.h"
#include "nm_sparse/Runtime/MGPU.h"

using namespace nms;

namespace {

cuda::DevicePtr devicePtr(const void *pointer) {
  return reinterpret_cast<cuda::DevicePtr>(pointer);
}

/// Bytes and base address of the memref that is to be (un)registered.
bool hostRange(const char *entry, int64_t rank, void *descriptor,
               int64_t elementBytes, void *&base, size_t &bytes) {
  if (rank < 0 || !descriptor || elementBytes < 1)
    return !fail("%s: rank %lld, descriptor %p and %lld bytes an element are "
                 "not a memref: pass a ranked descriptor",
                 entry, static_cast<long long>(rank), descriptor,
                 static_cast<long long>(elementBytes));
  MemrefView view(rank, descriptor);
  if (!view.isContiguous())
    return !fail("%s: the memref has gaps between its elements: register the "
                 "whole buffer, or copy it to a contiguous one",
                 entry);
  base = static_cast<char *>(view.aligned) + view.offset * elementBytes;
  bytes = static_cast<size_t>(view.elements() * elementBytes);
  return true;
}

} // namespace

extern "C" void *mgpuStreamCreate() {
  if (adoptedStream().active)
    return adoptedStream().stream;
  cuda::Stream stream = nullptr;
  Context cu;
  if (!cu || !cu.check(cu->streamCreate(&stream, cuda::streamNonBlocking),
                       "creating a stream")) {
    raise();
    return nullptr;
  }
  return stream;
}

extern "C" void mgpuStreamDestroy(void *stream) {
  AdoptedStream &adopted = adoptedStream();
  if (!stream || (adopted.active && adopted.stream == stream))
    return;
  Context cu;
  if (!cu || !cu.check(cu->streamDestroy(static_cast<cuda::Stream>(stream)),
                       "destroying a stream"))
    raise();
}

extern "C" void mgpuStreamSynchronize(void *stream) {
  AdoptedStream &adopted = adoptedStream();
  if (adopted.active && adopted.skipSync && adopted.stream == stream)
    return;
  Context cu;
  if (!cu ||
      !cu.check(cu->streamSynchronize(static_cast<cuda::Stream>(stream)),
                "waiting for a stream (the last kernel launched was '%s')",
                lastLaunchedKernel().c_str()))
    raise();
}

extern "C" void mgpuStreamWaitEvent(void *stream, void *event) {
  Context cu;
  if (!cu || !cu.check(cu->streamWaitEvent(static_cast<cuda::Stream>(stream),
                                           static_cast<cuda::Event>(event), 0),
                       "letting a stream wait for an event"))
    raise();
}

extern "C" void *mgpuEventCreate() {
  cuda::Event event = nullptr;
  Context cu;
  if (!cu || !cu.check(cu->eventCreate(&event, cuda::eventDisableTiming),
                       "creating an event")) {
    raise();
    return nullptr;
  }
  return event;
}

extern "C" void mgpuEventDestroy(void *event) {
  if (!event)
    return;
  Context cu;
  if (!cu || !cu.check(cu->eventDestroy(static_cast<cuda::Event>(event)),
                       "destroying an event"))
    raise();
}

extern "C" void mgpuEventSynchronize(void *event) {
  Context cu;
  if (!cu || !cu.check(cu->eventSynchronize(static_cast<cuda::Event>(event)),
                       "waiting for an event (the last kernel launched was "
                       "'%s')",
                       lastLaunchedKernel().c_str()))
    raise();
}

extern "C" void mgpuEventRecord(void *event, void *stream) {
  Context cu;
  if (!cu || !cu.check(cu->eventRecord(static_cast<cuda::Event>(event),
                                       static_cast<cuda::Stream>(stream)),
                       "recording an event"))
    raise();
}

extern "C" void *mgpuMemAlloc(uint64_t bytes, void *, bool hostShared) {
  if (bytes == 0)
    return nullptr;
  cuda::DevicePtr pointer = 0;
  Context cu;
  if (!cu || !cu.check(hostShared ? cu->memAllocManaged(&pointer, bytes,
                                                        cuda::memAttachGlobal)
                                  : cu->memAlloc(&pointer, bytes),
                       "allocating %llu bytes of %s memory",
                       static_cast<unsigned long long>(bytes),
                       hostShared ? "managed" : "device")) {
    raise();
    return nullptr;
  }
  return reinterpret_cast<void *>(pointer);
}

extern "C" void mgpuMemFree(void *pointer, void *) {
  if (!pointer || deferFree(pointer))
    return;
  Context cu;
  if (!cu || !cu.check(cu->memFree(devicePtr(pointer)), "freeing %p", pointer))
    raise();
}

extern "C" void mgpuMemcpy(void *dst, void *src, size_t bytes, void *stream) {
  if (bytes == 0)
    return;
  Context cu;
  if (!cu)
    return raise();
  if (!cu.check(copyAsync(cu, devicePtr(dst), src, bytes,
                          static_cast<cuda::Stream>(stream)),
                "copying %zu bytes from %p to %p", bytes, src, dst))
    raise();
}

extern "C" void mgpuMemset32(void *dst, uint32_t value, size_t count,
                             void *stream) {
  if (count == 0)
    return;
  Context cu;
  if (!cu || !cu.check(cu->memsetD32Async(devicePtr(dst), value, count,
                                          static_cast<cuda::Stream>(stream)),
                       "setting %zu 32-bit words at %p", count, dst))
    return raise();
  recordMemset(devicePtr(dst), value, count, 4);
}

extern "C" void mgpuMemset16(void *dst, uint16_t value, size_t count,
                             void *stream) {
  if (count == 0)
    return;
  Context cu;
  if (!cu || !cu.check(cu->memsetD16Async(devicePtr(dst), value, count,
                                          static_cast<cuda::Stream>(stream)),
                       "setting %zu 16-bit words at %p", count, dst))
    return raise();
  recordMemset(devicePtr(dst), value, count, 2);
}

extern "C" void mgpuMemHostRegisterMemRef(int64_t rank, void *descriptor,
                                          int64_t elementBytes) {
  void *base;
  size_t bytes;
  if (!hostRange("mgpuMemHostRegisterMemRef", rank, descriptor, elementBytes,
                 base, bytes))
    return raise();
  if (bytes == 0 || reviveHostRange(base, bytes))
    return;
  Context cu;
  if (!cu ||
      !cu.check(cu->memHostRegister(base, bytes, 0),
                "registering %zu bytes of host memory at %p", bytes, base))
    raise();
}

extern "C" void mgpuMemHostUnregisterMemRef(int64_t rank, void *descriptor,
                                            int64_t elementBytes) {
  void *base;
  size_t bytes;
  if (!hostRange("mgpuMemHostUnregisterMemRef", rank, descriptor, elementBytes,
                 base, bytes))
    return raise();
  if (bytes == 0 || deferUnregister(base, bytes))
    return;
  Context cu;
  if (!cu || !cu.check(cu->memHostUnregister(base),
                       "unregistering the host memory at %p", base))
    raise();
}

extern "C" void mgpuSetDefaultDevice(int32_t device) {
  if (device < 0) {
    fail("mgpuSetDefaultDevice: device %d is not legal: use 0, 1, ...", device);
    return raise();
  }
  setCurrentDevice(device);
}
