//===- Symbols.cpp - functions by name, and errors ------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A function whose signature has changed since CUDA 1 has several symbols, and
// a program names the version that it was compiled for.
//
//===----------------------------------------------------------------------===//

#include "EmulatedCuda.h"

#include <dlfcn.h>

using namespace nms::cuda;
using namespace emulated_cuda;
using llvm::StringRef;

CUDA_FUNCTION cuInit(unsigned);

CUDA_FUNCTION cuGetErrorName(Result error, const char **name) {
  if (error == errorNotInitialized)
    *name = "CUDA_ERROR_NOT_INITIALIZED";
  else if (error == errorInvalidContext)
    *name = "CUDA_ERROR_INVALID_CONTEXT";
  else if (error == errorFileNotFound)
    *name = "CUDA_ERROR_FILE_NOT_FOUND";
  else if (error == errorNoDevice)
    *name = "CUDA_ERROR_NO_DEVICE";
  else if (error == errorInvalidImage)
    *name = "CUDA_ERROR_INVALID_IMAGE";
  else if (getDriver())
    return getDriver()->getErrorName(error, name);
  else
    *name = error == success ? "CUDA_SUCCESS" : "CUDA_ERROR_UNKNOWN";
  return success;
}

CUDA_FUNCTION cuGetErrorString(Result error, const char **text) {
  if (error == errorNotInitialized) {
    *text = "cuInit was not called";
    return success;
  }
  if (getDriver())
    return getDriver()->getErrorString(error, text);
  *text = error == success ? "no error" : getOpeningError();
  return success;
}

//===----------------------------------------------------------------------===//
// cuGetProcAddress
//===----------------------------------------------------------------------===//

namespace {

/// The symbol of a function from a version of CUDA on; 12000 is CUDA 12.0.
struct VersionedSymbol {
  StringRef name;
  int since;
  StringRef symbol;
};

/// The latest first. All others have a symbol with the suffix _v2 or none.
constexpr VersionedSymbol versionedSymbols[] = {
    {"cuCtxCreate", 13000, "cuCtxCreate_v4"},
    {"cuGetProcAddress", 12000, "cuGetProcAddress_v2"},
    {"cuGetProcAddress", 0, "cuGetProcAddress"},
    {"cuGraphInstantiate", 12000, "cuGraphInstantiateWithFlags"},
    {"cuStreamGetCaptureInfo", 0, ""},
};

} // namespace

static void *findSymbol(const std::string &symbol) {
  static void *self = [] {
    Dl_info info;
    if (!dladdr(reinterpret_cast<void *>(&cuInit), &info))
      return static_cast<void *>(nullptr);
    return dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD);
  }();
  return self && StringRef(symbol).starts_with("cu")
             ? dlsym(self, symbol.c_str())
             : nullptr;
}

static void *findFunction(StringRef name, int version) {
  for (const VersionedSymbol &symbol : versionedSymbols)
    if (symbol.name == name && version >= symbol.since)
      return findSymbol(symbol.symbol.str());
  if (void *found = findSymbol((name + "_v2").str()))
    return found;
  return findSymbol(name.str());
}

CUDA_FUNCTION cuGetProcAddress_v2(const char *name, void **function,
                                  int version, uint64_t, int *status) {
  *function = findFunction(name, version);
  if (status)
    *status = *function ? 0 : 1; // CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND
  return *function ? success
                   : fail(errorNotFound, llvm::Twine("the emulated libcuda.so "
                                                     "has no ") +
                                             name);
}

CUDA_FUNCTION cuGetProcAddress(const char *name, void **function, int version,
                               uint64_t flags) {
  return cuGetProcAddress_v2(name, function, version, flags, nullptr);
}
