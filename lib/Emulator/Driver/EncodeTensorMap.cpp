//===- EncodeTensorMap.cpp - cuTensorMapEncodeTiled of the emulator ------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The rules are those of the CUDA driver API.
//
//===----------------------------------------------------------------------===//

#include "Driver/Driver.h"
#include "Memory/TensorMap.h"

#include <cstring>

using namespace mlir::nm_sparse;
using namespace mlir::nm_sparse::emulator;
using llvm::Twine;

namespace {

/// The bytes of an element of each TensorMapType.
constexpr uint8_t typeBytes[] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4};

bool isFloat(TensorMapType type) {
  return type == TensorMapType::Float16 || type == TensorMapType::Float32 ||
         type == TensorMapType::Float64 || type == TensorMapType::BFloat16 ||
         type >= TensorMapType::Float32FlushToZero;
}

/// The error of the map as a whole; empty if there is none.
std::string checkModes(const TensorMap &map) {
  if (map.rank < 3 && map.interleave != TensorMapInterleave::None)
    return "an interleaved tensor map needs rank 3 at least";
  if (map.interleave == TensorMapInterleave::Bytes32 &&
      map.swizzle != TensorMapSwizzle::Bytes32)
    return "interleave 32B needs swizzle 32B";
  if (map.fill == TensorMapFill::NaN && !isFloat(map.type))
    return "NaN fill needs a float type";
  unsigned alignment = map.interleave == TensorMapInterleave::Bytes32 ? 32 : 16;
  if (map.base % alignment != 0)
    return ("the address is no multiple of " + Twine(alignment)).str();
  for (unsigned i = 0; i + 1 < map.rank; ++i)
    if (map.strideBytes[i] % alignment != 0 ||
        map.strideBytes[i] >= (uint64_t(1) << 40))
      return ("stride " + Twine(i) + " is " + Twine(map.strideBytes[i]) +
              " bytes, not a multiple of " + Twine(alignment) + " below 2^40")
          .str();
  if (map.interleave != TensorMapInterleave::None)
    return "";
  unsigned inner = map.box[0] * map.elementBytes;
  if (inner % 16 != 0)
    return ("the innermost box is " + Twine(inner) +
            " bytes, not a multiple of 16")
        .str();
  unsigned span = 16u << unsigned(map.swizzle);
  if (map.swizzle != TensorMapSwizzle::None && inner > span)
    return ("the innermost box is " + Twine(inner) + " bytes, more than the " +
            Twine(span) + " of the swizzle")
        .str();
  return "";
}

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
  map.type = TensorMapType(type);
  map.elementBytes = typeBytes[type];
  map.interleave = TensorMapInterleave(interleave);
  map.swizzle = TensorMapSwizzle(swizzle);
  map.fill = TensorMapFill(fill);
  for (uint32_t i = 0; i < rank; ++i) {
    if (sizes[i] < 1 || sizes[i] > (uint64_t(1) << 32))
      return fail("size " + Twine(i) + " is " + Twine(sizes[i]) +
                  ", not 1 to 2^32");
    if (box[i] < 1 || box[i] > 256)
      return fail("box " + Twine(i) + " is " + Twine(box[i]) +
                  ", not 1 to 256");
    if (elementStrides[i] < 1 || elementStrides[i] > 8)
      return fail("element stride " + Twine(i) + " is " +
                  Twine(elementStrides[i]) + ", not 1 to 8");
    map.sizes[i] = sizes[i];
    map.box[i] = box[i];
    map.elementStrides[i] = elementStrides[i];
    if (i > 0)
      map.strideBytes[i - 1] = strides[i - 1];
  }
  if (std::string wrong = checkModes(map); !wrong.empty())
    return fail(wrong);
  static_assert(sizeof(map) == sizeof(*target));
  std::memcpy(target, &map, sizeof(map));
  return nms::cuda::success;
}

} // namespace

void emulator::addTensorMapFunctions(nms::cuda::Api &api) {
  api.tensorMapEncodeTiled = encode;
}
