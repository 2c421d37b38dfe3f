//===- CublasApi.cpp - Opening cuBLAS -------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CublasApi.h"
#include "../Driver/Symbols.h"
#include "OpenCublas.h"

#include <string>

using namespace nms;

namespace {

struct Loaded {
  cublas::Api api;
  std::string error;
};

const Loaded *load() {
  auto *loaded = new Loaded;
  cublas::OpenedLibrary opened = cublas::openLibrary("libcublas", "cuBLAS");
  loaded->error = opened.error;
  if (!opened.handle)
    return loaded;
  cublas::Api &api = loaded->api;
  Symbols symbols(opened.handle);
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
  case cublas::notSupported:
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
  return !fail("%s failed: %s (%d): %s", what, statusName(status), status,
               status == notSupported
                   ? "cuBLAS has no such product for this device"
                   : "check that cuBLAS fits the driver and that device memory "
                     "is free");
}
