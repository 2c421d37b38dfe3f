//===- NumbersTest.cpp - Conversion and random numbers --------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Base/Convert.h"
#include "nm_sparse/Base/Error.h"
#include "nm_sparse/Base/Random.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <gtest/gtest.h>
#include <limits>
#include <vector>

namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

TEST(Convert, HalvesSurviveARoundTrip) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    uint16_t half = static_cast<uint16_t>(bits);
    float value = nmsF16ToF32(half);
    if ((half & 0x7fff) > 0x7c00) {
      EXPECT_TRUE(std::isnan(value));
      EXPECT_EQ(nmsF32ToF16(value), half | 0x200);
    } else {
      EXPECT_EQ(nmsF32ToF16(value), half) << bits;
    }
    float brain = nmsBF16ToF32(half);
    if ((half & 0x7fff) > 0x7f80)
      EXPECT_EQ(nmsF32ToBF16(brain), half | 0x40);
    else
      EXPECT_EQ(nmsF32ToBF16(brain), half) << bits;
  }
}

TEST(Convert, HalvesRoundToNearestEven) {
  // Midpoints between neighbours go to the even one, others to the nearer one.
  for (uint16_t half = 0; half < 0x7bff; ++half) {
    float low = nmsF16ToF32(half), high = nmsF16ToF32(half + 1);
    float middle = 0.5f * (low + high);
    uint16_t even = half & 1 ? half + 1 : half;
    ASSERT_EQ(nmsF32ToF16(middle), even) << half;
    ASSERT_EQ(nmsF32ToF16(std::nextafter(middle, 0.0f)), half);
    ASSERT_EQ(nmsF32ToF16(-std::nextafter(middle, infinity)),
              (half + 1) | 0x8000);
  }
  EXPECT_EQ(nmsF32ToF16(65519.996f), 0x7bff);
  EXPECT_EQ(nmsF32ToF16(65520.0f), 0x7c00);
  EXPECT_EQ(nmsF16ToF32(0x0001), 0x1p-24f);
  EXPECT_EQ(nmsF16ToF32(0x3c00), 1.0f);
  EXPECT_EQ(nmsF16ToF32(0xfc00), -infinity);
  EXPECT_EQ(nmsF32ToBF16(1.00390625f), 0x3f80); // a tie
  EXPECT_EQ(nmsF32ToBF16(3.4e38f), 0x7f80);
}

TEST(Convert, DoublesAreRoundedOnce) {
  // Just above the midpoint of two halves, but a tie when seen as a float.
  double value = 1.0 + 0x1p-11 + 0x1p-40;
  uint16_t half;
  ASSERT_EQ(nmsFromDouble(NMS_F16, &value, &half, 1), 0);
  EXPECT_EQ(half, 0x3c01);
  value = -value;
  ASSERT_EQ(nmsFromDouble(NMS_F16, &value, &half, 1), 0);
  EXPECT_EQ(half, 0xbc01);
  double wide[] = {1e300, -1e300, 2.5, 3.5, -200, NAN};
  int8_t bytes[6];
  ASSERT_EQ(nmsFromDouble(NMS_I8, wide, bytes, 6), 0);
  EXPECT_EQ(std::vector<int8_t>(bytes, bytes + 6),
            (std::vector<int8_t>{127, -128, 2, 4, -128, 0}));
  uint16_t brains[6];
  ASSERT_EQ(nmsFromDouble(NMS_BF16, wide, brains, 6), 0);
  EXPECT_EQ(brains[0], 0x7f80);
  EXPECT_NE(nmsFromDouble(17, wide, brains, 6), 0);
}

