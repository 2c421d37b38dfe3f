//===- Module.cpp - Loading modules, once per content ---------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The cache keeps whole images as keys, so equal hashes of different images do
// no harm. Unloading only drops a use: a process that compiles the same network
// again finds its modules loaded, and a static destructor that unloads after
// the driver has shut down calls nothing.
//
//===----------------------------------------------------------------------===//

#include "Functions.h"
#include "RecorderState.h"
#include "RelaxedCapture.h"
#include "nm_sparse/Runtime/MGPU.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <tuple>

using namespace nms;

namespace {

struct CachedModule {
  std::mutex loading;            // held while the driver makes the module
  cuda::Module module = nullptr; // null until then
  int64_t uses = 0;              // with those that wait for it
};

// Device ordinal, JIT level (-1: no PTX), image.
using Key = std::tuple<int, int, std::string>;

struct Cache {
  std::mutex mutex;
  std::map<Key, CachedModule> modules;
};

Cache &cache() {
  static Cache *instance = new Cache;
  return *instance;
}

/// The driver's log as one line.
std::string oneLine(const char *log) {
  std::string text(log, strnlen(log, 2048));
  while (!text.empty() && strchr(" \r\n\t", text.back()))
    text.pop_back();
  std::string line;
  for (char c : text) {
    if (c == '\n')
      line += "; ";
    else if (c != '\r')
      line += c;
  }
  return line;
}

cuda::Module loadImage(const Context &cu, const std::string &image, int level) {
  char log[4096] = "";
  int options[] = {cuda::jitErrorLog, cuda::jitErrorLogBytes,
                   cuda::jitOptimizationLevel};
  // Scalars travel in the bytes of the pointer.
  void *values[] = {log, reinterpret_cast<void *>(sizeof(log) - 1),
                    reinterpret_cast<void *>(static_cast<intptr_t>(level))};
  cuda::Module module = nullptr;
  RelaxedCapture relaxed(cu);
  cuda::Result result = cu->moduleLoadDataEx(
      &module, image.c_str(), level < 0 ? 2 : 3, options, values);
  if (result == cuda::success)
    return module;
  const char *form = level < 0            ? "cubin or fatbin"
                     : isDriverReplaced() ? "text"
                                          : "PTX";
  std::string said = oneLine(log);
  cu.check(result, "loading a %s module of %zu bytes on %s (sm_%d%d)%s%s%s",
           form, image.size(), cu.info().name, cu.info().ccMajor,
           cu.info().ccMinor,
           said.empty() ? "" : " [the driver's log: ", said.c_str(),
           said.empty() ? "" : "]");
  return nullptr;
}

} // namespace

cuda::Module nms::loadModule(std::string image, int level) {
  Context cu;
  if (!cu)
    return nullptr;
  std::unique_lock<std::mutex> lock(cache().mutex);
  auto entry =
      cache()
          .modules.try_emplace(Key(cu.info().ordinal, level, std::move(image)))
          .first;
  CachedModule &own = entry->second;
  ++own.uses;
  lock.unlock();
  // Compiling PTX takes long, so threads with other images do not wait.
  std::unique_lock<std::mutex> loading(own.loading);
  if (own.module)
    return own.module;
  cuda::Module module = loadImage(cu, std::get<2>(entry->first), level);
  lock.lock();
  own.module = module;
  if (module)
    return module;
  loading.unlock();
  if (--own.uses == 0)
    cache().modules.erase(entry);
  return nullptr;
}

cuda::Function nms::findKernel(const Context &cu, cuda::Module module,
                               const char *name) {
  cuda::Function function = nullptr;
  if (!cu.check(cu->moduleGetFunction(&function, module, name),
                "finding kernel '%s' in its module", name))
    return nullptr;
  nameFunction(function, module, name);
  return function;
}

extern "C" void *mgpuModuleLoad(const void *data, size_t size) {
  void *module = nullptr;
  if (!data || size == 0)
    fail(
        "mgpuModuleLoad: the image is empty: compile the gpu.module to a cubin "
        "or fatbin first");
  else
    module = loadModule(std::string(static_cast<const char *>(data), size), -1);
  if (!module)
    raise();
  return module;
}

extern "C" void *mgpuModuleLoadJIT(const void *data, int32_t optLevel) {
  void *module = nullptr;
  if (!data || !*static_cast<const char *>(data))
    fail("mgpuModuleLoadJIT: the PTX text is empty: compile the gpu.module "
         "first");
  else if (optLevel < 0 || optLevel > 4)
    fail("mgpuModuleLoadJIT: optimization level %d is none of the driver's: "
         "use 0 to 4",
         optLevel);
  else
    module = loadModule(static_cast<const char *>(data), optLevel);
  if (!module)
    raise();
  return module;
}

extern "C" void mgpuModuleUnload(void *module) {
  if (!module)
    return;
  {
    std::lock_guard<std::mutex> lock(cache().mutex);
    for (auto &entry : cache().modules) {
      if (entry.second.module != module || entry.second.uses == 0)
        continue;
      --entry.second.uses;
      return;
    }
  }
  fail("mgpuModuleUnload: %p is no module in use: unload each module once",
       module);
  raise();
}

extern "C" void *mgpuModuleGetFunction(void *module, const char *name) {
  cuda::Function function = nullptr;
  if (!module || !name) {
    fail("mgpuModuleGetFunction: kernel '%s' was asked of a null module: an "
         "earlier load failed",
         name ? name : "<null>");
  } else if (Context cu; cu) {
    function = findKernel(cu, static_cast<cuda::Module>(module), name);
  }
  if (!function)
    raise();
  return function;
}

extern "C" int64_t nmsModuleCacheSize() {
  std::lock_guard<std::mutex> lock(cache().mutex);
  return static_cast<int64_t>(cache().modules.size());
}

extern "C" int nmsModuleCacheClear() {
  if (recording())
    return fail("nmsModuleCacheClear: launches are being recorded and still "
                "need their modules: call nmsRecordEnd first");
  Context cu;
  if (!cu)
    return 1;
  std::lock_guard<std::mutex> lock(cache().mutex);
  auto &modules = cache().modules;
  for (auto it = modules.begin(); it != modules.end();) {
    if (it->second.uses != 0 || std::get<0>(it->first) != cu.info().ordinal) {
      ++it;
      continue;
    }
    forgetFunctions(it->second.module);
    cuda::Module module = it->second.module;
    it = modules.erase(it);
    if (!cu.check(cu->moduleUnload(module), "unloading a module"))
      return 1;
  }
  return 0;
}
