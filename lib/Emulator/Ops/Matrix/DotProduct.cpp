//===- DotProduct.cpp - the sums of a tensor core ------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Eight columns at a time in single precision, where products are exact and the
// aligned summands fit 32-bit integers. Elements whose exponents leave the safe
// range, and infinities, take the plain way in double precision.
//
//===----------------------------------------------------------------------===//

#include "Ops/Matrix/DotProduct.h"
#include "nm_sparse/Base/Element.h"
#include "llvm/ADT/SmallVector.h"
#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstring>
#include <limits>

namespace mlir::nm_sparse::emulator {

//===----------------------------------------------------------------------===//
// The plain way
//===----------------------------------------------------------------------===//

namespace {

constexpr float minNormal = 0x1p-126f;

float getCanonicalNaN() { return nms::bitCast<float>(0x7fffffffu); }

float getStartPower(ElementType accumulator, float start) {
  bool isHalf = accumulator == ElementType::F16 && start != 0;
  return std::max(getPower(start), isHalf ? 0x1p-14f : minNormal);
}

/// Never -0: whatever becomes zero has no sign.
float roundResult(const DotNumerics &numerics, ElementType accumulator,
                  double value) {
  if (accumulator == ElementType::F16)
    return nms::f16ToF32(nms::f32ToF16(nms::roundToOdd(value))) + 0.0f;
  double magnitude = std::fabs(value);
  if (magnitude >= 0x1p128)
    return std::copysign(std::numeric_limits<float>::infinity(),
                         static_cast<float>(value < 0 ? -1 : 1));
  int exponent = magnitude == 0 ? 0 : std::max(std::ilogb(magnitude), -126);
  int shift = static_cast<int>(numerics.resultBits) - exponent;
  return static_cast<float>(
             std::ldexp(std::trunc(std::ldexp(value, shift)), -shift)) +
         0.0f;
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
    return getCanonicalNaN();
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
                                   static_cast<int32_t>(floatExponentMask)),
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

/// Adds with 8-bit factors that become f16.
void multiplyConverted(DotNumerics numerics, ElementType accumulator,
                       const FloatMatrix &a, const FloatMatrix &b,
                       const uint8_t *selected, float *accumulators) {
  unsigned depth = a.getColumns(), rows = a.getRows();
  llvm::SmallVector<unsigned> order;
  for (unsigned half : {0u, 2u})
    for (unsigned k = 0; k < depth; ++k)
      if ((k & 2) == half)
        order.push_back(k);
  std::vector<uint8_t> ordered;
  for (unsigned row = 0; row < rows; ++row)
    for (unsigned k : order)
      ordered.push_back(selected ? selected[row * depth + k]
                                 : static_cast<uint8_t>(k));
  FloatMatrix convertedA = a.takeColumns(order), convertedB = b;
  convertedA.convert(ElementType::F16);
  convertedB.convert(ElementType::F16);
  std::vector<float> sums(rows * b.getColumns());
  numerics.isConverted = false;
  multiplyFloats(numerics, ElementType::F32, convertedA, convertedB,
                 ordered.data(), sums.data());
  for (float sum : sums) {
    float total = *accumulators + sum;
    if (std::isnan(total))
      total = getCanonicalNaN();
    else if (accumulator == ElementType::F16)
      total = nms::f16ToF32(nms::f32ToF16(total));
    *accumulators++ = total;
  }
}

} // namespace

void multiplyFloats(const DotNumerics &numerics, ElementType accumulator,
                    const FloatMatrix &a, const FloatMatrix &b,
                    const uint8_t *selected, float *accumulators) {
  if (numerics.isConverted)
    return multiplyConverted(numerics, accumulator, a, b, selected,
                             accumulators);
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
