//===- Functions.h - What is known about kernels ----------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Modules and launches share this table: names for error messages, attributes
// for launch checks, parameter sizes for the recorder.
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_RUNTIME_DRIVER_FUNCTIONS_H
#define NM_SPARSE_LIB_RUNTIME_DRIVER_FUNCTIONS_H

#include "Context.h"

#include <string>
#include <vector>

namespace nms {

struct FunctionInfo {
  std::string name;
  cuda::Module module = nullptr;
  int staticShared = 0;
  int maxThreads = 0;
  int registers = 0;
  /// Dynamic shared memory that was opted into so far.
  int64_t dynamicShared = 0;
  bool nonPortableCluster = false;
  /// It waits for what is ahead of it in the stream before it touches memory.
  bool waits = false;
  /// From readParams; empty with `paramsKnown` unset before, or when the driver
  /// cannot tell.
  std::vector<size_t> paramBytes;
  bool paramsKnown = false;
};

/// The entry for `function`, made on first use; null with the reason recorded.
/// Entries do not move.
FunctionInfo *functionInfo(const Context &cu, cuda::Function function);

/// Fills `paramBytes` of `info`, when the driver can tell. Asks one parameter
/// too many, which a memory checker reports as an error of the API: only for
/// those who need the sizes.
void readParams(const Context &cu, cuda::Function function, FunctionInfo &info);

/// The module of `image` on the calling thread's device, from the cache, for
/// which it counts as a use: PTX for `level` 0 to 4, a cubin for -1. Null with
/// the reason recorded.
cuda::Module loadModule(std::string image, int level);

/// The kernel `name` of `module`; null with the reason recorded.
cuda::Function findKernel(const Context &cu, cuda::Module module,
                          const char *name);

/// Notes where a function came from.
void nameFunction(cuda::Function function, cuda::Module module,
                  const char *name);

/// Drops the entries of a module that is being unloaded.
void forgetFunctions(cuda::Module module);

struct LaunchShape {
  unsigned cluster[3] = {0, 0, 0}; // all zero: a launch without clusters
  unsigned grid[3] = {1, 1, 1};
  unsigned block[3] = {1, 1, 1};
  unsigned sharedBytes = 0;
  bool overlaps = false; // starts before the kernel ahead of it has ended
  bool hasCluster() const { return cluster[0] != 0; }
};

/// The launch that is asked for; `entry` is for messages.
struct LaunchRequest {
  const char *entry;
  int64_t cluster[3], grid[3], block[3];
  int64_t sharedBytes;
  bool hasCluster;
};

/// Launches, and records it where launches are recorded. False with the reason
/// recorded. Nothing is launched, with success, on an empty grid. Enters a
/// context of its own unless the caller has `entered` one.
bool launchChecked(const LaunchRequest &want, cuda::Function function,
                   cuda::Stream stream, void **params, void **extra,
                   int64_t paramCount, const Context *entered = nullptr);

/// Launches without checks or recording.
cuda::Result launchRaw(const Context &cu, cuda::Function function,
                       const LaunchShape &shape, cuda::Stream stream,
                       void **params, void **extra);

/// Name of the kernel launched last in this process, "" when there was none.
std::string lastLaunchedKernel();

} // namespace nms

#endif // NM_SPARSE_LIB_RUNTIME_DRIVER_FUNCTIONS_H
