//===- EncodeTensorMap.cpp - tensor maps of the emulated driver -----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Memory/TensorMap.cpp has the rules.
//
//===----------------------------------------------------------------------===//

#include "Driver/Driver.h"
#include "Memory/TensorMap.h"
#include "llvm/Support/MathExtras.h"

#include <cstring>

using namespace mlir::nm_sparse;
using namespace mlir::nm_sparse::emulator;
using llvm::Twine;

namespace {

nms::cuda::Result fail(const Twine &text) {
  return reportResult(nms::cuda::errorInvalidValue, text);
}

/// Sets what both modes share; the box is up to the caller.
nms::cuda::Result setTensor(TensorMap &map, const nms::cuda::TensorMap *target,
                            int type, uint32_t rank, void *base,
                            const uint64_t *sizes, const uint64_t *strides,
                            const uint32_t *elementStrides, int interleave,
                            int swizzle, int l2Promotion, int fill) {
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

  map.base = reinterpret_cast<uint64_t>(base);
  map.rank = rank;
  map.magic = TensorMap::expectedMagic;
  map.setType(TensorMapType(type));
  map.interleave = TensorMapInterleave(interleave);
  map.swizzle = TensorMapSwizzle(swizzle);
  map.fill = TensorMapFill(fill);
  for (uint32_t i = 0; i < rank; ++i) {
    map.sizes[i] = sizes[i];
    map.setElementStride(i, elementStrides[i]);
    if (i > 0)
      map.strideBytes[i - 1] = strides[i - 1];
  }
  return nms::cuda::success;
}

nms::cuda::Result write(nms::cuda::TensorMap *target, const TensorMap &map) {
  if (std::string wrong = checkTensorMap(map); !wrong.empty())
    return fail(wrong);
  static_assert(sizeof(map) == sizeof(*target));
  std::memcpy(target, &map, sizeof(map));
  return nms::cuda::success;
}

nms::cuda::Result encodeTiled(nms::cuda::TensorMap *target, int type,
                              uint32_t rank, void *base, const uint64_t *sizes,
                              const uint64_t *strides, const uint32_t *box,
                              const uint32_t *elementStrides, int interleave,
                              int swizzle, int l2Promotion, int fill) {
  TensorMap map = {};
  if (nms::cuda::Result result =
          setTensor(map, target, type, rank, base, sizes, strides,
                    elementStrides, interleave, swizzle, l2Promotion, fill))
    return result;
  for (uint32_t i = 0; i < rank; ++i)
    map.setBox(i, box[i]);
  return write(target, map);
}

/// Corners have an element for each dimension but the channels and the images.
nms::cuda::Result encodeIm2col(nms::cuda::TensorMap *target, int type,
                               uint32_t rank, void *base, const uint64_t *sizes,
                               const uint64_t *strides, const int *lower,
                               const int *upper, uint32_t channels,
                               uint32_t pixels, const uint32_t *elementStrides,
                               int interleave, int swizzle, int l2Promotion,
                               int fill) {
  TensorMap map = {};
  if (nms::cuda::Result result =
          setTensor(map, target, type, rank, base, sizes, strides,
                    elementStrides, interleave, swizzle, l2Promotion, fill))
    return result;
  map.mode = TensorMapMode::Im2col;
  map.setBox(0, channels);
  map.setBox(1, pixels);
  for (uint32_t i = 0; i + 2 < rank && i < TensorMap::maxSpatialRank; ++i) {
    for (int corner : {lower[i], upper[i]})
      if (!llvm::isInt<16>(corner))
        return fail("corner " + Twine(corner) + " does not fit into 16 bits");
    map.lower[i] = static_cast<int16_t>(lower[i]);
    map.upper[i] = static_cast<int16_t>(upper[i]);
  }
  return write(target, map);
}

} // namespace

void emulator::addTensorMapFunctions(nms::cuda::Api &api) {
  api.tensorMapEncodeTiled = encodeTiled;
  api.tensorMapEncodeIm2col = encodeIm2col;
}
