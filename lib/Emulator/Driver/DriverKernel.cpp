//===- DriverKernel.cpp - modules and launches of the emulator -----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A module image is the text of a gpu.module in the NVVM dialect.
//
//===----------------------------------------------------------------------===//

#include "Driver/Driver.h"
#include "Driver/Kernel.h"
#include "Machine/BankConflicts.h"
#include "llvm/ADT/StringExtras.h"

#include <chrono>
#include <cstring>
#include <map>
#include <mutex>

using namespace mlir::nm_sparse;
using namespace mlir::nm_sparse::emulator;
using namespace nms::cuda;
using llvm::Twine;

namespace {

constexpr unsigned sharedWithoutOptIn = 48 * 1024;
constexpr unsigned portableCluster = 8;

/// The permissions that cuFuncSetAttribute() gave a kernel.
struct Allowed {
  unsigned dynamicShared = sharedWithoutOptIn;
  bool largeCluster = false;
};

std::mutex allowedMutex;
std::map<const Kernel *, Allowed> &getAllowed() {
  static auto *allowed = new std::map<const Kernel *, Allowed>;
  return *allowed;
}

const Kernel *getKernel(Function function) {
  return reinterpret_cast<const Kernel *>(function);
}

void writeLog(llvm::StringRef text, unsigned optionCount, const int *options,
              void **values) {
  char *log = nullptr;
  size_t bytes = 0;
  for (unsigned i = 0; i < optionCount; ++i) {
    if (options[i] == jitErrorLog)
      log = static_cast<char *>(values[i]);
    if (options[i] == jitErrorLogBytes)
      bytes = reinterpret_cast<uintptr_t>(values[i]);
  }
  if (!log || bytes == 0)
    return;
  size_t length = std::min(text.size(), bytes - 1);
  std::memcpy(log, text.data(), length);
  log[length] = '\0';
}

Result moduleLoadDataEx(Module *module, const void *image, unsigned optionCount,
                        int *options, void **values) {
  auto created =
      KernelModule::create(static_cast<const char *>(image), getDriverMemory());
  if (!created) {
    std::string text = llvm::toString(created.takeError());
    writeLog(text, optionCount, options, values);
    return reportResult(errorEmulatorKernel, "the kernels cannot be emulated");
  }
  *module = reinterpret_cast<Module>(created->release());
  return success;
}

Result moduleUnload(Module module) {
  delete reinterpret_cast<KernelModule *>(module);
  return success;
}

Result moduleGetFunction(Function *function, Module module, const char *name) {
  const Kernel *kernel = reinterpret_cast<KernelModule *>(module)->lookup(name);
  if (!kernel)
    return reportResult(errorNotFound, "the module has no kernel of this name");
  std::lock_guard<std::mutex> lock(allowedMutex);
  getAllowed().try_emplace(kernel);
  *function = reinterpret_cast<Function>(const_cast<Kernel *>(kernel));
  return success;
}

Result funcGetAttribute(int *value, int attribute, Function function) {
  const Kernel *kernel = getKernel(function);
  switch (attribute) {
  case funcMaxThreadsPerBlock:
    *value = kernel->getMaxThreads();
    return success;
  case funcSharedBytes:
    *value = kernel->getStaticSharedBytes();
    return success;
  case funcRegisters:
    *value = std::min(255u, 65536 / kernel->getMaxThreads());
    return success;
  default:
    return reportResult(errorInvalidValue, "the emulator has no attribute " +
                                               Twine(attribute) +
                                               " of functions");
  }
}

Result funcSetAttribute(Function function, int attribute, int value) {
  std::lock_guard<std::mutex> lock(allowedMutex);
  Allowed &allowed = getAllowed()[getKernel(function)];
  switch (attribute) {
  case funcMaxDynamicSharedBytes:
    allowed.dynamicShared = value;
    return success;
  case funcNonPortableCluster:
    allowed.largeCluster = value;
    return success;
  default:
    return reportResult(errorInvalidValue,
                        "the emulator cannot set attribute " +
                            Twine(attribute) + " of functions");
  }
}

Result funcGetParamInfo(Function function, size_t index, size_t *offset,
                        size_t *bytes) {
  llvm::ArrayRef<unsigned> sizes = getKernel(function)->getArgumentBytes();
  if (index >= sizes.size())
    return reportResult(errorInvalidValue, "the kernel has " +
                                               Twine(sizes.size()) +
                                               " parameters");
  size_t position = 0;
  for (size_t i = 0; i <= index; ++i) {
    position = llvm::alignTo(position,
                             getKernel(function)->getArgumentAlignments()[i]);
    *offset = position;
    position += sizes[i];
  }
  *bytes = sizes[index];
  return success;
}

/// The reason for which the driver would refuse a launch; empty if none.
std::string checkLaunch(const Kernel &kernel, const LaunchShape &shape,
                        const Chip &chip) {
  Allowed allowed;
  {
    std::lock_guard<std::mutex> lock(allowedMutex);
    allowed = getAllowed()[&kernel];
  }
  if (shape.sharedBytes > allowed.dynamicShared)
    return (Twine(shape.sharedBytes) + " bytes of dynamic shared memory, but " +
            Twine(allowed.dynamicShared) + " were allowed")
        .str();
  unsigned ctas = 1;
  for (int i = 0; i < 3; ++i) {
    ctas *= shape.cluster[i];
    if (shape.cluster[i] == 0 || shape.grid[i] % shape.cluster[i] != 0)
      return "the cluster does not divide the grid";
  }
  if (ctas > 1 && getCapability(chip) < firstCapabilityOfHopper)
    return (chip.name + " has no clusters").str();
  if (ctas > portableCluster && !allowed.largeCluster)
    return "a cluster of more than 8 CTAs was not allowed";
  return "";
}

Result start(Function function, const LaunchShape &shape, void **params,
             void **extra) {
  const Kernel &kernel = *getKernel(function);
  const Chip *chip = getCurrentChip();
  if (!chip)
    return reportResult(errorInvalidValue, "no context was entered");
  if (extra)
    return reportResult(errorNotEmulated,
                        "the emulator takes the arguments of a launch as an "
                        "array of pointers alone");
  if (std::string wrong = checkLaunch(kernel, shape, *chip); !wrong.empty())
    return reportResult(errorInvalidValue, wrong);

  auto begin = std::chrono::steady_clock::now();
  BankTable banks;
  std::string fault = launch(kernel, shape, params, getDriverMemory(),
                             chip->name, getDriverJobs(), takesLastFirst(),
                             countsBanks() ? &banks : nullptr);
  std::chrono::duration<double> time = std::chrono::steady_clock::now() - begin;
  countLaunch(kernel.getName(),
              int64_t(shape.grid[0]) * shape.grid[1] * shape.grid[2],
              time.count(), banks.getUses());
  return fault.empty() ? success : reportResult(errorEmulatorFault, fault);
}

Result launchKernel(Function function, unsigned gridX, unsigned gridY,
                    unsigned gridZ, unsigned blockX, unsigned blockY,
                    unsigned blockZ, unsigned sharedBytes, Stream,
                    void **params, void **extra) {
  LaunchShape shape = {
      {1, 1, 1}, {gridX, gridY, gridZ}, {blockX, blockY, blockZ}, sharedBytes};
  llvm::copy(getKernel(function)->getCluster(), shape.cluster);
  return start(function, shape, params, extra);
}

/// "2 x 1 x 1"
std::string describe(llvm::ArrayRef<unsigned> extents) {
  auto print = [](unsigned extent) { return llvm::utostr(extent); };
  return llvm::join(llvm::map_range(extents, print), " x ");
}

Result launchKernelEx(const LaunchConfig *config, Function function,
                      void **params, void **extra) {
  LaunchShape shape = {{1, 1, 1},
                       {config->gridX, config->gridY, config->gridZ},
                       {config->blockX, config->blockY, config->blockZ},
                       config->sharedBytes};
  llvm::ArrayRef<unsigned> declared = getKernel(function)->getCluster();
  llvm::copy(declared, shape.cluster);
  for (unsigned i = 0; i < config->attributeCount; ++i) {
    const LaunchAttribute &attribute = config->attributes[i];
    if (attribute.id != launchAttributeCluster)
      return reportResult(errorNotEmulated,
                          "the emulator knows no launch attribute " +
                              Twine(attribute.id));
    shape.cluster[0] = attribute.value.cluster.x;
    shape.cluster[1] = attribute.value.cluster.y;
    shape.cluster[2] = attribute.value.cluster.z;
    if (!declared.empty() && declared != llvm::ArrayRef(shape.cluster))
      return reportResult(
          errorInvalidValue,
          "the launch asks for clusters of " + describe(shape.cluster) +
              ", but the kernel declares " + describe(declared));
  }
  return start(function, shape, params, extra);
}

} // namespace

void emulator::addKernelFunctions(Api &api) {
  api.moduleLoadDataEx = moduleLoadDataEx;
  api.moduleUnload = moduleUnload;
  api.moduleGetFunction = moduleGetFunction;
  api.funcGetAttribute = funcGetAttribute;
  api.funcSetAttribute = funcSetAttribute;
  api.funcGetParamInfo = funcGetParamInfo;
  api.launchKernel = launchKernel;
  api.launchKernelEx = launchKernelEx;
}
