//===- CheckpointTest.cpp - 2:4 weights of files --------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FileBytes.h"

#include "nm_sparse/Checkpoint/TwoFour.h"
#include "gtest/gtest.h"
#include <random>

using namespace mlir;
using namespace mlir::nm_sparse;

namespace {

template <typename T>
TwoFourPattern check(llvm::ArrayRef<T> data, int64_t outputs, int64_t inputs,
                     llvm::StringRef type) {
  return checkTwoFour(
      {reinterpret_cast<const char *>(data.data()), data.size() * sizeof(T)},
      outputs, inputs, *findStoredType(type));
}

TEST(TwoFourTest, CountsViolationsAndNamesTheFirst) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float weight[] = {1, 0, 0, 2, 1, -0.0f, 1, 1, //
                          0, 0, 0, 0, 0, nan,   1, 1};
  TwoFourPattern pattern = check<float>(weight, 2, 8, "F32");
  EXPECT_EQ(pattern.windows, 4);
  EXPECT_EQ(pattern.violations, 2);
  EXPECT_EQ(pattern.firstOutput, 0);
  EXPECT_EQ(pattern.firstWindow, 1);
  EXPECT_EQ(pattern.describe(), "dense");
  pattern.windows = 1000;
  EXPECT_EQ(pattern.describe(), "nearly 2:4, but for 2 of 1000 windows; the "
                                "first is window 1 of output 0");
}

TEST(TwoFourTest, KnowsTheZerosOfEachType) {
  const uint8_t bytes[] = {0x80, 1, 1, 0};
  EXPECT_TRUE(check<uint8_t>(bytes, 1, 4, "F8_E4M3").isTwoFour());
  EXPECT_TRUE(check<uint8_t>(bytes, 1, 4, "F8_E5M2").isTwoFour());
  EXPECT_FALSE(check<uint8_t>(bytes, 1, 4, "I8").isTwoFour());
  const uint16_t halves[] = {0x8000, 1, 1, 0};
  EXPECT_TRUE(check<uint16_t>(halves, 1, 4, "F16").isTwoFour());
  EXPECT_TRUE(check<uint16_t>(halves, 1, 4, "BF16").isTwoFour());
}

TEST(TwoFourTest, LastWindowsMayBePartial) {
  const uint8_t bytes[] = {1, 0, 1, 0, 1, 1, 1, 0, 1, 0, 1, 1};
  EXPECT_TRUE(check<uint8_t>(bytes, 2, 6, "I8").isTwoFour());
  TwoFourPattern pattern = check<uint8_t>(bytes, 1, 12, "I8");
  EXPECT_EQ(pattern.violations, 2);
  EXPECT_EQ(pattern.windows, 3);
}

/// A weight of 2 x 8 in f32, and its parts as a file holds them.
struct Parts {
  int64_t sizes[2] = {2, 8};
  float kept[8] = {1, 2, 3, 4, 5, 0, 6, 7};
  // Output 0 keeps the inputs 0, 3, 5 and 6: the first one is the lowest bit.
  uint8_t bits[2] = {0b01101001, 0b11000011};
  TensorInfo shape, compressed, bitmask;

  Parts() {
    shape = {"fc.shape", findStoredType("I64"), {2, 1}, view(sizes)};
    compressed = {"fc.compressed", findStoredType("F32"), {2, 4}, view(kept)};
    bitmask = {"fc.bitmask", findStoredType("U8"), {2, 1}, view(bits)};
  }
  template <typename T, size_t N>
  static llvm::ArrayRef<char> view(const T (&array)[N]) {
    return {reinterpret_cast<const char *>(array), sizeof(array)};
  }
  llvm::Expected<std::vector<char>> decode() const {
    return decodeBitmask({&shape, &compressed, &bitmask});
  }
  std::string getError() const {
    auto dense = decode();
    return dense ? "" : llvm::toString(dense.takeError());
  }
};

TEST(TwoFourTest, DecodesBitmasks) {
  auto dense = Parts().decode();
  ASSERT_TRUE(bool(dense));
  const float expected[] = {1, 0, 0, 2, 0, 3, 4, 0, //
                            5, 0, 0, 0, 0, 0, 6, 7};
  ASSERT_EQ(dense->size(), sizeof(expected));
  const auto *bytes = reinterpret_cast<const char *>(expected);
  EXPECT_TRUE(std::equal(dense->begin(), dense->end(), bytes));
}

TEST(TwoFourTest, NamesWhatIsWrongWithBitmasks) {
  auto expect = [](llvm::function_ref<void(Parts &)> change,
                   const char *message) {
    Parts parts;
    change(parts);
    EXPECT_TRUE(contains(parts.getError(), message));
  };
  expect([](Parts &p) { p.sizes[1] = 12; },
         "'fc.compressed' has shape [2, 4]: legal is [2, 6] for 2 x 12");
  expect([](Parts &p) { p.sizes[1] = 6; }, "'fc.shape' is [2, 6]: legal is");
  expect([](Parts &p) { p.sizes[0] = -2; }, "'fc.shape' is [-2, 8]");
  expect([](Parts &p) { p.sizes[1] = 0; }, "'fc.shape' is [2, 0]");
  expect([](Parts &p) { p.sizes[0] = p.sizes[1] = INT64_MAX - 3; },
         "'fc.compressed' has shape");
  expect([](Parts &p) { p.shape.type = findStoredType("F64"); },
         "'fc.shape' is F64 of shape [2, 1]: legal is two numbers of I64");
  expect([](Parts &p) { p.compressed.type = findStoredType("I32"); },
         "'fc.compressed' is I32 of shape [2, 4]: legal is a matrix of F32");
  expect([](Parts &p) { p.bitmask.type = findStoredType("I8"); },
         "'fc.bitmask' is I8 of shape [2, 1]: legal is U8 of [2, 1]");
  expect([](Parts &p) { p.bits[1] = 0b11100011; },
         "'fc.bitmask' has 3 bits in window 1 of output 1: legal is 2 of 4");
  expect(
      [](Parts &p) {
        p.sizes[1] = 4;
        p.compressed.shape = {2, 2};
      },
      "'fc.bitmask' has bits past input 4 in output 0: legal is 0");
}

} // namespace
