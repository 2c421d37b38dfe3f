//===- DriverDevice.cpp - devices and contexts of the emulator -----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// There is one device for each chip that is compiled for, so that a process can
// change chips.
//
//===----------------------------------------------------------------------===//

#include "Driver/Driver.h"

#include "llvm/ADT/StringExtras.h"
#include <algorithm>
#include <cstring>
#include <unistd.h>

using namespace mlir::nm_sparse;
using namespace mlir::nm_sparse::emulator;
using namespace nms::cuda;
using llvm::Twine;

namespace nms::cuda {
struct ContextTag {
  const Chip *chip;
};
} // namespace nms::cuda

namespace {

/// Limits that Chip.h leaves out, since only the driver tells them.
struct ChipLimits {
  llvm::StringRef name;
  int l2Bytes;
};
constexpr int megabyte = 1 << 20;
constexpr ChipLimits chipLimits[] = {
    {"sm_80", 40 * megabyte},    {"sm_86", 6 * megabyte},
    {"sm_89", 72 * megabyte},    {"sm_90a", 50 * megabyte},
    {"sm_100a", 126 * megabyte}, {"sm_120a", 96 * megabyte},
};

llvm::SmallVector<Context> &getContexts() {
  static thread_local llvm::SmallVector<Context> contexts;
  return contexts;
}

const Chip *getChip(Device device) {
  return device >= 0 && size_t(device) < getChips().size() ? &getChips()[device]
                                                           : nullptr;
}

Result failDevice(Device device) {
  return reportResult(errorInvalidDevice, "the emulator has devices 0 to " +
                                              Twine(getChips().size() - 1) +
                                              ", not " + Twine(device));
}

Result init(unsigned) { return success; }

Result driverGetVersion(int *version) {
  *version = 12080;
  return success;
}

Result deviceGetCount(int *count) {
  *count = getChips().size();
  return success;
}

Result deviceGet(Device *device, int ordinal) {
  *device = ordinal;
  return getChip(ordinal) ? success : failDevice(ordinal);
}

Result deviceGetName(char *name, int bytes, Device device) {
  const Chip *chip = getChip(device);
  if (!chip)
    return failDevice(device);
  std::string text = ("emulated " + chip->name).str();
  size_t length = std::min<size_t>(text.size(), bytes - 1);
  std::memcpy(name, text.data(), length);
  name[length] = '\0';
  return success;
}

Result deviceGetAttribute(int *value, int attribute, Device device) {
  const Chip *chip = getChip(device);
  if (!chip)
    return failDevice(device);
  switch (attribute) {
  case attrSharedPerBlock:
    *value = 48 * 1024;
    return success;
  case attrSharedPerBlockOptin:
    *value = chip->sharedBytes;
    return success;
  case attrSharedPerMultiprocessor:
    *value = chip->sharedBytesPerSM;
    return success;
  case attrRegistersPerMultiprocessor:
    *value = 65536;
    return success;
  case attrMultiprocessors:
    *value = chip->multiprocessors;
    return success;
  case attrCcMajor:
    *value = getCapability(*chip) / 10;
    return success;
  case attrCcMinor:
    *value = getCapability(*chip) % 10;
    return success;
  case attrL2Bytes:
    for (const ChipLimits &limits : chipLimits)
      if (limits.name == chip->name)
        *value = limits.l2Bytes;
    return success;
  default:
    return reportResult(errorInvalidValue,
                        "the emulator has no attribute " + Twine(attribute));
  }
}

Result deviceTotalMem(size_t *bytes, Device) {
  *bytes = size_t(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
  return success;
}

Result primaryCtxRetain(Context *context, Device device) {
  const Chip *chip = getChip(device);
  if (!chip)
    return failDevice(device);
  static std::vector<ContextTag> *primary = [] {
    auto *primary = new std::vector<ContextTag>;
    for (const Chip &chip : getChips())
      primary->push_back({&chip});
    return primary;
  }();
  *context = &(*primary)[device];
  return success;
}

Result ctxGetCurrent(Context *context) {
  *context = getContexts().empty() ? nullptr : getContexts().back();
  return success;
}

Result ctxPush(Context context) {
  getContexts().push_back(context);
  return success;
}

Result ctxPop(Context *context) {
  if (getContexts().empty())
    return reportResult(errorInvalidValue, "no context was entered");
  *context = getContexts().pop_back_val();
  return success;
}

Result ctxSynchronize() { return success; }

} // namespace

int emulator::getCapability(const Chip &chip) {
  int capability = 0;
  llvm::StringRef digits = chip.name.drop_front(3).take_while(llvm::isDigit);
  digits.getAsInteger(10, capability);
  return capability;
}

const Chip *emulator::getCurrentChip() {
  return getContexts().empty() ? nullptr : getContexts().back()->chip;
}

void emulator::addDeviceFunctions(Api &api) {
  api.init = init;
  api.driverGetVersion = driverGetVersion;
  api.deviceGetCount = deviceGetCount;
  api.deviceGet = deviceGet;
  api.deviceGetName = deviceGetName;
  api.deviceGetAttribute = deviceGetAttribute;
  api.deviceTotalMem = deviceTotalMem;
  api.primaryCtxRetain = primaryCtxRetain;
  api.ctxGetCurrent = ctxGetCurrent;
  api.ctxPush = ctxPush;
  api.ctxPop = ctxPop;
  api.ctxSynchronize = ctxSynchronize;
}
