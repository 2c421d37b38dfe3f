//===- FunctionsTest.cpp - instructions that only compute -----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Ops/Scalar/Functions.h"
#include "Ops/Scalar/BitFunctions.h"
#include "Ops/Scalar/Float.h"
#include "Ops/Warp/Warp.h"
#include "llvm/ADT/bit.h"
#include "gtest/gtest.h"
#include <cmath>

using namespace mlir::nm_sparse::emulator;

namespace {

constexpr Rounding nearest = Rounding::NearestTiesToEven;
const float infinity = INFINITY;

template <typename R, typename... A>
R call(llvm::StringRef ptx, A... operands) {
  const Function *function = findFunction(ptx);
  EXPECT_NE(function, nullptr) << ptx.str();
  void *pointers[] = {&operands...};
  R result;
  EXPECT_EQ(function->resultBytes, sizeof(R));
  function->run(pointers, &result);
  return result;
}

TEST(Conversion, TF32) {
  auto bits = [](float value, Rounding rounding, Clamp clamp = {}) {
    return convertToTF32(value, rounding, clamp);
  };
  // 1 + 2^-11 is half way between two tf32 values.
  float tie = 1.0f + 0x1p-11f;
  EXPECT_EQ(bits(tie, Rounding::NearestTiesToAway), 0x3f802000u);
  EXPECT_EQ(bits(tie, nearest), 0x3f800000u);
  EXPECT_EQ(bits(1.0f + 0x3p-11f, nearest), 0x3f804000u);
  EXPECT_EQ(bits(tie, Rounding::TowardZero), 0x3f800000u);
  EXPECT_EQ(bits(-tie, Rounding::NearestTiesToAway), 0xbf802000u);
  EXPECT_EQ(bits(infinity, Rounding::NearestTiesToAway), 0x7f800000u);
  EXPECT_EQ(bits(infinity, nearest, {false, true}), 0x7f7fe000u);
  EXPECT_EQ(bits(-2.0f, nearest, {true, false}), 0u);
  EXPECT_EQ(bits(NAN, nearest), 0x7fffffffu);
}

TEST(Conversion, Bytes) {
  auto convert = [](float upper, float lower) {
    return call<uint16_t>("cvt.rn.satfinite.e4m3x2.f32", upper, lower);
  };
  EXPECT_EQ(convert(1.0f, 0.0f), 0x3800);
  EXPECT_EQ(convert(448.0f, -448.0f), 0x7efe);
  EXPECT_EQ(convert(1e9f, -infinity), 0x7efe);
  EXPECT_EQ(convert(NAN, 0x1p-9f), 0x7f01); // The smallest subnormal.
  EXPECT_EQ(call<uint16_t>("cvt.rn.satfinite.e5m2x2.f32", 1e9f, -1.0f), 0x7bbc);
  EXPECT_EQ(call<uint16_t>("cvt.rn.satfinite.relu.e5m2x2.f32", 1.0f, -1.0f),
            0x3c00);
  EXPECT_EQ(call<uint32_t>("cvt.rn.f16x2.e4m3x2", uint16_t(0x38b8)),
            0x3c00bc00u);
}

TEST(Conversion, EveryByteComesBack) {
  for (const llvm::fltSemantics *format :
       {&llvm::APFloat::Float8E4M3FN(), &llvm::APFloat::Float8E5M2()})
    for (uint32_t bits = 0; bits < 256; ++bits) {
      float value = convertToFloat(bits, *format);
      if (!std::isnan(value)) {
        EXPECT_EQ(convertFloat(value, *format, nearest), bits);
      }
    }
}

TEST(Conversion, Halves) {
  EXPECT_EQ(call<uint32_t>("cvt.rn.f16x2.f32", 1.0f, 2.0f), 0x3c004000u);
  EXPECT_EQ(call<uint32_t>("cvt.rn.bf16x2.f32", 1.0f, -2.0f), 0x3f80c000u);
  EXPECT_EQ(call<uint32_t>("cvt.rn.relu.f16x2.f32", -1.0f, 65520.0f), 0x7c00u);
  EXPECT_EQ(call<uint32_t>("cvt.rn.satfinite.f16x2.f32", 0.0f, 1e9f), 0x7bffu);
  EXPECT_EQ(call<uint16_t>("cvt.rz.f16.f32", 1.0f + 0x3p-11f), 0x3c01u);
}

TEST(Math, Subnormals) {
  EXPECT_EQ(call<float>("ex2.approx.f32", -130.0f), 0x1p-130f);
  EXPECT_EQ(call<float>("ex2.approx.ftz.f32", -130.0f), 0.0f);
  EXPECT_EQ(call<float>("rcp.approx.ftz.f32", -0x1p-140f), -infinity);
}

TEST(Math, Selection) {
  EXPECT_EQ(call<float>("max.f32", NAN, 1.0f), 1.0f);
  EXPECT_TRUE(std::isnan(call<float>("max.NaN.f32", NAN, 1.0f)));
  EXPECT_TRUE(std::signbit(call<float>("min.f32", 0.0f, -0.0f)));
  EXPECT_FALSE(std::signbit(call<float>("max.f32", -0.0f, 0.0f)));
}

TEST(Math, FusedHalves) {
  // (1 + 3 * 2^-10)^2 - 1 ends in 9 * 2^-20, which two roundings would lose.
  EXPECT_EQ(call<uint16_t>("fma.rn.f16", uint16_t(0x3c03), uint16_t(0x3c03),
                           uint16_t(0xbc00)),
            0x1e02);
  EXPECT_EQ(call<uint32_t>("fma.rn.relu.bf16x2", 0x3f803f80u, 0x3f803f80u,
                           0xc0003f80u),
            0x00004000u);
  // 1 + 1 and -1 - 1; infinity * 0 and 0.5 * 0.5 + 0.
  EXPECT_EQ(
      call<uint32_t>("fma.rn.sat.f16x2", 0xbc003c00u, 0x3c003c00u, 0xbc003c00u),
      0x00003c00u);
  EXPECT_EQ(call<uint32_t>("fma.rn.sat.f16x2", 0x38007c00u, 0x38000000u, 0u),
            0x34000000u);
}

TEST(Bits, Permute) {
  EXPECT_EQ(permuteBytes(Permute::Default, 0x33221100, 0x77665544, 0x7250),
            0x77225500u);
  // Bit 3 of a selector copies the sign of the byte.
  EXPECT_EQ(permuteBytes(Permute::Default, 0x80007f, 0, 0xa8a8), 0xff00ff00u);
  EXPECT_EQ(permuteBytes(Permute::F4E, 0x33221100, 0x77665544, 1), 0x44332211u);
  EXPECT_EQ(permuteBytes(Permute::B4E, 0x33221100, 0x77665544, 1), 0x66770011u);
  EXPECT_EQ(permuteBytes(Permute::RC8, 0x33221100, 0, 2), 0x22222222u);
  EXPECT_EQ(permuteBytes(Permute::ECL, 0x33221100, 0, 1), 0x33221111u);
  EXPECT_EQ(permuteBytes(Permute::ECR, 0x33221100, 0, 2), 0x22221100u);
  EXPECT_EQ(permuteBytes(Permute::RC16, 0x33221100, 0, 3), 0x33223322u);
}

TEST(Bits, Dot) {
  EXPECT_EQ(dot4(0x01ff0203, true, 0x01010101, true, 10), 15u);
  EXPECT_EQ(dot4(0x000000ff, false, 0x000000ff, true, 0), uint32_t(-255));
  EXPECT_EQ(dot2(0xffff0002, true, 0x04030201, true, true, 100), 102u);
  EXPECT_EQ(dot2(0xffff0002, true, 0x04030201, true, false, 100), 100u);
}

TEST(Bits, FunnelShift) {
  uint32_t low = 0x33221100, high = 0x77665544;
  EXPECT_EQ(call<uint32_t>("shf.r.clamp.b32", low, high, 0u), low);
  EXPECT_EQ(call<uint32_t>("shf.r.clamp.b32", low, high, 16u), 0x55443322u);
  EXPECT_EQ(call<uint32_t>("shf.l.clamp.b32", low, high, 0u), high);
  EXPECT_EQ(call<uint32_t>("shf.l.clamp.b32", low, high, 8u), 0x66554433u);
  // The other half is all that is left, however far.
  for (uint32_t n : {32u, 48u}) {
    EXPECT_EQ(call<uint32_t>("shf.r.clamp.b32", low, high, n), high);
    EXPECT_EQ(call<uint32_t>("shf.l.clamp.b32", low, high, n), low);
  }
}

TEST(Bits, Logic) {
  EXPECT_EQ(call<uint32_t>("lop3.b32", 0xf0u, 0xccu, 0xaau, 0xc0u), 0xc0u);
  EXPECT_EQ(call<uint32_t>("lop3.b32", 0xf0u, 0xccu, 0xaau, 0x96u) & 0xff,
            0x96u);
}

TEST(Shuffle, Lanes) {
  using Source = std::pair<unsigned, bool>;
  EXPECT_EQ(getShuffleSource(Shuffle::Butterfly, 5, 1, 31), Source(4, true));
  EXPECT_EQ(getShuffleSource(Shuffle::Up, 3, 4, 0), Source(3, false));
  EXPECT_EQ(getShuffleSource(Shuffle::Up, 4, 4, 0), Source(0, true));
  EXPECT_EQ(getShuffleSource(Shuffle::Down, 30, 1, 31), Source(31, true));
  EXPECT_EQ(getShuffleSource(Shuffle::Down, 30, 2, 31), Source(30, false));
  // Segments of 8 lanes: the mask 0x18 above the clamp 7.
  EXPECT_EQ(getShuffleSource(Shuffle::Down, 6, 2, 0x1807), Source(6, false));
  EXPECT_EQ(getShuffleSource(Shuffle::Down, 12, 2, 0x1807), Source(14, true));
  EXPECT_EQ(getShuffleSource(Shuffle::Index, 12, 1, 0x181f), Source(9, true));
  EXPECT_EQ(getShuffleSource(Shuffle::Index, 12, 35, 31), Source(3, true));
  EXPECT_EQ(getShuffleSource(Shuffle::Up, 8, 1, 0x1800), Source(8, false));
}

TEST(Approximate, AsFarAsPTXPromises) {
  EXPECT_EQ(call<float>("tanh.approx.f32", 1.0f), 0x1.86p-1f);
  EXPECT_EQ(call<float>("tanh.approx.f32", 5.0f), 1.0f);
  EXPECT_EQ(call<float>("tanh.approx.f32", -infinity), -1.0f);
  EXPECT_TRUE(std::isnan(call<float>("tanh.approx.f32", NAN)));
  EXPECT_EQ(call<float>("div.approx.ftz.f32", 0x1p126f, 0x1p126f), 1.0f);
  EXPECT_EQ(call<float>("div.approx.ftz.f32", 0x1p126f, 0x1p127f), 0.0f);
  EXPECT_EQ(call<float>("div.approx.ftz.f32", -1.0f, 0x1p127f), -0.0f);
}

} // namespace
