//===- TensorMap.cpp - which tensor maps are legal ------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The rules are those of cuTensorMapEncodeTiled and cuTensorMapEncodeIm2col. A
// map that a kernel made is checked by the same rules, but not before it is
// used: until then its fields are replaced one by one.
//
//===----------------------------------------------------------------------===//

#include "Memory/TensorMap.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/Twine.h"

using namespace mlir::nm_sparse;
using namespace mlir::nm_sparse::emulator;
using llvm::StringRef;
using llvm::Twine;

/// The bytes of an element of each TensorMapType.
static constexpr uint8_t typeBytes[] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4};

static bool isFloat(TensorMapType type) {
  return type == TensorMapType::Float16 || type == TensorMapType::Float32 ||
         type == TensorMapType::Float64 || type == TensorMapType::BFloat16 ||
         type >= TensorMapType::Float32FlushToZero;
}

void TensorMap::setType(TensorMapType newType) {
  type = newType;
  elementBytes = typeBytes[static_cast<unsigned>(newType)];
}

/// The fields, of the dimensions that count, which nothing has set.
static std::string checkMissing(const TensorMap &map) {
  llvm::SmallVector<std::string> names;
  auto add = [&](TensorMapField field, unsigned ordinal, const Twine &name) {
    if (map.missing & getTensorMapBit(field, ordinal))
      names.push_back(name.str());
  };
  add(TensorMapField::Address, 0, "global_address");
  add(TensorMapField::Rank, 0, "rank");
  add(TensorMapField::ElementType, 0, "elemtype");
  add(TensorMapField::Interleave, 0, "interleave_layout");
  add(TensorMapField::Swizzle, 0, "swizzle_mode");
  add(TensorMapField::Fill, 0, "fill_mode");
  for (unsigned i = 0; i < map.rank && i < TensorMap::maxRank; ++i) {
    add(TensorMapField::Box, i, "box_dim " + Twine(i));
    add(TensorMapField::Size, i, "global_dim " + Twine(i));
    add(TensorMapField::ElementStride, i, "element_stride " + Twine(i));
    if (i > 0)
      add(TensorMapField::Stride, i - 1, "global_stride " + Twine(i - 1));
  }
  if (names.empty())
    return "";
  return "tensormap.replace has not set its " + llvm::join(names, ", ");
}

static std::string describe(StringRef what, unsigned i, int64_t value,
                            const Twine &legal) {
  return (what + " " + Twine(i) + " is " + Twine(value) + ", not " + legal)
      .str();
}

static std::string checkDimensions(const TensorMap &map) {
  bool isTiled = map.mode == TensorMapMode::Tiled;
  unsigned leastRank = isTiled ? 1 : 3;
  if (map.rank < leastRank || map.rank > TensorMap::maxRank)
    return ("rank " + Twine(map.rank) + " is not " + Twine(leastRank) + " to 5")
        .str();
  for (unsigned i = 0; i < map.rank; ++i) {
    if (map.sizes[i] < 1 || map.sizes[i] > (uint64_t(1) << 32))
      return describe("size", i, map.sizes[i], "1 to 2^32");
    if (isTiled && (map.box[i] < 1 || map.box[i] > 256))
      return describe("box", i, map.box[i], "1 to 256");
    if (map.elementStrides[i] < 1 || map.elementStrides[i] > 8)
      return describe("element stride", i, map.elementStrides[i], "1 to 8");
  }
  return "";
}

/// The pixels of an im2col map.
static std::string checkPixels(const TensorMap &map) {
  if (map.mode == TensorMapMode::Tiled)
    return "";
  if (map.box[0] < 1 || map.box[0] > 256)
    return (Twine(map.box[0]) + " channels per pixel are not 1 to 256").str();
  if (map.box[1] < 1 || map.box[1] > 1024)
    return (Twine(map.box[1]) + " pixels per column are not 1 to 1024").str();
  int64_t end = int64_t(1) << (map.getPixelBits() - 1);
  std::string legal = (Twine(-end) + " to " + Twine(end - 1)).str();
  for (unsigned i = 0; i < map.getSpatialRank(); ++i) {
    if (map.lower[i] < -end || map.lower[i] >= end)
      return describe("lower corner", i, map.lower[i], legal);
    if (map.upper[i] < -end || map.upper[i] >= end)
      return describe("upper corner", i, map.upper[i], legal);
    if (map.getLastPixel(i) < map.lower[i])
      return ("the pixels in dimension " + Twine(i + 1) + " are none: " +
              Twine(map.lower[i]) + " to " + Twine(map.getLastPixel(i)))
          .str();
  }
  return "";
}

static std::string checkModes(const TensorMap &map) {
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

std::string emulator::checkTensorMap(const TensorMap &map) {
  std::string wrong = checkMissing(map);
  if (wrong.empty())
    wrong = checkDimensions(map);
  if (wrong.empty())
    wrong = checkPixels(map);
  if (wrong.empty())
    wrong = checkModes(map);
  return wrong;
}
