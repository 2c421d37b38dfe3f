//===- Program.cpp - launching what a manifest describes ------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Runtime/Program.h"

#include "PlanLauncher.h"
#include "ProgramPlan.h"
#include "nm_sparse/Runtime/Error.h"
#include "nm_sparse/Runtime/MGPU.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <unordered_map>

using namespace nms;

/// The kernels of a program on one device.
struct LoadedKernels {
  cuda::Module module = nullptr;
  std::vector<cuda::Function> functions;

  LoadedKernels() = default;
  LoadedKernels(const LoadedKernels &) = delete;
  LoadedKernels &operator=(const LoadedKernels &) = delete;
  ~LoadedKernels() { mgpuModuleUnload(module); }
};

struct NmsProgram {
  Manifest manifest;
  std::string image;
  KernelNumbers kernels;

  std::mutex mutex; ///< Guards what follows.
  /// By the bytes of function, sizes and strides.
  std::unordered_map<std::string, std::shared_ptr<const ProgramPlan>> plans;
  std::map<int, std::shared_ptr<const LoadedKernels>> loaded; ///< By device.
};

namespace {

// Plans are a few KB: a server that sees every token count keeps them all.
constexpr size_t kMostPlans = 8192;

const ManifestFunction *getFunction(const NmsProgram *program,
                                    int32_t function) {
  if (!program) {
    fail("the program is null: an earlier nmsProgramCreate failed");
    return nullptr;
  }
  const auto &functions = program->manifest.functions;
  if (function < 0 || function >= static_cast<int32_t>(functions.size())) {
    fail("the program has no function %d, only 0 to %zu", function,
         functions.size() - 1);
    return nullptr;
  }
  return &functions[function];
}

/// The key of a call, in memory that the thread keeps.
const std::string &makeKey(int32_t function, const NmsArray *arguments,
                           int32_t count) {
  static thread_local std::string key;
  key.clear();
  auto add = [&](const void *data, size_t bytes) {
    key.append(static_cast<const char *>(data), bytes);
  };
  add(&function, sizeof(function));
  for (int32_t i = 0; i < count; ++i) {
    const NmsArray &array = arguments[i];
    add(&array.rank, sizeof(array.rank));
    if (array.rank < 0) {
      add(static_cast<const void *>(&array.data), sizeof(array.data));
      continue;
    }
    add(array.sizes, array.rank * sizeof(int64_t));
    bool hasStrides = array.strides;
    add(&hasStrides, sizeof(hasStrides));
    if (hasStrides)
      add(array.strides, array.rank * sizeof(int64_t));
  }
  return key;
}

} // namespace

std::shared_ptr<const ProgramPlan> nms::findPlan(NmsProgram *program,
                                                 int32_t function,
                                                 const NmsArray *arguments,
                                                 int32_t count) {
  const ManifestFunction *called = getFunction(program, function);
  if (!called)
    return nullptr;
  for (int32_t i = 0; i < count; ++i)
    if (arguments[i].rank > NMS_MAX_RANK ||
        (arguments[i].rank > 0 && !arguments[i].sizes)) {
      fail("argument %d of @%s has rank %d, at most %d are legal, each with a "
           "size",
           i, called->name.c_str(), arguments[i].rank, int(NMS_MAX_RANK));
      return nullptr;
    }
  const std::string &key = makeKey(function, arguments, count);
  {
    std::lock_guard<std::mutex> lock(program->mutex);
    auto found = program->plans.find(key);
    if (found != program->plans.end())
      return found->second;
  }
  std::shared_ptr<const ProgramPlan> plan =
      planCall(program->manifest, *called, program->kernels, arguments, count);
  if (!plan)
    return nullptr;
  std::lock_guard<std::mutex> lock(program->mutex);
  if (program->plans.size() >= kMostPlans)
    program->plans.clear();
  program->plans[key] = plan;
  return plan;
}

namespace {

/// The kernels on the calling thread's device, loaded on first use; null with
/// the reason recorded.
std::shared_ptr<const LoadedKernels> findKernels(NmsProgram *program,
                                                 const Context &cu) {
  std::lock_guard<std::mutex> lock(program->mutex);
  std::shared_ptr<const LoadedKernels> &kernels =
      program->loaded[cu.info().ordinal];
  if (kernels)
    return kernels;
  // Text is PTX, which the driver compiles; what begins so is an ELF file.
  bool isCubin = program->image.compare(0, 4,
                                        "\x7f"
                                        "ELF") == 0;
  auto fresh = std::make_shared<LoadedKernels>();
  fresh->module = loadModule(program->image, isCubin ? -1 : 4);
  if (!fresh->module)
    return nullptr;
  for (const std::string &name : program->kernels) {
    fresh->functions.push_back(findKernel(cu, fresh->module, name.c_str()));
    if (!fresh->functions.back())
      return nullptr;
  }
  kernels = std::move(fresh);
  return kernels;
}

/// True when kernels can read and write where `arguments` begin; a GPU that
/// cannot takes the whole context with it.
bool checkPointers(const NmsProgram *program, int32_t function,
                   const NmsArray *arguments, int32_t count) {
  for (int32_t i = 0; i < count; ++i) {
    const NmsArray &array = arguments[i];
    if (array.rank < 0 ||
        std::count(array.sizes, array.sizes + array.rank, 0) > 0)
      continue;
    if (!array.data || reinterpret_cast<uintptr_t>(array.data) % 16 != 0)
      return !fail("argument %d of @%s begins at %p, legal is a multiple of 16 "
                   "bytes that is not null: pass a copy",
                   i, program->manifest.functions[function].name.c_str(),
                   array.data);
  }
  return true;
}

int launchPlan(NmsProgram *program, int32_t function, const ProgramPlan &plan,
               const NmsArray *arguments, int32_t count, void *workspace,
               cuda::Stream stream) {
  if (plan.workspaceBytes > 0 &&
      (!workspace || reinterpret_cast<uintptr_t>(workspace) % 256 != 0))
    return fail("the workspace, of %lld bytes, begins at %p, which is no "
                "multiple of 256: allocate it for itself",
                static_cast<long long>(plan.workspaceBytes), workspace);
  if (!checkPointers(program, function, arguments, count))
    return 1;
  if (plan.launches.empty() && plan.fills.empty())
    return 0;
  Context cu;
  if (!cu)
    return 1;
  auto kernels = findKernels(program, cu);
  if (!kernels)
    return 1;
  PlanLauncher launcher(plan, arguments, workspace, stream);
  if (!launcher.fill(cu))
    return 1;
  for (const PlannedLaunch &launch : plan.launches)
    if (!launcher.launch(cu, launch, kernels->functions[launch.kernel]))
      return 1;
  return 0;
}

} // namespace

