//===- PlanLauncher.cpp - launching what was planned ----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PlanLauncher.h"

#include "../Driver/Context.h"
#include "../Driver/TensorMap.h"
#include "nm_sparse/Runtime/Error.h"

#include <algorithm>

using namespace nms;

static_assert(kMaxManifestRank == NMS_MAX_RANK);

bool PlanLauncher::fill(const Context &cu) const {
  for (const PlannedFill &fill : plan.fills) {
    auto at = reinterpret_cast<cuda::DevicePtr>(static_cast<char *>(workspace) +
                                                fill.offset);
    // Space of the workspace is whole words.
    int64_t words = (fill.count * fill.elementBytes + 3) / 4;
    bool isOfWords =
        fill.elementBytes == 4 || fill.value == 0 || fill.value == -1;
    if (!isOfWords && fill.elementBytes != 2)
      return !nms::fail(
          "a buffer of elements of %lld bytes cannot begin as %lld: legal is "
          "0 or -1, or elements of 2 or 4 bytes",
          static_cast<long long>(fill.elementBytes),
          static_cast<long long>(fill.value));
    cuda::Result result =
        isOfWords
            ? cu->memsetD32Async(at, static_cast<unsigned>(fill.value), words,
                                 stream)
            : cu->memsetD16Async(at, static_cast<unsigned short>(fill.value),
                                 fill.count, stream);
    if (!cu.check(result, "filling a buffer of %lld bytes",
                  static_cast<long long>(4 * words)))
      return false;
  }
  return true;
}

void *PlanLauncher::findMap(const PlannedParameter &parameter,
                            int device) const {
  const PlannedMap &map = plan.maps[parameter.map];
  const void *base = resolve(parameter.pointer);
  if (void *known = map.copies->find(device, base))
    return known;
  void *made = makeMap(map, base);
  if (made)
    map.copies->add(device, base, made);
  return made;
}

void *PlanLauncher::makeMap(const PlannedMap &map, const void *base) const {
  int64_t descriptor[3 + 2 * NMS_MAX_RANK];
  size_t rank = map.sizes.size();
  descriptor[0] = descriptor[1] = reinterpret_cast<int64_t>(base);
  descriptor[2] = 0;
  std::copy(map.sizes.begin(), map.sizes.end(), descriptor + 3);
  std::copy(map.strides.begin(), map.strides.end(), descriptor + 3 + rank);
  TensorMapFormat format;
  format.dataType = map.dataType;
  format.swizzle = map.swizzle;
  format.l2Promotion = map.l2Promotion;
  format.boxDims = map.box.data();
  format.im2col = map.im2col;
  return encodeTensorMap("nmsProgramLaunch", static_cast<int64_t>(rank),
                         descriptor, format,
                         map.isByValue ? MapMemory::Host : MapMemory::Device);
}

bool PlanLauncher::launch(const Context &cu, const PlannedLaunch &launch,
                          cuda::Function function) {
  // Kept by the thread, as many calls follow.
  static thread_local std::vector<uint64_t> slots;
  static thread_local std::vector<void *> parameters;
  size_t count = launch.parameters.size();
  slots.resize(count);
  parameters.resize(count);
  for (size_t i = 0; i < count; ++i) {
    const PlannedParameter &parameter = launch.parameters[i];
    switch (parameter.kind) {
    case ManifestParameter::Kind::Number:
      slots[i] = static_cast<uint64_t>(parameter.number);
      break;
    case ManifestParameter::Kind::Pointer:
      slots[i] = reinterpret_cast<uint64_t>(resolve(parameter.pointer));
      break;
    case ManifestParameter::Kind::TensorMap:
      static cuda::TensorMap noMap = {};
      void *map =
          parameter.map < 0 ? &noMap : findMap(parameter, cu.info().ordinal);
      if (!map)
        return false;
      if (parameter.map < 0 || plan.maps[parameter.map].isByValue) {
        parameters[i] = map;
        continue;
      }
      slots[i] = reinterpret_cast<uint64_t>(map);
      break;
    }
    parameters[i] = &slots[i];
  }
  return launchChecked(launch.shape, function, stream, parameters.data(),
                       nullptr, static_cast<int64_t>(count), &cu);
}
