//===- Modules.cpp - modules, libraries, kernels --------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "EmulatedCuda.h"
#include "llvm/Support/MemoryBuffer.h"

using namespace nms::cuda;
using llvm::StringRef;
using llvm::Twine;

using emulated_cuda::errorFileNotFound;
using emulated_cuda::errorNotInitialized;
using emulated_cuda::fail;
using emulated_cuda::getDriver;
using EmulatedFunction = emulated_cuda::Function;
using EmulatedModule = emulated_cuda::Module;

//===----------------------------------------------------------------------===//
// Images
//===----------------------------------------------------------------------===//

/// PTX begins with comments and its version.
static bool isPtx(StringRef text) {
  while (true) {
    text = text.ltrim();
    if (!text.starts_with("//"))
      return text.starts_with(".version");
    text = text.drop_until([](char c) { return c == '\n'; });
  }
}

/// Loads the text of a gpu.module. What is wrong with it comes in the log of
/// the program, and as the text of the error.
static Result loadKernels(EmulatedModule &module, const void *image,
                          unsigned optionCount, int *options, void **values) {
  std::string log(4096, '\0');
  int ownOptions[] = {jitErrorLog, jitErrorLogBytes};
  void *ownValues[] = {log.data(), reinterpret_cast<void *>(log.size())};
  Result result = getDriver()->moduleLoadDataEx(&module.emulated, image, 2,
                                                ownOptions, ownValues);
  if (result == success)
    return success;
  StringRef text = log.c_str();
  char *target = nullptr;
  size_t bytes = 0;
  for (unsigned i = 0; i < optionCount; ++i) {
    if (options[i] == jitErrorLog)
      target = static_cast<char *>(values[i]);
    if (options[i] == jitErrorLogBytes)
      bytes = reinterpret_cast<uintptr_t>(values[i]) & UINT32_MAX;
  }
  if (target && bytes != 0) {
    StringRef part = text.take_front(bytes - 1);
    std::copy(part.begin(), part.end(), target);
    target[part.size()] = '\0';
  }
  return fail(result, "the kernels cannot be emulated: " + text);
}

CUDA_FUNCTION cuModuleLoadDataEx(EmulatedModule **module, const void *image,
                                 unsigned optionCount, int *options,
                                 void **values) {
  if (!getDriver())
    return errorNotInitialized;
  auto loaded = std::make_unique<EmulatedModule>();
  StringRef start(static_cast<const char *>(image), 4);
  if (start == "\x7f"
               "ELF" ||
      start == "\x50\xed\x55\xba")
    return fail(errorInvalidImage,
                "machine code is not emulated: load PTX, whose kernels are "
                "skipped, or what nm-compile --emit emulator writes");
  StringRef text = static_cast<const char *>(image);
  if (isPtx(text)) {
    for (auto &kernel : emulated_cuda::readPtxKernels(text)) {
      std::string name = kernel->name;
      loaded->functions[name] = std::move(kernel);
    }
  } else if (Result result =
                 loadKernels(*loaded, image, optionCount, options, values)) {
    return result;
  }
  *module = loaded.release();
  return success;
}
CUDA_FUNCTION cuModuleLoadData(EmulatedModule **module, const void *image) {
  return cuModuleLoadDataEx(module, image, 0, nullptr, nullptr);
}
CUDA_FUNCTION cuModuleLoad(EmulatedModule **module, const char *file) {
  auto text = llvm::MemoryBuffer::getFile(file);
  if (!text)
    return fail(errorFileNotFound, Twine("cannot read ") + file);
  return cuModuleLoadData(module, (*text)->getBufferStart());
}

CUDA_FUNCTION cuModuleUnload(EmulatedModule *module) {
  Result result = success;
  if (module->emulated)
    result = getDriver()->moduleUnload(module->emulated);
  delete module;
  return result;
}

CUDA_FUNCTION cuModuleGetFunction(EmulatedFunction **function,
                                  EmulatedModule *module, const char *name) {
  std::lock_guard<std::mutex> lock(module->mutex);
  auto found = module->functions.find(name);
  if (found == module->functions.end()) {
    if (!module->emulated)
      return fail(errorNotFound, Twine("the PTX has no kernel ") + name);
    auto kernel = std::make_unique<EmulatedFunction>();
    kernel->name = name;
    if (Result result = getDriver()->moduleGetFunction(&kernel->emulated,
                                                       module->emulated, name))
      return result;
    emulated_cuda::Parameter parameter;
    while (getDriver()->funcGetParamInfo(
               kernel->emulated, kernel->parameters.size(), &parameter.offset,
               &parameter.bytes) == success)
      kernel->parameters.push_back(parameter);
    found = module->functions.try_emplace(name, std::move(kernel)).first;
  }
  *function = found->second.get();
  return success;
}

CUDA_FUNCTION cuModuleGetGlobal_v2(DevicePtr *, size_t *, EmulatedModule *,
                                   const char *name) {
  return fail(errorNotFound,
              Twine("the emulated libcuda.so knows no global ") + name);
}

