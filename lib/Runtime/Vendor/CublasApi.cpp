//===- CublasApi.cpp - Opening cuBLAS -------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CublasApi.h"
#include "../Driver/Symbols.h"

#include <algorithm>
#include <cstdlib>
#include <dlfcn.h>
#include <iterator>
#include <string>
#include <sys/stat.h>
#include <vector>

using namespace nms;

namespace {

struct Loaded {
  cublas::Api api;
  std::string error;
};

bool isDirectory(const std::string &path) {
  struct stat status;
  return stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
}

/// Files to try, best first.
std::vector<std::string> candidates() {
  static const char *const names[] = {"libcublas.so.13", "libcublas.so.12",
                                      "libcublas.so"};
  std::vector<std::string> files;
  auto addFolder = [&](const std::string &folder) {
    for (const char *name : names)
      files.push_back(folder + "/" + name);
  };
  if (const char *path = getenv("NM_SPARSE_CUBLAS"); path && *path) {
    // A chosen library is the only one: falling back to another would hide that
    // the wrong one is measured.
    if (isDirectory(path))
      addFolder(path);
    else
      files.emplace_back(path);
    return files;
  }
  files.insert(files.end(), std::begin(names), std::end(names));
  if (const char *list = getenv("LD_LIBRARY_PATH")) {
    std::string rest = list;
    for (size_t begin = 0; begin <= rest.size();) {
      size_t end = std::min(rest.find(':', begin), rest.size());
      if (end > begin)
        addFolder(rest.substr(begin, end - begin));
      begin = end + 1;
    }
  }
  if (const char *home = getenv("CUDA_HOME"); home && *home)
    addFolder(std::string(home) + "/lib64");
  addFolder("/usr/local/cuda/lib64");
  return files;
}

const Loaded *load() {
  auto *loaded = new Loaded;
  void *handle = nullptr;
  std::string firstReason;
  for (const std::string &file : candidates()) {
    // cuBLAS finds libcublasLt beside itself through its own run path.
    handle = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle)
      break;
    const char *reason = dlerror();
    if (firstReason.empty() && reason)
      firstReason = reason;
  }
  if (!handle) {
    loaded->error = "no cuBLAS: none of libcublas.so.13, libcublas.so.12 and "
                    "libcublas.so could be opened (" +
                    firstReason +
                    "): install cuBLAS, or name the file or its folder with "
                    "NM_SPARSE_CUBLAS";
    return loaded;
  }
  cublas::Api &api = loaded->api;
  Symbols symbols(handle);
#define NMS_BIND(NAME, SYMBOL, PARAMS) symbols.require(api.NAME, SYMBOL);
  NMS_CUBLAS_REQUIRED(NMS_BIND)
#undef NMS_BIND
  if (const char *missing = symbols.getMissing())
    loaded->error = std::string("cuBLAS has no symbol ") + missing +
                    ": install cuBLAS 12 or newer";
  return loaded;
}

const char *statusName(cublas::Status status) {
  switch (status) {
  case 1:
    return "CUBLAS_STATUS_NOT_INITIALIZED";
  case 3:
    return "CUBLAS_STATUS_ALLOC_FAILED";
  case 7:
    return "CUBLAS_STATUS_INVALID_VALUE";
  case 8:
    return "CUBLAS_STATUS_ARCH_MISMATCH";
  case 11:
    return "CUBLAS_STATUS_MAPPING_ERROR";
  case 13:
    return "CUBLAS_STATUS_EXECUTION_FAILED";
  case 14:
    return "CUBLAS_STATUS_INTERNAL_ERROR";
  case 15:
    return "CUBLAS_STATUS_NOT_SUPPORTED";
  default:
    return "an unknown cuBLAS status";
  }
}

} // namespace

const cublas::Api *nms::cublas::api() {
  static const Loaded *loaded = load();
  if (loaded->error.empty())
    return &loaded->api;
  fail("%s", loaded->error.c_str());
  return nullptr;
}

bool nms::cublas::check(Status status, const char *what) {
  if (status == 0)
    return true;
  return !fail("%s failed: %s (%d): check that cuBLAS fits the driver and that "
               "device memory is free",
               what, statusName(status), status);
}