TEST(Convert, EightBitFloats) {
  struct Format {
    int32_t kind;
    int largest; // the largest finite code
    double one;  // code of 1.0
  };
  for (Format format :
       {Format{NMS_F8E4M3FN, 0x7e, 0x38}, Format{NMS_F8E5M2, 0x7b, 0x3c}}) {
    double values[256];
    uint8_t codes[256], back[256];
    for (int i = 0; i < 256; ++i)
      codes[i] = static_cast<uint8_t>(i);
    ASSERT_EQ(nmsToDouble(format.kind, codes, values, 256), 0);
    ASSERT_EQ(nmsFromDouble(format.kind, values, back, 256), 0);
    EXPECT_EQ(values[static_cast<int>(format.one)], 1.0);
    for (int i = 0; i <= format.largest; ++i) {
      EXPECT_EQ(back[i], i);
      EXPECT_EQ(back[i | 0x80], i | 0x80);
      EXPECT_EQ(values[i | 0x80], -values[i]);
    }
    for (int i = 0; i < format.largest; ++i) {
      ASSERT_LT(values[i], values[i + 1]);
      double middle = 0.5 * (values[i] + values[i + 1]);
      double points[] = {middle, std::nextafter(middle, 0.0),
                         std::nextafter(middle, 1e9)};
      uint8_t rounded[3];
      ASSERT_EQ(nmsFromDouble(format.kind, points, rounded, 3), 0);
      EXPECT_EQ(rounded[0], i & 1 ? i + 1 : i);
      EXPECT_EQ(rounded[1], i);
      EXPECT_EQ(rounded[2], i + 1);
    }
    EXPECT_TRUE(std::isnan(values[0x7f]));
    double beyond[] = {1e300, -INFINITY, NAN};
    uint8_t overflow[3];
    ASSERT_EQ(nmsFromDouble(format.kind, beyond, overflow, 3), 0);
    EXPECT_EQ(overflow[0], format.largest + 1);
    EXPECT_EQ(overflow[1], (format.largest + 1) | 0x80);
    EXPECT_EQ(overflow[2], 0x7f);
  }
  double large[] = {448, 464, 464.5, 57344, 61440};
  uint8_t codes[5];
  ASSERT_EQ(nmsFromDouble(NMS_F8E4M3FN, large, codes, 3), 0);
  EXPECT_EQ(std::vector<uint8_t>(codes, codes + 3),
            (std::vector<uint8_t>{0x7e, 0x7e, 0x7f}));
  ASSERT_EQ(nmsFromDouble(NMS_F8E5M2, large + 3, codes, 2), 0);
  EXPECT_EQ(std::vector<uint8_t>(codes, codes + 2),
            (std::vector<uint8_t>{0x7b, 0x7c}));
}

TEST(Random, IsTheSameEverywhere) {
  std::vector<float> values(100001);
  ASSERT_EQ(nmsRandomNormal(NMS_F32, values.data(), 100001, 42, 7), 0);
  // Known bits: other machines, compilers and versions must give them too.
  uint32_t hash = 2166136261u;
  for (float value : values) {
    uint32_t bits;
    memcpy(&bits, &value, 4);
    hash = (hash ^ bits) * 16777619u;
  }
  EXPECT_EQ(hash, 1635092905u);
  std::vector<float> prefix(333);
  setenv("NM_SPARSE_THREADS", "3", 1);
  ASSERT_EQ(nmsRandomNormal(NMS_F32, prefix.data(), 333, 42, 7), 0);
  unsetenv("NM_SPARSE_THREADS");
  EXPECT_TRUE(std::equal(prefix.begin(), prefix.end(), values.begin()));
  ASSERT_EQ(nmsRandomNormal(NMS_F32, prefix.data(), 333, 42, 8), 0);
  EXPECT_NE(prefix[0], values[0]);
}

TEST(Random, IsNormal) {
  const int64_t count = 1 << 20;
  std::vector<double> values(count);
  ASSERT_EQ(nmsRandomNormal(NMS_F64, values.data(), count, 1, 1), 0);
  double moments[5] = {}, within = 0, lag = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    double power = 1;
    for (double &moment : moments) {
      moment += power / count;
      power *= values[i];
    }
    within += std::fabs(values[i]) < 1 ? 1.0 / count : 0;
    lag += i ? values[i] * values[i - 1] / count : 0;
  }
  EXPECT_NEAR(moments[1], 0, 0.005);
  EXPECT_NEAR(moments[2], 1, 0.01);
  EXPECT_NEAR(moments[3], 0, 0.02);
  EXPECT_NEAR(moments[4], 3, 0.05);
  EXPECT_NEAR(within, 0.6827, 0.002);
  EXPECT_NEAR(lag, 0, 0.005);
}

} // namespace
