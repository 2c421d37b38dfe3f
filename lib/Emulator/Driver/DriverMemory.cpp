//===- DriverMemory.cpp - memory of the emulated devices -----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A copy is checked as the access of a kernel is: it must stay inside one
// allocation, and must not read what nothing wrote.
//
//===----------------------------------------------------------------------===//

#include "Driver/Driver.h"

#include <cstring>

using namespace mlir::nm_sparse;
using namespace mlir::nm_sparse::emulator;
using namespace nms::cuda;
using llvm::Twine;

namespace {

bool isDevice(uint64_t address) {
  return getDriverMemory().contains(address, 1);
}

/// Empty when `what` may access the device memory.
std::string check(const Twine &what, uint64_t address, size_t bytes,
                  AccessKind kind) {
  std::string wrong = getDriverMemory().access(address, bytes, kind);
  return wrong.empty() ? wrong : (what + ": " + wrong).str();
}

Result copy(uint64_t target, uint64_t source, size_t bytes, bool toDevice,
            bool fromDevice) {
  if (bytes == 0)
    return success;
  std::string what = ("a copy of " + Twine(bytes) + " bytes from the " +
                      (fromDevice ? "device to the " : "host to the ") +
                      (toDevice ? "device" : "host"))
                         .str();
  std::string wrong;
  if (fromDevice)
    wrong = check(what, source, bytes, AccessKind::Read);
  if (toDevice && wrong.empty())
    wrong = check(what, target, bytes, AccessKind::Write);
  if (!wrong.empty())
    return reportResult(errorEmulatorFault, wrong);
  std::memmove(reinterpret_cast<void *>(target),
               reinterpret_cast<const void *>(source), bytes);
  return success;
}

Result memcpyAsync(DevicePtr target, DevicePtr source, size_t bytes, Stream) {
  return copy(target, source, bytes, isDevice(target), isDevice(source));
}

Result memcpyHtoD(DevicePtr target, const void *source, size_t bytes) {
  return copy(target, reinterpret_cast<uint64_t>(source), bytes,
              /*toDevice=*/true, /*fromDevice=*/false);
}

Result memcpyDtoH(void *target, DevicePtr source, size_t bytes) {
  return copy(reinterpret_cast<uint64_t>(target), source, bytes,
              /*toDevice=*/false, /*fromDevice=*/true);
}

template <typename T>
Result fill(DevicePtr target, T value, size_t count) {
  if (count == 0)
    return success;
  size_t bytes = count * sizeof(T);
  if (target % sizeof(T) != 0)
    return reportResult(errorInvalidValue,
                        "a memset of " + Twine(sizeof(T)) +
                            "-byte words must start at a multiple of that");
  std::string wrong = check("a memset of " + Twine(bytes) + " bytes", target,
                            bytes, AccessKind::Write);
  if (!wrong.empty())
    return reportResult(errorEmulatorFault, wrong);
  std::fill_n(reinterpret_cast<T *>(target), count, value);
  return success;
}

Result memsetD32Async(DevicePtr target, unsigned value, size_t count, Stream) {
  return fill<uint32_t>(target, value, count);
}

Result memsetD16Async(DevicePtr target, unsigned short value, size_t count,
                      Stream) {
  return fill<uint16_t>(target, value, count);
}

Result memAlloc(DevicePtr *pointer, size_t bytes) {
  if (bytes == 0)
    return reportResult(errorInvalidValue, "0 bytes cannot be allocated");
  void *memory = getDriverMemory().allocate(bytes);
  if (!memory)
    return reportResult(errorOutOfMemory, "the host has no " + Twine(bytes) +
                                              " bytes for the emulated device");
  *pointer = reinterpret_cast<DevicePtr>(memory);
  return success;
}

Result memAllocManaged(DevicePtr *pointer, size_t bytes, unsigned) {
  if (Result result = memAlloc(pointer, bytes))
    return result;
  // The host writes to it unseen.
  (void)getDriverMemory().access(*pointer, bytes, AccessKind::Write);
  return success;
}

Result memFree(DevicePtr pointer) {
  if (!getDriverMemory().release(reinterpret_cast<void *>(pointer)))
    return reportResult(errorInvalidValue, "no device memory begins at this "
                                           "address, or it was freed before");
  return success;
}

Result memHostRegister(void *pointer, size_t bytes, unsigned) {
  auto address = reinterpret_cast<uint64_t>(pointer);
  if (isDevice(address) || isDevice(address + bytes - 1))
    return reportResult(errorHostMemoryAlreadyRegistered,
                        "the device can access this memory already");
  getDriverMemory().adopt(pointer, bytes);
  return success;
}

Result memHostUnregister(void *pointer) {
  if (!getDriverMemory().release(pointer))
    return reportResult(errorHostMemoryNotRegistered,
                        "no registered memory begins at this address");
  return success;
}

} // namespace

void emulator::addMemoryFunctions(Api &api) {
  api.memAlloc = memAlloc;
  api.memAllocManaged = memAllocManaged;
  api.memFree = memFree;
  api.memcpyAsync = memcpyAsync;
  api.memcpyHtoD = memcpyHtoD;
  api.memcpyDtoH = memcpyDtoH;
  api.memsetD32Async = memsetD32Async;
  api.memsetD16Async = memsetD16Async;
  api.memHostRegister = memHostRegister;
  api.memHostUnregister = memHostUnregister;
}