NmsProgram *nmsProgramCreate(const char *manifest, size_t manifestBytes,
                             const char *image, size_t imageBytes) {
  if (!manifest || !image || imageBytes == 0) {
    fail("nmsProgramCreate: the manifest or the image is empty");
    return nullptr;
  }
  auto program = std::make_unique<NmsProgram>();
  if (!Manifest::parse({manifest, manifestBytes}, program->manifest))
    return nullptr;
  program->image.assign(image, imageBytes);
  for (const ManifestFunction &function : program->manifest.functions)
    for (const ManifestLaunch &launch : function.launches)
      if (std::find(program->kernels.begin(), program->kernels.end(),
                    launch.kernel) == program->kernels.end())
        program->kernels.push_back(launch.kernel);
  return program.release();
}

void nmsProgramDestroy(NmsProgram *program) { delete program; }

int32_t nmsProgramFunction(const NmsProgram *program, const char *name) {
  if (!getFunction(program, 0))
    return -1;
  if (!name || !*name)
    return 0;
  const auto &functions = program->manifest.functions;
  for (size_t i = 0; i < functions.size(); ++i)
    if (functions[i].name == name)
      return static_cast<int32_t>(i);
  fail("the program has no function @%s; its first is @%s", name,
       functions.front().name.c_str());
  return -1;
}

int32_t nmsProgramArguments(const NmsProgram *program, int32_t function) {
  const ManifestFunction *found = getFunction(program, function);
  return found ? static_cast<int32_t>(found->arguments.size()) : -1;
}

int32_t nmsProgramResults(const NmsProgram *program, int32_t function) {
  const ManifestFunction *found = getFunction(program, function);
  if (!found)
    return -1;
  if (!found->cases.empty())
    found = &program->manifest.functions[found->cases.front().function];
  return static_cast<int32_t>(found->results.size());
}

int32_t nmsProgramChecks(const NmsProgram *program, int32_t function) {
  const ManifestFunction *found = getFunction(program, function);
  if (!found)
    return -1;
  size_t most = found->checks.size();
  for (const ManifestCase &one : found->cases)
    most =
        std::max(most, program->manifest.functions[one.function].checks.size());
  return static_cast<int32_t>(most);
}

int64_t nmsProgramWorkspace(NmsProgram *program, int32_t function,
                            const NmsArray *arguments, int32_t count) {
  auto plan = findPlan(program, function, arguments, count);
  return plan ? plan->workspaceBytes : -1;
}

int nmsProgramResult(NmsProgram *program, int32_t function,
                     const NmsArray *arguments, int32_t count, int32_t number,
                     NmsResult *result) {
  auto plan = findPlan(program, function, arguments, count);
  if (!plan)
    return 1;
  if (number < 0 || number >= static_cast<int32_t>(plan->results.size()))
    return fail("@%s has %zu results, and number %d was asked for",
                program->manifest.functions[function].name.c_str(),
                plan->results.size(), number);
  *result = plan->results[number];
  return 0;
}

int nmsProgramLaunch(NmsProgram *program, int32_t function,
                     const NmsArray *arguments, int32_t count, void *workspace,
                     void *stream) {
  auto plan = findPlan(program, function, arguments, count);
  return plan ? launchPlan(program, function, *plan, arguments, count,
                           workspace, static_cast<cuda::Stream>(stream))
              : 1;
}

int nmsProgramCall(NmsProgram *program, int32_t function,
                   const NmsArray *arguments, int32_t count,
                   NmsAllocate allocate, void *context, void *stream) {
  auto plan = findPlan(program, function, arguments, count);
  if (!plan)
    return NMS_CALL_REFUSED;
  void *workspace = nullptr;
  if (plan->workspaceBytes > 0) {
    workspace = allocate(context, plan->workspaceBytes);
    if (!workspace)
      return NMS_CALL_WITHOUT_MEMORY;
  }
  return launchPlan(program, function, *plan, arguments, count, workspace,
                    static_cast<cuda::Stream>(stream));
}
