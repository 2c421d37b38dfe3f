//===- DotProductTest.cpp - the sums of a tensor core ---------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Ops/Matrix/DotProduct.h"
#include "nm_sparse/Base/Element.h"
#include "gtest/gtest.h"
#include <chrono>
#include <cmath>
#include <random>

using namespace mlir::nm_sparse::emulator;
using Type = ElementType;

namespace {

/// One row of A times one column of B (f16), on `chip`.
float dot(const char *chip, std::vector<float> a, std::vector<float> b,
          float start, Type accumulator = Type::F32) {
  a.resize(16);
  b.resize(16);
  FloatMatrix left, right;
  left.reset(Type::F16, 1, 16);
  right.reset(Type::F16, 16, 8);
  for (unsigned k = 0; k < 16; ++k) {
    left.set(0, k, nms::f32ToF16(a[k]));
    for (unsigned column = 0; column < 8; ++column)
      right.set(k, column, nms::f32ToF16(b[k]));
  }
  std::vector<float> sums(8, start);
  multiplyFloats(getDotNumerics(chip, false, Type::F16, 16), accumulator, left,
                 right, nullptr, sums.data());
  for (float sum : sums)
    EXPECT_TRUE(sum == sums[0] || sum != sum);
  return sums[0];
}

TEST(DotProduct, RoundsTowardsZero) {
  EXPECT_EQ(dot("sm_90a", {0x1p-12f}, {0x1p-12f}, 1), 1.0f);
  EXPECT_EQ(dot("sm_90a", {0x1p-12f}, {-0x1p-12f}, -1), -1.0f);
  EXPECT_EQ(dot("sm_90a", {0x1p-12f}, {-0x1p-13f}, 1), 1 - 0x1p-24f);
}

TEST(DotProduct, KeepsBitsBelow) {
  std::vector<float> a(4, 0x1p-12f), b(4, 0x1p-13f);
  EXPECT_EQ(dot("sm_90a", a, b, 1), 1 + 0x1p-23f);
  EXPECT_EQ(dot("sm_80", a, b, 1), 1.0f);
  std::fill(b.begin(), b.end(), 0x1p-12f);
  EXPECT_EQ(dot("sm_80", a, b, 1), 1 + 0x1p-22f);
}

TEST(DotProduct, AddsInBlocks) {
  // The second block of Ampere starts from what the first one left.
  std::vector<float> a(16), b(16);
  a[0] = 1;
  b[0] = -1;
  a[8] = b[8] = 0x1p-13f;
  EXPECT_EQ(dot("sm_80", a, b, 1), 0x1p-26f);
  EXPECT_EQ(dot("sm_90a", a, b, 1), 0.0f);
}

TEST(DotProduct, Specials) {
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(dot("sm_90a", {1}, {infinity}, 1), infinity);
  float nan = dot("sm_90a", {0}, {infinity}, 1);
  EXPECT_EQ(nms::bitCast<uint32_t>(nan), 0x7fffffffu);
  EXPECT_EQ(dot("sm_90a", {1}, {1}, -infinity), -infinity);
  EXPECT_EQ(dot("sm_90a", {60000}, {60000}, 0x1.fffffep127f), 0x1.fffffep127f);
  EXPECT_EQ(dot("sm_90a", {300}, {300}, 0, Type::F16), infinity);
  EXPECT_EQ(dot("sm_90a", {0}, {1}, 0x1p-130f), 0x1p-130f);
  EXPECT_EQ(dot("sm_90a", {0x1p-24f}, {0x1p-24f}, 0), 0x1p-48f);
}

TEST(DotProduct, HalfRoundsToNearest) {
  EXPECT_EQ(dot("sm_90a", {1, 0x1p-5f}, {1, 0x1p-6f}, 0, Type::F16), 1.0f);
  EXPECT_EQ(dot("sm_90a", {1, 0x1.8p-5f}, {1, 0x1p-6f}, 0, Type::F16),
            1 + 0x1p-10f);
}

/// The definition, in another way: with integers of 128 bits.
float addByDefinition(const DotNumerics &numerics, Type type, const float *a,
                      const float *b, size_t strideB, unsigned count,
                      float start) {
  if (!std::isfinite(start))
    return start;
  struct Number {
    int64_t digits; ///< times 2^(exponent - scale)
    int exponent, scale;
  };
  auto split = [](float value, int minExponent) {
    int exponent = value == 0 ? -126 : std::max(std::ilogb(value), minExponent);
    return Number{
        std::llround(std::ldexp(static_cast<double>(value), 23 - exponent)),
        exponent, 23};
  };
  std::vector<Number> numbers = {split(start, -126)};
  int top = numbers[0].exponent;
  for (unsigned k = 0; k < count; ++k) {
    Number x = split(a[k], getMinExponent(type)),
           y = split(b[k * strideB], getMinExponent(type));
    numbers.push_back({x.digits * y.digits, x.exponent + y.exponent, 46});
    if (x.digits != 0 && y.digits != 0)
      top = std::max(top, x.exponent + y.exponent);
  }
  __int128 sum = 0;
  for (const Number &number : numbers) {
    int shift = static_cast<int>(numerics.fractionBits) - top +
                number.exponent - number.scale;
    __int128 digits = number.digits;
    __int128 magnitude = digits < 0 ? -digits : digits;
    magnitude = shift >= 0     ? magnitude << shift
                : shift > -120 ? magnitude >> -shift
                               : 0;
    sum += digits < 0 ? -magnitude : magnitude;
  }
  __int128 magnitude = sum < 0 ? -sum : sum;
  int unit = top - static_cast<int>(numerics.fractionBits);
  while (magnitude >> (numerics.resultBits + 1) != 0) {
    magnitude >>= 1;
    ++unit;
  }
  while (unit < -149) {
    magnitude >>= 1;
    ++unit;
  }
  double result = std::ldexp(static_cast<double>(magnitude), unit);
  if (result >= 0x1p128)
    result = std::numeric_limits<double>::infinity();
  return static_cast<float>(sum < 0 ? -result : result);
}

void compareWithDefinition(Type type, const DotNumerics &numerics,
                           uint32_t exponentMask, unsigned seed) {
  constexpr unsigned rows = 64, columns = 16;
  unsigned depth = 512 / getBits(type);
  std::mt19937 random(seed);
  FloatMatrix a, b;
  a.reset(type, rows, depth);
  b.reset(type, depth, columns);
  auto fill = [&](FloatMatrix &matrix) {
    for (unsigned row = 0; row < matrix.getRows(); ++row)
      for (unsigned column = 0; column < matrix.getColumns(); ++column) {
        uint32_t bits = random() & exponentMask;
        if (random() % 8 == 0 || !std::isfinite(decodeFloat(type, bits)))
          bits = 0;
        matrix.set(row, column, bits);
      }
  };
  fill(a);
  fill(b);
  std::vector<float> sums(rows * columns), expected;
  for (float &sum : sums) {
    sum = a.getRow(random() % rows)[random() % depth] *
          b.getRow(random() % depth)[random() % columns];
    if (!std::isfinite(sum))
      sum = 1;
  }
  expected = sums;
  for (unsigned row = 0; row < rows; ++row)
    for (unsigned column = 0; column < columns; ++column)
      for (unsigned k = 0; k < depth; k += numerics.block)
        expected[row * columns + column] = addByDefinition(
            numerics, type, a.getRow(row) + k, b.getRow(k) + column, columns,
            numerics.block, expected[row * columns + column]);
  multiplyFloats(numerics, Type::F32, a, b, nullptr, sums.data());
  for (unsigned i = 0; i < rows * columns; ++i)
    ASSERT_EQ(sums[i], expected[i]) << i << " " << getName(type).str();
}

TEST(DotProduct, EqualsTheDefinition) {
  for (unsigned seed = 0; seed < 4; ++seed) {
    compareWithDefinition(Type::F16, {16, 25, 23}, 0xffff, seed);
    compareWithDefinition(Type::F16, {8, 24, 23}, 0xffff, seed);
    compareWithDefinition(Type::BF16, {16, 25, 23}, 0xffff, seed);
    compareWithDefinition(Type::BF16, {16, 25, 23}, 0xbf8f, seed);
    compareWithDefinition(Type::TF32, {8, 25, 23}, 0xffffe000, seed);
    compareWithDefinition(Type::E4M3, {32, 13, 13}, 0xff, seed);
    compareWithDefinition(Type::E5M2, {32, 13, 13}, 0xff, seed);
  }
}

TEST(DotProduct, Speed) {
  constexpr unsigned rows = 64, columns = 256, depth = 16, repeats = 50;
  FloatMatrix a, b;
  a.reset(Type::F16, rows, depth);
  b.reset(Type::F16, depth, columns);
  for (unsigned k = 0; k < depth; ++k) {
    for (unsigned row = 0; row < rows; ++row)
      a.set(row, k, nms::f32ToF16(std::sin(row + 7.0f * k)));
    for (unsigned column = 0; column < columns; ++column)
      b.set(k, column, nms::f32ToF16(std::cos(column + 3.0f * k)));
  }
  std::vector<float> sums(rows * columns);
  DotNumerics numerics = getDotNumerics("sm_90a", true, Type::F16, depth);
  auto begin = std::chrono::steady_clock::now();
  for (unsigned i = 0; i < repeats; ++i)
    multiplyFloats(numerics, Type::F32, a, b, nullptr, sums.data());
  std::chrono::duration<double> passed =
      std::chrono::steady_clock::now() - begin;
  double rate = static_cast<double>(rows) * columns * depth * repeats /
                passed.count() / 1e6;
  RecordProperty("MillionsPerSecond", static_cast<int>(rate));
  EXPECT_GT(rate, 20) << "million products a second";
}

} // namespace
