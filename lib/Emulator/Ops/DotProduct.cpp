//===- DotProduct.cpp - the sums of a tensor core ------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Eight columns at a time in single precision, where products are exact and the
// aligned summands fit 32-bit integers. Elements whose exponents leave the safe
// range, and infinities, take the plain way in double precision.
//
//===----------------------------------------------------------------------===//

#include "DotProduct.h"
#include "../../Runtime/Element.h"
#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstring>
#include <limits>

namespace mlir::nm_sparse::emulator {

//===----------------------------------------------------------------------===//
// Per chip
//===----------------------------------------------------------------------===//

namespace {

struct NumericsEntry {
  unsigned minChip; ///< Of this chip and later ones.
  bool isWarpgroup;
  unsigned bits; ///< Of a factor.
  DotNumerics numerics;
};

/// The last entry that fits holds. Warp instructions of Hopper turn 8-bit
/// factors into f16.
constexpr NumericsEntry numericsTable[] = {
    {70, false, 16, {4, 23, 23}},  {75, false, 16, {8, 24, 23}},
    {80, false, 32, {4, 24, 23}},  {89, false, 8, {16, 13, 13}},
    {90, false, 32, {8, 25, 23}},  {90, false, 16, {16, 25, 23}},
    {90, false, 8, {16, 25, 23}},  {90, true, 32, {8, 25, 23}},
    {90, true, 16, {16, 25, 23}},  {90, true, 8, {32, 13, 13}},
    {100, false, 8, {32, 25, 23}},
};

} // namespace

DotNumerics getDotNumerics(StringRef chip, bool isWarpgroup, ElementType factor,
                           unsigned depth) {
  unsigned number = 0;
  chip.consume_front("sm_");
  if (chip.consumeInteger(10, number))
    number = 90;
  DotNumerics numerics{16, 25, 23};
  for (const NumericsEntry &entry : numericsTable)
    if (number >= entry.minChip && entry.isWarpgroup == isWarpgroup &&
        entry.bits == getBits(factor))
      numerics = entry.numerics;
  numerics.block = std::min(numerics.block, depth);
  return numerics;
}

//===----------------------------------------------------------------------===//
// Operands
//===----------------------------------------------------------------------===//

namespace {

constexpr uint32_t exponentMask = 0x7f800000u;
constexpr float minNormal = 0x1p-126f;

float getPower(float value) {
  return nms::bitCast<float>(nms::bitCast<uint32_t>(value) & exponentMask);
}

} // namespace

void FloatMatrix::reset(ElementType newType, unsigned newRows,
                        unsigned newColumns) {
  type = newType;
  rows = newRows;
  columns = newColumns;
  values.assign(rows * columns, 0.0f);
  powers.assign(rows * columns, 0.0f);
  lowestPower = std::ldexp(1.0f, getMinExponent(type));
  minPower = std::numeric_limits<float>::infinity();
  finite = true;
}

void FloatMatrix::set(unsigned row, unsigned column, uint32_t bits) {
  float value = decodeFloat(type, bits);
  values[row * columns + column] = value;
  if (value == 0)
    return;
  float power = std::max(getPower(value), lowestPower);
  powers[row * columns + column] = power;
  minPower = std::min(minPower, power);
  if (!std::isfinite(power))
    finite = false;
}

void FloatMatrix::negate() {
  for (float &value : values)
    value = -value;
}

//===----------------------------------------------------------------------===//
// The plain way
//===----------------------------------------------------------------------===//

namespace {

float getStartPower(ElementType accumulator, float start) {
  bool isHalf = accumulator == ElementType::F16 && start != 0;
  return std::max(getPower(start), isHalf ? 0x1p-14f : minNormal);
}

float roundResult(const DotNumerics &numerics, ElementType accumulator,
                  double value) {
  if (accumulator == ElementType::F16)
    return nms::f16ToF32(nms::f32ToF16(nms::roundToOdd(value)));
  double magnitude = std::fabs(value);
  if (magnitude >= 0x1p128)
    return std::copysign(std::numeric_limits<float>::infinity(),
                         static_cast<float>(value < 0 ? -1 : 1));
  int exponent = magnitude == 0 ? 0 : std::max(std::ilogb(magnitude), -126);
  int shift = static_cast<int>(numerics.resultBits) - exponent;
  return static_cast<float>(
      std::ldexp(std::trunc(std::ldexp(value, shift)), -shift));
}

/// One block of products of one element. Strides are in elements.
struct ElementProducts {
  const float *a, *aPowers, *b, *bPowers;
  const uint8_t *selected;
  size_t bStride;
  unsigned begin, end;

