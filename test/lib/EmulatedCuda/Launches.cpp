//===- Launches.cpp - launches of kernels ---------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "EmulatedCuda.h"

#include <cstring>

using namespace nms::cuda;
using llvm::Twine;

using emulated_cuda::errorNotInitialized;
using emulated_cuda::getDriver;
using EmulatedFunction = emulated_cuda::Function;
using emulated_cuda::Launch;

//===----------------------------------------------------------------------===//
// Arguments
//===----------------------------------------------------------------------===//

// The array `extra` of a launch holds pairs up to an end.
static void *const extraEnd = nullptr;
static void *const extraBuffer = reinterpret_cast<void *>(1);
static void *const extraBytes = reinterpret_cast<void *>(2);

Result Launch::copyArguments(void **params, void **extra) {
  arguments.clear();
  const char *buffer = nullptr;
  size_t bytes = 0;
  for (; extra && *extra != extraEnd; extra += 2) {
    if (extra[0] == extraBuffer)
      buffer = static_cast<const char *>(extra[1]);
    else if (extra[0] == extraBytes)
      bytes = *static_cast<size_t *>(extra[1]);
    else
      return fail(errorInvalidValue, "a launch has unknown extra options");
  }
  for (auto [i, parameter] : llvm::enumerate(function->parameters)) {
    const char *from = nullptr;
    if (params)
      from = static_cast<const char *>(params[i]);
    else if (buffer && parameter.offset + parameter.bytes <= bytes)
      from = buffer + parameter.offset;
    if (!from)
      return fail(errorInvalidValue,
                  "a launch of " + function->name + " has no argument " +
                      Twine(i) + " of " + Twine(parameter.bytes) + " bytes");
    arguments.emplace_back(from, from + parameter.bytes);
  }
  return success;
}

//===----------------------------------------------------------------------===//
// Launches
//===----------------------------------------------------------------------===//

/// Runs what the emulator has.
static Result runEmulated(Launch &launch) {
  std::vector<void *> params;
  params.reserve(launch.arguments.size());
  for (std::vector<char> &argument : launch.arguments)
    params.push_back(argument.data());
  nms::cuda::Function function = launch.function->emulated;
  if (launch.cluster[0] == 0)
    return getDriver()->launchKernel(
        function, launch.grid[0], launch.grid[1], launch.grid[2],
        launch.block[0], launch.block[1], launch.block[2], launch.sharedBytes,
        nullptr, params.data(), nullptr);
  LaunchAttribute cluster = {};
  cluster.id = launchAttributeCluster;
  cluster.value.cluster = {launch.cluster[0], launch.cluster[1],
                           launch.cluster[2]};
  LaunchConfig config = {launch.grid[0],     launch.grid[1],
                         launch.grid[2],     launch.block[0],
                         launch.block[1],    launch.block[2],
                         launch.sharedBytes, nullptr,
                         &cluster,           1};
  return getDriver()->launchKernelEx(&config, function, params.data(), nullptr);
}

Result Launch::run() {
  Result result = success;
  if (function->emulated)
    result = runEmulated(*this);
  else
    // Nobody knows what the kernel would have written.
    for (const std::vector<char> &argument : arguments)
      if (DevicePtr address; argument.size() == sizeof(address)) {
        std::memcpy(&address, argument.data(), sizeof(address));
        emulated_cuda::markWritten(address);
      }
  emulated_cuda::traceLaunch(*this, result);
  return result;
}

CUDA_FUNCTION cuLaunchKernel(EmulatedFunction *function, unsigned gridX,
                             unsigned gridY, unsigned gridZ, unsigned blockX,
                             unsigned blockY, unsigned blockZ,
                             unsigned sharedBytes, Stream, void **params,
                             void **extra) {
  if (!getDriver())
    return errorNotInitialized;
  Launch launch = {function,
                   {gridX, gridY, gridZ},
                   {blockX, blockY, blockZ},
                   sharedBytes,
                   {0, 0, 0},
                   {}};
  Result result = launch.copyArguments(params, extra);
  return result == success ? launch.run() : result;
}

CUDA_FUNCTION cuLaunchKernelEx(const LaunchConfig *config,
                               EmulatedFunction *function, void **params,
                               void **extra) {
  if (!getDriver())
    return errorNotInitialized;
  Launch launch = {function,
                   {config->gridX, config->gridY, config->gridZ},
                   {config->blockX, config->blockY, config->blockZ},
                   config->sharedBytes,
                   {0, 0, 0},
                   {}};
  // All others are hints to a driver that runs launches at once.
  for (unsigned i = 0; i < config->attributeCount; ++i)
    if (const LaunchAttribute &attribute = config->attributes[i];
        attribute.id == launchAttributeCluster) {
      launch.cluster[0] = attribute.value.cluster.x;
      launch.cluster[1] = attribute.value.cluster.y;
      launch.cluster[2] = attribute.value.cluster.z;
    }
  Result result = launch.copyArguments(params, extra);
  return result == success ? launch.run() : result;
}
