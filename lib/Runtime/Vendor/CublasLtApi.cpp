//===- CublasLtApi.cpp - Opening cuBLASLt ---------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CublasLtApi.h"
#include "../Driver/Symbols.h"
#include "OpenCublas.h"

#include <string>

using namespace nms;

namespace {

struct Loaded {
  cublaslt::Api api;
  std::string error;
};

const Loaded *load() {
  auto *loaded = new Loaded;
  cublas::OpenedLibrary opened = cublas::openLibrary("libcublasLt", "cuBLASLt");
  loaded->error = opened.error;
  if (!opened.handle)
    return loaded;
  cublaslt::Api &api = loaded->api;
  Symbols symbols(opened.handle);
#define NMS_BIND(NAME, SYMBOL, PARAMS) symbols.require(api.NAME, SYMBOL);
  NMS_CUBLASLT_REQUIRED(NMS_BIND)
#undef NMS_BIND
  symbols.require(api.getVersion, "cublasLtGetVersion");
  if (const char *missing = symbols.getMissing())
    loaded->error = std::string("cuBLASLt has no symbol ") + missing +
                    ": install cuBLAS 12 or newer, and let NM_SPARSE_CUBLAS "
                    "name its folder if it is set";
  return loaded;
}

} // namespace

const cublaslt::Api *nms::cublaslt::api() {
  static const Loaded *loaded = load();
  if (loaded->error.empty())
    return &loaded->api;
  fail("%s", loaded->error.c_str());
  return nullptr;
}