//===----------------------------------------------------------------------===//
// Libraries
//===----------------------------------------------------------------------===//

CUDA_FUNCTION cuLibraryLoadData(EmulatedModule **library, const void *image,
                                int *options, void **values,
                                unsigned optionCount, int *, void **,
                                unsigned) {
  return cuModuleLoadDataEx(library, image, optionCount, options, values);
}
CUDA_FUNCTION cuLibraryUnload(EmulatedModule *library) {
  return cuModuleUnload(library);
}
CUDA_FUNCTION cuLibraryGetModule(EmulatedModule **module,
                                 EmulatedModule *library) {
  *module = library;
  return success;
}
CUDA_FUNCTION cuLibraryGetKernel(EmulatedFunction **kernel,
                                 EmulatedModule *library, const char *name) {
  return cuModuleGetFunction(kernel, library, name);
}
CUDA_FUNCTION cuKernelGetFunction(EmulatedFunction **function,
                                  EmulatedFunction *kernel) {
  *function = kernel;
  return success;
}

//===----------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------===//

CUDA_FUNCTION cuFuncGetAttribute(int *value, int attribute,
                                 EmulatedFunction *function) {
  if (function->emulated &&
      getDriver()->funcGetAttribute(value, attribute, function->emulated) ==
          success)
    return success;
  switch (attribute) {
  case funcMaxThreadsPerBlock:
    *value = 1024;
    return success;
  case 5: // Versions of PTX and of the machine code.
  case 6:
    *value = 90;
    return success;
  default: // Memory, mostly.
    *value = 0;
    return success;
  }
}
CUDA_FUNCTION cuKernelGetAttribute(int *value, int attribute,
                                   EmulatedFunction *kernel, Device) {
  return cuFuncGetAttribute(value, attribute, kernel);
}

/// Attributes that are hints have no effect.
CUDA_FUNCTION cuFuncSetAttribute(EmulatedFunction *function, int attribute,
                                 int value) {
  bool isLimit = attribute == funcMaxDynamicSharedBytes ||
                 attribute == funcNonPortableCluster;
  if (!function->emulated || !isLimit)
    return success;
  return getDriver()->funcSetAttribute(function->emulated, attribute, value);
}
CUDA_FUNCTION cuKernelSetAttribute(int attribute, int value,
                                   EmulatedFunction *kernel, Device) {
  return cuFuncSetAttribute(kernel, attribute, value);
}
CUDA_FUNCTION cuFuncSetCacheConfig(EmulatedFunction *, int) { return success; }

CUDA_FUNCTION cuFuncGetName(const char **name, EmulatedFunction *function) {
  *name = function->name.c_str();
  return success;
}
CUDA_FUNCTION cuKernelGetName(const char **name, EmulatedFunction *kernel) {
  return cuFuncGetName(name, kernel);
}

CUDA_FUNCTION cuFuncGetParamInfo(EmulatedFunction *function, size_t index,
                                 size_t *offset, size_t *bytes) {
  if (index >= function->parameters.size())
    return fail(errorInvalidValue, "the kernel has " +
                                       Twine(function->parameters.size()) +
                                       " parameters");
  *offset = function->parameters[index].offset;
  if (bytes)
    *bytes = function->parameters[index].bytes;
  return success;
}
CUDA_FUNCTION cuKernelGetParamInfo(EmulatedFunction *kernel, size_t index,
                                   size_t *offset, size_t *bytes) {
  return cuFuncGetParamInfo(kernel, index, offset, bytes);
}

/// At least one; nobody here computes how many fit.
CUDA_FUNCTION cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks,
                                                          EmulatedFunction *,
                                                          int, size_t) {
  *blocks = 1;
  return success;
}

CUDA_FUNCTION
cuTensorMapEncodeTiled(TensorMap *map, int type, uint32_t rank, void *address,
                       const uint64_t *sizes, const uint64_t *strides,
                       const uint32_t *box, const uint32_t *elementStrides,
                       int interleave, int swizzle, int promotion, int fill) {
  if (!getDriver())
    return errorNotInitialized;
  return getDriver()->tensorMapEncodeTiled(
      map, type, rank, address, sizes, strides, box, elementStrides, interleave,
      swizzle, promotion, fill);
}

CUDA_FUNCTION
cuTensorMapEncodeIm2col(TensorMap *map, int type, uint32_t rank, void *address,
                        const uint64_t *sizes, const uint64_t *strides,
                        const int *lower, const int *upper, uint32_t channels,
                        uint32_t pixels, const uint32_t *elementStrides,
                        int interleave, int swizzle, int promotion, int fill) {
  if (!getDriver())
    return errorNotInitialized;
  return getDriver()->tensorMapEncodeIm2col(
      map, type, rank, address, sizes, strides, lower, upper, channels, pixels,
      elementStrides, interleave, swizzle, promotion, fill);
}
