//===- Element.h - Element conversion, inline -------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The loops of packing, comparison and random numbers convert element by
// element; these forms have no branches that depend on common values.
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_BASE_ELEMENT_H
#define NM_SPARSE_BASE_ELEMENT_H

#include "nm_sparse/Base/Kind.h"

#include <cmath>
#include <cstring>

namespace nms {

template <typename To, typename From>
inline To bitCast(From from) {
  static_assert(sizeof(To) == sizeof(From), "sizes differ");
  To to;
  memcpy(&to, &from, sizeof(to));
  return to;
}

inline float f16ToF32(uint16_t half) {
  uint32_t sign = static_cast<uint32_t>(half & 0x8000u) << 16;
  uint32_t magnitude = half & 0x7fffu;
  // Scaling by 2^112 moves the exponent bias and normalizes subnormals.
  float scaled = bitCast<float>(magnitude << 13) * 0x1p112f;
  uint32_t bits = bitCast<uint32_t>(scaled);
  if (magnitude >= 0x7c00u)
    bits = 0x7f800000u | (magnitude << 13);
  return bitCast<float>(bits | sign);
}

inline uint16_t f32ToF16(float value) {
  uint32_t bits = bitCast<uint32_t>(value);
  uint32_t sign = (bits >> 16) & 0x8000u;
  uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u)
    return static_cast<uint16_t>(sign | 0x7e00u | ((magnitude >> 13) & 0x1ffu));
  if (magnitude >= 0x477ff000u) // 65520, the first that rounds to infinity
    return static_cast<uint16_t>(sign | 0x7c00u);
  if (magnitude < 0x38800000u) { // below 2^-14: a subnormal or zero
    // Adding 0.5 leaves the value in units of 2^-24 in the low bits, rounded.
    float shifted = bitCast<float>(magnitude) + 0.5f;
    return static_cast<uint16_t>(sign |
                                 (bitCast<uint32_t>(shifted) - 0x3f000000u));
  }
  uint32_t odd = (magnitude >> 13) & 1u;
  return static_cast<uint16_t>(
      sign | ((magnitude + 0xc8000000u + 0xfffu + odd) >> 13));
}

inline float bf16ToF32(uint16_t bits) {
  return bitCast<float>(static_cast<uint32_t>(bits) << 16);
}

inline uint16_t f32ToBF16(float value) {
  uint32_t bits = bitCast<uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u)
    return static_cast<uint16_t>((bits >> 16) | 0x40u);
  return static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

/// Rounds a double so that a later rounding to fewer bits is the right one: to
/// an odd last place unless it is exact.
inline float roundToOdd(double value) {
  float nearest = static_cast<float>(value);
  if (static_cast<double>(nearest) == value || nearest != nearest)
    return nearest;
  uint32_t bits = bitCast<uint32_t>(nearest);
  bool tooLarge = std::fabs(static_cast<double>(nearest)) > std::fabs(value);
  if (tooLarge)
    --bits; // now truncated, towards zero
  return bitCast<float>(bits | 1u);
}

/// Nearest integer, ties to even, held in the range; 0 for a NaN.
inline int64_t roundToInteger(double value, int64_t low, int64_t high) {
  if (value != value)
    return 0;
  double rounded = std::nearbyint(value);
  if (rounded <= static_cast<double>(low))
    return low;
  if (rounded >= static_cast<double>(high))
    return high;
  return static_cast<int64_t>(rounded);
}

/// Storage type and conversions of an element kind.
template <int32_t Kind>
struct Element;

template <>
struct Element<NMS_F32> {
  using Storage = float;
  static double toDouble(float value) { return value; }
  static float toFloat(float value) { return value; }
  static float fromFloat(float value) { return value; }
  static float fromDouble(double value) { return static_cast<float>(value); }
};

template <>
struct Element<NMS_F64> {
  using Storage = double;
  static double toDouble(double value) { return value; }
  static float toFloat(double value) { return static_cast<float>(value); }
  static double fromFloat(float value) { return value; }
  static double fromDouble(double value) { return value; }
};

template <>
struct Element<NMS_F16> {
  using Storage = uint16_t;
  static double toDouble(uint16_t value) { return f16ToF32(value); }
  static float toFloat(uint16_t value) { return f16ToF32(value); }
  static uint16_t fromFloat(float value) { return f32ToF16(value); }
  static uint16_t fromDouble(double value) {
    return f32ToF16(roundToOdd(value));
  }
};