  size_t getRow(unsigned k) const {
    return (selected ? selected[k] : k) * bStride;
  }
};

float addSlowly(const DotNumerics &numerics, ElementType accumulator,
                const ElementProducts &products, float start) {
  double plain = start, top = getStartPower(accumulator, start);
  for (unsigned k = products.begin; k < products.end; ++k) {
    size_t row = products.getRow(k);
    plain += static_cast<double>(products.a[k]) * products.b[row];
    top = std::max(top, static_cast<double>(products.aPowers[k]) *
                            products.bPowers[row]);
  }
  if (std::isnan(plain))
    return nms::bitCast<float>(0x7fffffffu);
  if (std::isinf(plain))
    return static_cast<float>(plain);

  double unit = std::ldexp(top, -static_cast<int>(numerics.fractionBits));
  double inverse = 1 / unit, sum = std::trunc(start * inverse);
  for (unsigned k = products.begin; k < products.end; ++k)
    sum += std::trunc(static_cast<double>(products.a[k]) *
                      products.b[products.getRow(k)] * inverse);
  return roundResult(numerics, accumulator, sum * unit);
}

//===----------------------------------------------------------------------===//
// The fast way
//===----------------------------------------------------------------------===//

constexpr unsigned width = 8;
using Floats = float __attribute__((vector_size(4 * width)));
using Ints = int32_t __attribute__((vector_size(4 * width)));
using Doubles = double __attribute__((vector_size(8 * width)));
using Longs = int64_t __attribute__((vector_size(8 * width)));

/// Largest exponents between which nothing that counts is lost in single
/// precision.
constexpr float minTop = 0x1p-90f, maxTop = 0x1p100f;
/// Products that can be added to an accumulator without leaving 32 bits: each
/// is below 2^27.
constexpr unsigned groupSize = 8;

Floats load(const float *from) {
  Floats value;
  memcpy(&value, from, sizeof(value));
  return value;
}

Floats splat(float value) { return Floats{} + value; }

Floats max(Floats a, Floats b) { return a > b ? a : b; }

bool allOf(Ints mask) {
  int32_t result = -1;
  for (unsigned i = 0; i < width; ++i)
    result &= mask[i];
  return result != 0;
}

/// One block of products for `width` columns; false where it must be done
/// slowly.
bool addQuickly(const DotNumerics &numerics, ElementType accumulator,
                bool mayUnderflow, const ElementProducts &products,
                float *accumulators) {
  Floats productTop = {};
  for (unsigned k = products.begin; k < products.end; ++k)
    productTop =
        max(productTop, splat(products.aPowers[k]) *
                            load(products.bPowers + products.getRow(k)));
  Floats start = load(accumulators);
  Floats startPower =
      max(reinterpret_cast<Floats>(reinterpret_cast<Ints>(start) &
                                   static_cast<int32_t>(exponentMask)),
          splat(minNormal));
  if (accumulator == ElementType::F16)
    startPower = start != 0 ? max(startPower, splat(0x1p-14f)) : startPower;
  Floats top = max(productTop, startPower);
  Ints isZero = productTop == 0;
  Ints isSafe = (top <= maxTop) & (top >= minTop);
  if (!mayUnderflow)
    isSafe |= isZero & (top <= maxTop);
  if (!allOf(isSafe))
    return false;

  top = max(top, splat(minTop));
  Ints topBits = reinterpret_cast<Ints>(top);
  auto fraction = static_cast<int32_t>(numerics.fractionBits);
  auto inverse = reinterpret_cast<Floats>(((254 + fraction) << 23) - topBits);
  auto unit = reinterpret_cast<Floats>(topBits - (fraction << 23));
  Doubles total = {};
  Ints part = __builtin_convertvector(start * inverse, Ints);
  for (unsigned k = products.begin; k < products.end;) {
    unsigned end = std::min(k + groupSize, products.end);
    for (; k < end; ++k) {
      Floats product =
          splat(products.a[k]) * load(products.b + products.getRow(k));
      part += __builtin_convertvector(product * inverse, Ints);
    }
    total += __builtin_convertvector(part, Doubles);
    part = Ints{};
  }
  total *= __builtin_convertvector(unit, Doubles);

  Floats result;
  if (accumulator == ElementType::F16) {
    for (unsigned i = 0; i < width; ++i)
      result[i] = roundResult(numerics, accumulator, total[i]);
  } else {
    int64_t kept = -(int64_t(1) << (52 - numerics.resultBits));
    total = reinterpret_cast<Doubles>(reinterpret_cast<Longs>(total) & kept);
    result = __builtin_convertvector(total, Floats);
  }
  if (!mayUnderflow) {
    int32_t kept = -(1 << (23 - std::min(numerics.resultBits, 23u)));
    auto cut = reinterpret_cast<Floats>(reinterpret_cast<Ints>(start) & kept);
    result = isZero ? cut + 0.0f : result;
  }
  memcpy(accumulators, &result, sizeof(result));
  return true;
}

} // namespace

void multiplyFloats(const DotNumerics &numerics, ElementType accumulator,
                    const FloatMatrix &a, const FloatMatrix &b,
                    const uint8_t *selected, float *accumulators) {
  unsigned columns = b.getColumns(), depth = a.getColumns();
  assert(columns % width == 0 && numerics.fractionBits <= 25);
  bool isFinite = a.isFinite() && b.isFinite();
  bool mayUnderflow =
      static_cast<double>(a.getMinPower()) * b.getMinPower() < minTop;
  for (unsigned row = 0; row < a.getRows(); ++row, accumulators += columns) {
    const uint8_t *rowSelected = selected ? selected + row * depth : nullptr;
    for (unsigned begin = 0; begin < depth; begin += numerics.block) {
      unsigned end = std::min(begin + numerics.block, depth);
      for (unsigned column = 0; column < columns; column += width) {
        ElementProducts products{a.getRow(row),
                                 a.getPowers(row),
                                 b.getRow(0) + column,
                                 b.getPowers(0) + column,
                                 rowSelected,
                                 columns,
                                 begin,
                                 end};
        if (isFinite && addQuickly(numerics, accumulator, mayUnderflow,
                                   products, accumulators + column))
          continue;
        for (unsigned i = 0; i < width; ++i) {
          float &element = accumulators[column + i];
          element = addSlowly(numerics, accumulator, products, element);
          ++products.b;
          ++products.bPowers;
        }
      }
    }
  }
}

void multiplyIntegers(unsigned rows, unsigned columns, unsigned depth,
                      const int32_t *a, const int32_t *b,
                      const uint8_t *selected, bool saturate,
                      int32_t *accumulators) {
  std::vector<int32_t> sums(columns);
  for (unsigned row = 0; row < rows; ++row, accumulators += columns) {
    std::fill(sums.begin(), sums.end(), 0);
    for (unsigned k = 0; k < depth; ++k) {
      int32_t factor = a[row * depth + k];
      unsigned bRow = selected ? selected[row * depth + k] : k;
      for (unsigned column = 0; column < columns; ++column)
        sums[column] += factor * b[bRow * columns + column];
    }
    for (unsigned column = 0; column < columns; ++column) {
      int64_t sum = int64_t(accumulators[column]) + sums[column];
      if (saturate)
        sum = std::clamp<int64_t>(sum, INT32_MIN, INT32_MAX);
      accumulators[column] = static_cast<int32_t>(static_cast<uint32_t>(sum));
    }
  }
}

} // namespace mlir::nm_sparse::emulator
