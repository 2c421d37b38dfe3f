//===- ElementType.cpp - what tensor cores multiply ----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Ops/Matrix/ElementType.h"
#include "nm_sparse/Base/Element.h"
#include "llvm/ADT/STLExtras.h"
#include <array>
#include <limits>

namespace mlir::nm_sparse::emulator {

namespace {

struct Properties {
  const char *name;
  uint8_t bits;
  int16_t minExponent;
};

/// In the order of ElementType.
constexpr Properties properties[] = {
    {"f16", 16, -14}, {"bf16", 16, -126}, {"tf32", 32, -126}, {"e4m3", 8, -6},
    {"e5m2", 8, -14}, {"s8", 8, 0},       {"u8", 8, 0},       {"s4", 4, 0},
    {"u4", 4, 0},     {"f64", 64, -1022}, {"f32", 32, -126},  {"s32", 32, 0}};

const Properties &get(ElementType type) {
  return properties[static_cast<unsigned>(type)];
}

/// All numbers of an 8-bit type with `mantissaBits`.
std::array<float, 256> makeTable(unsigned mantissaBits, int bias,
                                 bool hasInfinity) {
  std::array<float, 256> table;
  constexpr float nan = std::numeric_limits<float>::quiet_NaN();
  unsigned one = 1u << mantissaBits, maxExponent = 0x7fu >> mantissaBits;
  for (unsigned bits = 0; bits < 256; ++bits) {
    unsigned exponent = (bits & 0x7f) >> mantissaBits;
    unsigned mantissa = bits & (one - 1);
    float value =
        exponent == 0
            ? std::ldexp(static_cast<float>(mantissa), 1 - bias - mantissaBits)
            : std::ldexp(static_cast<float>(one + mantissa),
                         static_cast<int>(exponent - mantissaBits) - bias);
    if (hasInfinity && exponent == maxExponent)
      value = mantissa ? nan : std::numeric_limits<float>::infinity();
    if (!hasInfinity && (bits & 0x7f) == 0x7f)
      value = nan;
    table[bits] = bits & 0x80 ? -value : value;
  }
  return table;
}

} // namespace

StringRef getName(ElementType type) { return get(type).name; }

std::optional<ElementType> findElementType(StringRef name) {
  for (auto [index, entry] : llvm::enumerate(properties))
    if (name == entry.name)
      return static_cast<ElementType>(index);
  return std::nullopt;
}

unsigned getBits(ElementType type) { return get(type).bits; }

bool isInteger(ElementType type) {
  switch (type) {
  case ElementType::S8:
  case ElementType::U8:
  case ElementType::S4:
  case ElementType::U4:
  case ElementType::S32:
    return true;
  default:
    return false;
  }
}

bool isSmallFloat(ElementType type) { return type <= ElementType::E5M2; }

float decodeFloat(ElementType type, uint32_t bits) {
  switch (type) {
  case ElementType::F16:
    return nms::f16ToF32(static_cast<uint16_t>(bits));
  case ElementType::BF16:
    return nms::bf16ToF32(static_cast<uint16_t>(bits));
  case ElementType::TF32:
    return nms::bitCast<float>(bits & ~0x1fffu);
  case ElementType::E4M3: {
    static const std::array<float, 256> table = makeTable(3, 7, false);
    return table[bits & 0xff];
  }
  default: {
    static const std::array<float, 256> table = makeTable(2, 15, true);
    return table[bits & 0xff];
  }
  }
}

int32_t decodeInteger(ElementType type, uint32_t bits) {
  switch (type) {
  case ElementType::S8:
    return static_cast<int8_t>(bits);
  case ElementType::U8:
    return static_cast<uint8_t>(bits);
  case ElementType::S4:
    return static_cast<int32_t>(bits << 28) >> 28;
  default:
    return static_cast<int32_t>(bits & 0xf);
  }
}

int getMinExponent(ElementType type) { return get(type).minExponent; }

} // namespace mlir::nm_sparse::emulator
