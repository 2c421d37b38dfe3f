//===- Launch.cpp - Kernel launches ---------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Checks what the driver would answer with a bare CUDA_ERROR_INVALID_VALUE, so
// that the message can name the limit that was exceeded.
//
//===----------------------------------------------------------------------===//

#include "Functions.h"
#include "RecorderState.h"
#include "nm_sparse/Runtime/MGPU.h"

#include <algorithm>
#include <mutex>
#include <optional>

using namespace nms;

namespace {

constexpr int64_t sharedWithoutOptIn = 48 * 1024;
constexpr int64_t portableCluster = 8;

std::mutex &launchMutex() {
  static std::mutex *instance = new std::mutex;
  return *instance;
}

std::string &lastKernel() {
  static std::string *instance = new std::string;
  return *instance;
}

bool checkShape(const LaunchRequest &want, const FunctionInfo &info) {
  static constexpr int64_t gridLimit[3] = {2147483647, 65535, 65535};
  static constexpr int64_t blockLimit[3] = {1024, 1024, 64};
  int64_t threads = 1, blocksPerCluster = 1;
  for (int i = 0; i < 3; ++i) {
    char axis = static_cast<char>('x' + i);
    if (want.grid[i] > gridLimit[i])
      return !fail(
          "%s: kernel '%s': grid %c = %lld is not legal, at most %lld: "
          "use larger tiles or put that dimension on x",
          want.entry, info.name.c_str(), axis,
          static_cast<long long>(want.grid[i]),
          static_cast<long long>(gridLimit[i]));
    if (want.block[i] < 1 || want.block[i] > blockLimit[i])
      return !fail(
          "%s: kernel '%s': block %c = %lld is not legal, must be 1 to "
          "%lld",
          want.entry, info.name.c_str(), axis,
          static_cast<long long>(want.block[i]),
          static_cast<long long>(blockLimit[i]));
    threads *= want.block[i];
    if (!want.hasCluster)
      continue;
    if (want.cluster[i] < 1 || want.grid[i] % want.cluster[i] != 0)
      return !fail("%s: kernel '%s': cluster %c = %lld does not divide grid %c "
                   "= %lld: round the grid up to whole clusters",
                   want.entry, info.name.c_str(), axis,
                   static_cast<long long>(want.cluster[i]), axis,
                   static_cast<long long>(want.grid[i]));
    blocksPerCluster = std::min<int64_t>(blocksPerCluster, 1 << 20) *
                       std::min<int64_t>(want.cluster[i], 1 << 20);
  }
  if (threads > info.maxThreads)
    return !fail("%s: kernel '%s': %lld threads a block, but with %d registers "
                 "a thread it can have at most %d: use fewer warps",
                 want.entry, info.name.c_str(), static_cast<long long>(threads),
                 info.registers, info.maxThreads);
  if (blocksPerCluster > 16)
    return !fail("%s: kernel '%s': %lld blocks a cluster, at most 16 are legal",
                 want.entry, info.name.c_str(),
                 static_cast<long long>(blocksPerCluster));
  return true;
}

/// Raises the function's limits to what the launch needs.
bool optIn(const Context &cu, cuda::Function function,
           const LaunchRequest &want, FunctionInfo &info) {
  int64_t total = want.sharedBytes + info.staticShared;
  if (want.sharedBytes < 0 || total > cu.info().sharedPerBlockOptin)
    return !fail(
        "%s: kernel '%s': %lld bytes of dynamic and %d bytes of static "
        "shared memory, but a block on %s has at most %d: use smaller "
        "tiles or fewer stages",
        want.entry, info.name.c_str(), static_cast<long long>(want.sharedBytes),
        info.staticShared, cu.info().name, cu.info().sharedPerBlockOptin);
  std::lock_guard<std::mutex> lock(launchMutex());
  if (total > sharedWithoutOptIn && want.sharedBytes > info.dynamicShared) {
    if (!cu.check(cu->funcSetAttribute(function,
                                       cuda::funcMaxDynamicSharedBytes,
                                       static_cast<int>(want.sharedBytes)),
                  "%s: giving kernel '%s' %lld bytes of dynamic shared memory",
                  want.entry, info.name.c_str(),
                  static_cast<long long>(want.sharedBytes)))
      return false;
    info.dynamicShared = want.sharedBytes;
  }
  int64_t blocks = want.cluster[0] * want.cluster[1] * want.cluster[2];
  if (want.hasCluster && blocks > portableCluster && !info.nonPortableCluster) {
    if (!cu.check(
            cu->funcSetAttribute(function, cuda::funcNonPortableCluster, 1),
            "%s: allowing kernel '%s' clusters of %lld blocks", want.entry,
            info.name.c_str(), static_cast<long long>(blocks)))
      return false;
    info.nonPortableCluster = true;
  }
  lastKernel() = info.name;
  return true;
}

} // namespace

