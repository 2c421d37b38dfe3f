//===- Driver.cpp - the emulator in place of the CUDA driver -------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Driver/Driver.h"

#include "llvm/ADT/StringExtras.h"
#include <atomic>
#include <mutex>
#include <thread>

using namespace mlir::nm_sparse;
using namespace mlir::nm_sparse::emulator;
using namespace nms::cuda;

namespace {

thread_local std::string lastText;

std::atomic<unsigned> driverJobs = 1;
std::atomic<bool> driverLastFirst = false;
std::atomic<bool> driverCountsBanks = false;

std::mutex useMutex;
EmulatorUse use;

Result getErrorName(Result result, const char **name) {
  switch (result) {
#define NAME(VALUE, TEXT)                                                      \
  case VALUE:                                                                  \
    *name = TEXT;                                                              \
    return success;
    NAME(success, "CUDA_SUCCESS")
    NAME(errorInvalidValue, "CUDA_ERROR_INVALID_VALUE")
    NAME(errorOutOfMemory, "CUDA_ERROR_OUT_OF_MEMORY")
    NAME(errorInvalidDevice, "CUDA_ERROR_INVALID_DEVICE")
    NAME(errorNotFound, "CUDA_ERROR_NOT_FOUND")
    NAME(errorHostMemoryAlreadyRegistered,
         "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED")
    NAME(errorHostMemoryNotRegistered, "CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED")
    NAME(errorNotSupported, "CUDA_ERROR_NOT_SUPPORTED")
    NAME(errorEmulatorFault, "NM_SPARSE_ERROR_FAULT")
    NAME(errorEmulatorKernel, "NM_SPARSE_ERROR_KERNEL")
    NAME(errorNotEmulated, "NM_SPARSE_ERROR_NOT_EMULATED")
#undef NAME
  default:
    return errorInvalidValue;
  }
}

Result getErrorString(Result result, const char **text) {
  *text = result == success ? "no error" : lastText.c_str();
  return success;
}

Api makeTable() {
  Api api;
  api.getErrorName = getErrorName;
  api.getErrorString = getErrorString;
  addDeviceFunctions(api);
  addStreamFunctions(api);
  addMemoryFunctions(api);
  addKernelFunctions(api);
  addTensorMapFunctions(api);
  return api;
}

} // namespace

Result emulator::reportResult(Result result, const llvm::Twine &text) {
  lastText = text.str();
  return result;
}

GlobalMemory &emulator::getDriverMemory() {
  static auto *memory = new GlobalMemory;
  return *memory;
}

unsigned emulator::getDriverJobs() { return driverJobs; }
bool emulator::takesLastFirst() { return driverLastFirst; }
bool emulator::countsBanks() { return driverCountsBanks; }

void emulator::countLaunch(
    llvm::StringRef kernel, int64_t ctas, double seconds,
    const std::vector<std::pair<std::string, BankUse>> &banks) {
  std::lock_guard<std::mutex> lock(useMutex);
  ++use.launches;
  use.ctas += ctas;
  use.seconds += seconds;
  for (const auto &[operation, added] : banks)
    use.banks[kernel.str()][operation] += added;
}

EmulatorUse mlir::nm_sparse::takeEmulatorUse() {
  std::lock_guard<std::mutex> lock(useMutex);
  return std::exchange(use, EmulatorUse());
}

llvm::Expected<EmulatedDriver>
mlir::nm_sparse::openEmulator(const EmulatorOptions &options) {
  const Chip *chip = findChip(options.chip);
  if (!chip) {
    auto names =
        llvm::map_range(getChips(), [](const Chip &c) { return c.name; });
    return llvm::createStringError("'" + options.chip +
                                   "' is not a known chip; expected one of " +
                                   llvm::join(names, ", "));
  }
  static const Api *table = new Api(makeTable());
  driverJobs = options.jobs ? options.jobs
                            : std::max(1u, std::thread::hardware_concurrency());
  driverLastFirst = options.lastFirst;
  driverCountsBanks = options.countsBanks;
  return EmulatedDriver{table, static_cast<Device>(chip - getChips().begin())};
}
