//===- Float.cpp - conversions between floating-point types ---------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Ops/Scalar/Float.h"
#include "llvm/ADT/bit.h"
#include <cmath>

using namespace mlir::nm_sparse;
using namespace mlir::nm_sparse::emulator;
using llvm::APFloat;

/// All bits below the sign.
static uint32_t getNaNBits(const llvm::fltSemantics &format) {
  return (uint32_t(1) << (APFloat::getSizeInBits(format) - 1)) - 1;
}

uint32_t emulator::convertFloat(float value, const llvm::fltSemantics &to,
                                Rounding rounding, Clamp clamp) {
  if (std::isnan(value))
    return getNaNBits(to);
  if (clamp.relu && std::signbit(value))
    return 0;
  APFloat number(value);
  bool loses = false;
  number.convert(to, rounding, &loses);
  if (clamp.satfinite && !number.isFinite())
    number = APFloat::getLargest(to, std::signbit(value));
  return number.bitcastToAPInt().getZExtValue();
}

float emulator::convertToFloat(uint32_t bits, const llvm::fltSemantics &from) {
  APFloat number(from, llvm::APInt(APFloat::getSizeInBits(from), bits));
  bool loses = false;
  number.convert(APFloat::IEEEsingle(), Rounding::NearestTiesToEven, &loses);
  return number.convertToFloat();
}

uint32_t emulator::convertToTF32(float value, Rounding rounding, Clamp clamp) {
  constexpr uint32_t dropped = (1 << 13) - 1;
  constexpr uint32_t infinity = 0x7f800000, largest = infinity - dropped - 1;
  if (std::isnan(value))
    return 0x7fffffff;
  if (clamp.relu && std::signbit(value))
    return 0;
  auto bits = llvm::bit_cast<uint32_t>(value);
  uint32_t sign = bits & 0x80000000, magnitude = bits & 0x7fffffff;
  if (rounding == Rounding::NearestTiesToAway)
    magnitude += (dropped + 1) / 2;
  else if (rounding == Rounding::NearestTiesToEven)
    magnitude += dropped / 2 + ((magnitude >> 13) & 1);
  magnitude &= ~dropped;
  if (clamp.satfinite)
    magnitude = std::min(magnitude, largest);
  return sign | magnitude;
}

float emulator::flushSubnormal(float value) {
  return std::fpclassify(value) == FP_SUBNORMAL ? std::copysign(0.0f, value)
                                                : value;
}

float emulator::selectFloat(bool larger, bool keepsNaN, float a, float b) {
  if (std::isnan(a) || std::isnan(b)) {
    if (keepsNaN || (std::isnan(a) && std::isnan(b)))
      return llvm::bit_cast<float>(0x7fffffff);
    return std::isnan(a) ? b : a;
  }
  if (a == b)
    return std::signbit(a) == larger ? b : a;
  return (a < b) == larger ? b : a;
}