template <>
struct Element<NMS_BF16> {
  using Storage = uint16_t;
  static double toDouble(uint16_t value) { return bf16ToF32(value); }
  static float toFloat(uint16_t value) { return bf16ToF32(value); }
  static uint16_t fromFloat(float value) { return f32ToBF16(value); }
  static uint16_t fromDouble(double value) {
    // The largest float, which is odd, stands for all that overflow: it rounds
    // to infinity.
    return f32ToBF16(roundToOdd(value));
  }
};

/// Eight bits with `Mantissa` of them behind the point, rounded to the nearest,
/// ties to even. Without infinities, what overflows is the only NaN.
template <int Mantissa, int Bias, bool HasInfinity>
struct Float8Element {
  using Storage = uint8_t;
  static constexpr uint8_t nan = 0x7f;
  static constexpr uint8_t largest =
      HasInfinity ? 0x7f - (1 << Mantissa) : nan - 1;

  static float toFloat(uint8_t value) {
    uint32_t sign = static_cast<uint32_t>(value & 0x80u) << 24;
    uint32_t magnitude = value & 0x7fu;
    uint32_t bits = 0x7fc00000u;
    if (magnitude <= largest) // scaling also normalizes subnormals
      bits = bitCast<uint32_t>(
          std::ldexp(bitCast<float>(magnitude << (23 - Mantissa)), 127 - Bias));
    else if (HasInfinity && magnitude == largest + 1u)
      bits = 0x7f800000u;
    return bitCast<float>(bits | sign);
  }
  static double toDouble(uint8_t value) { return toFloat(value); }
  static uint8_t fromDouble(double value) {
    uint8_t sign = std::signbit(value) ? 0x80 : 0;
    if (value != value)
      return sign | nan;
    double magnitude = std::fabs(value);
    int exponent = 1 - Bias;
    if (magnitude >= std::ldexp(1.0, exponent))
      exponent = std::ilogb(magnitude);
    // Infinity and what would get more bits than there are for the exponent.
    if (exponent > Bias + 1)
      return sign | (largest + 1);
    double units = std::nearbyint(std::ldexp(magnitude, Mantissa - exponent));
    int code = ((exponent + Bias - 1) << Mantissa) + static_cast<int>(units);
    return sign | static_cast<uint8_t>(code > largest ? largest + 1 : code);
  }
  static uint8_t fromFloat(float value) { return fromDouble(value); }
};
template <>
struct Element<NMS_F8E4M3FN> : Float8Element<3, 7, false> {};
template <>
struct Element<NMS_F8E5M2> : Float8Element<2, 15, true> {};

template <typename T, int64_t Low, int64_t High>
struct IntegerElement {
  using Storage = T;
  static double toDouble(T value) { return static_cast<double>(value); }
  static float toFloat(T value) { return static_cast<float>(value); }
  static T fromFloat(float value) { return fromDouble(value); }
  static T fromDouble(double value) {
    return static_cast<T>(roundToInteger(value, Low, High));
  }
};
template <>
struct Element<NMS_I8> : IntegerElement<int8_t, -128, 127> {};
template <>
struct Element<NMS_I32> : IntegerElement<int32_t, -2147483648LL, 2147483647LL> {
};

/// Calls `body(Element<kind>())`; false when `kind` is none.
template <typename Body>
bool dispatchKind(int32_t kind, Body &&body) {
  switch (kind) {
  case NMS_F32:
    body(Element<NMS_F32>());
    return true;
  case NMS_F16:
    body(Element<NMS_F16>());
    return true;
  case NMS_BF16:
    body(Element<NMS_BF16>());
    return true;
  case NMS_I8:
    body(Element<NMS_I8>());
    return true;
  case NMS_I32:
    body(Element<NMS_I32>());
    return true;
  case NMS_F64:
    body(Element<NMS_F64>());
    return true;
  case NMS_F8E4M3FN:
    body(Element<NMS_F8E4M3FN>());
    return true;
  case NMS_F8E5M2:
    body(Element<NMS_F8E5M2>());
    return true;
  default:
    return false;
  }
}

} // namespace nms

#endif // NM_SPARSE_BASE_ELEMENT_H
