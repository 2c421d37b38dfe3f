//===- EncodeTensorMap.cpp - cuTensorMapEncodeTiled of the emulator ------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Memory/TensorMap.cpp has the rules.
//
//===----------------------------------------------------------------------===//

#include "Driver/Driver.h"
#include "Memory/TensorMap.h"

#include <cstring>

using namespace mlir::nm_sparse;
using namespace mlir::nm_sparse::emulator;
using llvm::Twine;

namespace {

nms::cuda::Result encode(nms::cuda::TensorMap *target, int type, uint32_t rank,
                         void *base, const uint64_t *sizes,
                         const uint64_t *strides, const uint32_t *box,
                         const uint32_t *elementStrides, int interleave,
                         int swizzle, int l2Promotion, int fill) {
  auto fail = [](const Twine &text) {
    return reportResult(nms::cuda::errorInvalidValue, text);
  };
  const Chip *chip = getCurrentChip();
  if (chip && getCapability(*chip) < firstCapabilityOfHopper)
    return reportResult(nms::cuda::errorNotSupported,
                        chip->name + " has no tensor maps");
  auto isIn = [](int value, int last) { return value >= 0 && value <= last; };
  if (!isIn(type, 12) || !isIn(interleave, 2) || !isIn(swizzle, 3) ||
      !isIn(l2Promotion, 3) || !isIn(fill, 1))
    return fail("one of the enumerations has no such value");
  if (rank < 1 || rank > TensorMap::maxRank)
    return fail("rank " + Twine(rank) + " is not 1 to 5");
  if (reinterpret_cast<uintptr_t>(target) % alignof(nms::cuda::TensorMap) != 0)
    return fail("the tensor map is not aligned to 64 bytes");

  TensorMap map = {};
  map.base = reinterpret_cast<uint64_t>(base);
  map.rank = rank;
  map.magic = TensorMap::expectedMagic;
  map.setType(TensorMapType(type));
  map.interleave = TensorMapInterleave(interleave);
  map.swizzle = TensorMapSwizzle(swizzle);
  map.fill = TensorMapFill(fill);
  for (uint32_t i = 0; i < rank; ++i) {
    map.sizes[i] = sizes[i];
    map.setBox(i, box[i]);
    map.setElementStride(i, elementStrides[i]);
    if (i > 0)
      map.strideBytes[i - 1] = strides[i - 1];
  }
  if (std::string wrong = checkTensorMap(map); !wrong.empty())
    return fail(wrong);
  static_assert(sizeof(map) == sizeof(*target));
  std::memcpy(target, &map, sizeof(map));
  return nms::cuda::success;
}

} // namespace

void emulator::addTensorMapFunctions(nms::cuda::Api &api) {
  api.tensorMapEncodeTiled = encode;
}