bool nms::launchChecked(const LaunchRequest &want, cuda::Function function,
                        cuda::Stream stream, void **params, void **extra,
                        int64_t paramCount, const Context *entered) {
  if (!function)
    return !fail("%s: the function is null: an earlier module load or lookup "
                 "failed",
                 want.entry);
  for (int i = 0; i < 3; ++i)
    if (want.grid[i] < 0)
      return !fail("%s: grid %c = %lld is negative: a dynamic size is wrong",
                   want.entry, static_cast<char>('x' + i),
                   static_cast<long long>(want.grid[i]));
  if (want.grid[0] == 0 || want.grid[1] == 0 || want.grid[2] == 0)
    return true;
  std::optional<Context> own;
  const Context &cu = entered ? *entered : own.emplace();
  if (!cu)
    return false;
  FunctionInfo *info = functionInfo(cu, function);
  if (!info || !checkShape(want, *info) || !optIn(cu, function, want, *info))
    return false;

  LaunchShape shape;
  for (int i = 0; i < 3; ++i) {
    shape.grid[i] = static_cast<unsigned>(want.grid[i]);
    shape.block[i] = static_cast<unsigned>(want.block[i]);
    if (want.hasCluster)
      shape.cluster[i] = static_cast<unsigned>(want.cluster[i]);
  }
  shape.sharedBytes = static_cast<unsigned>(want.sharedBytes);
  shape.overlaps = info->waits && cu->launchKernelEx;
  if (shape.hasCluster() && !cu->launchKernelEx)
    return !fail("%s: kernel '%s' wants clusters, which this driver cannot "
                 "launch: install a driver for CUDA 11.8 or newer",
                 want.entry, info->name.c_str());
  if (!cu.check(
          launchRaw(cu, function, shape, stream, params, extra),
          "launching kernel '%s' on a grid of %u x %u x %u, blocks of %u x "
          "%u x %u and %u bytes of dynamic shared memory",
          info->name.c_str(), shape.grid[0], shape.grid[1], shape.grid[2],
          shape.block[0], shape.block[1], shape.block[2], shape.sharedBytes))
    return false;
  if (recording())
    readParams(cu, function, *info);
  return recordLaunch(function, *info, shape, params, extra, paramCount);
}

std::string nms::lastLaunchedKernel() {
  std::lock_guard<std::mutex> lock(launchMutex());
  return lastKernel();
}

cuda::Result nms::launchRaw(const Context &cu, cuda::Function function,
                            const LaunchShape &shape, cuda::Stream stream,
                            void **params, void **extra) {
  const unsigned *grid = shape.grid, *block = shape.block;
  if (!shape.hasCluster() && !shape.overlaps)
    return cu->launchKernel(function, grid[0], grid[1], grid[2], block[0],
                            block[1], block[2], shape.sharedBytes, stream,
                            params, extra);
  cuda::LaunchAttribute attributes[2] = {};
  unsigned count = 0;
  if (shape.hasCluster()) {
    cuda::LaunchAttribute &cluster = attributes[count++];
    cluster.id = cuda::launchAttributeCluster;
    cluster.value.cluster.x = shape.cluster[0];
    cluster.value.cluster.y = shape.cluster[1];
    cluster.value.cluster.z = shape.cluster[2];
  }
  if (shape.overlaps) {
    cuda::LaunchAttribute &serialization = attributes[count++];
    serialization.id = cuda::launchAttributeProgrammaticSerialization;
    serialization.value.programmaticSerialization = 1;
  }
  cuda::LaunchConfig config = {
      grid[0],  grid[1],           grid[2], block[0],   block[1],
      block[2], shape.sharedBytes, stream,  attributes, count};
  return cu->launchKernelEx(&config, function, params, extra);
}

extern "C" void mgpuLaunchKernel(void *function, int64_t gridX, int64_t gridY,
                                 int64_t gridZ, int64_t blockX, int64_t blockY,
                                 int64_t blockZ, int32_t sharedBytes,
                                 void *stream, void **params, void **extra,
                                 int64_t paramCount) {
  LaunchRequest want = {"mgpuLaunchKernel",    {0, 0, 0},
                        {gridX, gridY, gridZ}, {blockX, blockY, blockZ},
                        sharedBytes,           false};
  if (!launchChecked(want, static_cast<cuda::Function>(function),
                     static_cast<cuda::Stream>(stream), params, extra,
                     paramCount))
    raise();
}

extern "C" void mgpuLaunchClusterKernel(void *function, int64_t clusterX,
                                        int64_t clusterY, int64_t clusterZ,
                                        int64_t gridX, int64_t gridY,
                                        int64_t gridZ, int64_t blockX,
                                        int64_t blockY, int64_t blockZ,
                                        int32_t sharedBytes, void *stream,
                                        void **params, void **extra) {
  LaunchRequest want = {"mgpuLaunchClusterKernel",
                        {clusterX, clusterY, clusterZ},
                        {gridX, gridY, gridZ},
                        {blockX, blockY, blockZ},
                        sharedBytes,
                        true};
  if (!launchChecked(want, static_cast<cuda::Function>(function),
                     static_cast<cuda::Stream>(stream), params, extra, -1))
    raise();
}
