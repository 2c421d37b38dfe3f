//===- Functions.cpp - What is known about kernels ------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Functions.h"

#include "../Support/ErrorState.h"
#include "nm_sparse/Base/KernelSymbols.h"

#include <cstdlib>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <unordered_map>

using namespace nms;

namespace {

struct Table {
  std::mutex mutex;
  std::unordered_map<cuda::Function, std::unique_ptr<FunctionInfo>> entries;
  // Names arrive before attributes are asked for.
  std::unordered_map<cuda::Function, std::pair<cuda::Module, std::string>>
      names;
};

Table &table() {
  static Table *instance = new Table;
  return *instance;
}

/// NM_SPARSE_OVERLAP=0 has each kernel wait for the end of the one ahead of it.
/// Nothing, with the reason recorded, when it is malformed.
std::optional<bool> mayOverlap() {
  const char *text = getenv("NM_SPARSE_OVERLAP");
  std::string_view value = text ? text : "";
  if (value.empty() || value == "1")
    return true;
  if (value == "0")
    return false;
  fail("NM_SPARSE_OVERLAP=%s: set it to 0, so that each kernel waits for the "
       "end of the one ahead of it, or to 1, so that it starts early",
       text);
  return std::nullopt;
}

} // namespace

void nms::nameFunction(cuda::Function function, cuda::Module module,
                       const char *name) {
  std::lock_guard<std::mutex> lock(table().mutex);
  table().names[function] = {module, name};
}

FunctionInfo *nms::functionInfo(const Context &cu, cuda::Function function) {
  std::lock_guard<std::mutex> lock(table().mutex);
  std::unique_ptr<FunctionInfo> &slot = table().entries[function];
  if (slot)
    return slot.get();
  auto info = std::make_unique<FunctionInfo>();
  auto named = table().names.find(function);
  if (named != table().names.end()) {
    info->module = named->second.first;
    info->name = named->second.second;
  } else {
    info->name = "<not loaded by this runtime>";
  }
  const char *what = "reading the attributes of kernel '%s'";
  const char *name = info->name.c_str();
  if (!cu.check(cu->funcGetAttribute(&info->staticShared, cuda::funcSharedBytes,
                                     function),
                what, name) ||
      !cu.check(cu->funcGetAttribute(&info->maxThreads,
                                     cuda::funcMaxThreadsPerBlock, function),
                what, name) ||
      !cu.check(
          cu->funcGetAttribute(&info->registers, cuda::funcRegisters, function),
          what, name)) {
    table().entries.erase(function);
    return nullptr;
  }
  std::optional<bool> overlaps = mayOverlap();
  if (!overlaps) {
    table().entries.erase(function);
    return nullptr;
  }
  cuda::DevicePtr marker = 0;
  info->waits =
      info->module && cu->moduleGetGlobal && *overlaps &&
      cu->moduleGetGlobal(&marker, nullptr, info->module,
                          getWaitsSymbol(info->name).c_str()) == cuda::success;
  slot = std::move(info);
  return slot.get();
}

void nms::readParams(const Context &cu, cuda::Function function,
                     FunctionInfo &info) {
  if (info.paramsKnown || !cu->funcGetParamInfo)
    return;
  // The driver tells no count: it fails for the first index past the end.
  for (size_t i = 0, offset, bytes;
       cu->funcGetParamInfo(function, i, &offset, &bytes) == cuda::success; ++i)
    info.paramBytes.push_back(bytes);
  info.paramsKnown = true;
}

void nms::forgetFunctions(cuda::Module module) {
  std::lock_guard<std::mutex> lock(table().mutex);
  auto &names = table().names;
  for (auto it = names.begin(); it != names.end();) {
    if (it->second.first != module) {
      ++it;
      continue;
    }
    table().entries.erase(it->first);
    it = names.erase(it);
  }
}
