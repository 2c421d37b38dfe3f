//===- TensorMap.h - what a tensor map holds --------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// NVIDIA keeps the 128 bytes of a CUtensorMap secret. The emulated driver and
// the emulated tensormap.replace write this instead, and the emulated copies
// read it.
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_EMULATOR_MEMORY_TENSORMAP_H
#define NM_SPARSE_LIB_EMULATOR_MEMORY_TENSORMAP_H

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>

namespace mlir::nm_sparse::emulator {

/// The numbers of a CUtensorMapDataType.
enum class TensorMapType : uint8_t {
  UInt8 = 0,
  UInt16 = 1,
  UInt32 = 2,
  Int32 = 3,
  UInt64 = 4,
  Int64 = 5,
  Float16 = 6,
  Float32 = 7,
  Float64 = 8,
  BFloat16 = 9,
  Float32FlushToZero = 10,
  TFloat32 = 11,
  TFloat32FlushToZero = 12,
};

/// The numbers of a CUtensorMapInterleave.
enum class TensorMapInterleave : uint8_t { None = 0, Bytes16 = 1, Bytes32 = 2 };

/// The numbers of a CUtensorMapSwizzle.
enum class TensorMapSwizzle : uint8_t {
  None = 0,
  Bytes32 = 1,
  Bytes64 = 2,
  Bytes128 = 3,
};

/// The numbers of a CUtensorMapFloatOOBfill.
enum class TensorMapFill : uint8_t { Zero = 0, NaN = 1 };

/// The function that encoded the map.
enum class TensorMapMode : uint8_t { Tiled = 0, Im2col = 1 };

/// The fields that tensormap.replace sets one by one.
enum class TensorMapField : uint8_t {
  Address,
  Rank,
  ElementType,
  Interleave,
  Swizzle,
  Fill,
  // Each of these once for each dimension.
  Box,
  Size = Box + 5,
  ElementStride = Size + 5,
  Stride = ElementStride + 5,
  End = Stride + 4,
};

/// In TensorMap::missing.
constexpr uint32_t getTensorMapBit(TensorMapField field, unsigned ordinal = 0) {
  return uint32_t(1) << (static_cast<unsigned>(field) + ordinal);
}

/// The arguments of cuTensorMapEncodeTiled or cuTensorMapEncodeIm2col; entries
/// from `rank` on are 0. The innermost dimension comes first. A map that a
/// kernel makes starts as zeros, and its first tensormap.replace sets `magic`.
struct TensorMap {
  static constexpr uint32_t expectedMagic = 0x4e4d544d;
  static constexpr unsigned maxRank = 5;
  /// Without channels and images.
  static constexpr unsigned maxSpatialRank = maxRank - 2;
  /// The value of `missing` before the first tensormap.replace.
  static constexpr uint32_t allMissing =
      getTensorMapBit(TensorMapField::End) - 1;

  uint64_t base;                     ///< Global address.
  uint64_t sizes[maxRank];           ///< Elements, 1 to 2^32.
  uint64_t strideBytes[maxRank - 1]; ///< For dimensions 1 to rank - 1.
  uint16_t box[maxRank]; ///< Elements, 1 to 256; im2col: channels, pixels.
  uint8_t elementStrides[maxRank]; ///< 1 to 8.
  uint8_t rank;                    ///< 1 to 5.
  uint32_t magic;                  ///< Tells a tensor map from other bytes.
  TensorMapType type;
  uint8_t elementBytes; ///< Size of an element of `type`.
  TensorMapInterleave interleave;
  TensorMapSwizzle swizzle;
  TensorMapFill fill;
  TensorMapMode mode;
  uint8_t unused[2]; ///< Zeros.
  uint32_t missing;  ///< Bits of fields that nothing has set.
  /// Pixels of an image that an im2col copy goes over: from `lower` to `upper`
  /// beyond the last one.
  int16_t lower[maxSpatialRank], upper[maxSpatialRank];
  uint8_t unused2[4]; ///< Zeros.

  /// Sets the size of an element as well.
  void setType(TensorMapType newType);
  // Values that do not fit become others that are illegal as well.
  void setBox(unsigned i, uint32_t value) {
    box[i] = static_cast<uint16_t>(std::min<uint32_t>(value, UINT16_MAX));
  }
  void setElementStride(unsigned i, uint32_t value) {
    elementStrides[i] =
        static_cast<uint8_t>(std::min<uint32_t>(value, UINT8_MAX));
  }
  unsigned getSpatialRank() const { return rank - 2; }
  /// The bits that a number of pixels in one spatial dimension has in an
  /// instruction or in an im2col map.
  unsigned getPixelBits() const { return rank == 3 ? 16 : rank == 4 ? 8 : 5; }
  /// The last pixel in spatial dimension `i` that an im2col copy goes to.
  int64_t getLastPixel(unsigned i) const {
    return static_cast<int64_t>(sizes[i + 1]) - 1 + upper[i];
  }
};

static_assert(sizeof(TensorMap) == 128, "the size of a CUtensorMap");
static_assert(offsetof(TensorMap, magic) == 96);
static_assert(std::is_trivially_copyable_v<TensorMap>);

/// Returns what the driver would refuse of the arguments, or what a map that a
/// kernel makes lacks; empty if it is legal.
std::string checkTensorMap(const TensorMap &map);

} // namespace mlir::nm_sparse::emulator

#endif // NM_SPARSE_LIB_EMULATOR_MEMORY_TENSORMAP_H
