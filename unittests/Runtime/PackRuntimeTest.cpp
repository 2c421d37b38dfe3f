//===- PackRuntimeTest.cpp - Components, and calls of compiled host code --===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Runtime/Error.h"
#include "nm_sparse/Runtime/Packing.h"

#include <array>
#include <gtest/gtest.h>
#include <string>
#include <vector>

namespace {

TEST(Packing, DescribesComponents) {
  NmsPackSpec s = {
      {{4, 300, 1, 64}, {2, 4, 1, 1}}, 2, 3, 700, 100, 0, 0, 0, NMS_F16};
  ASSERT_EQ(nmsComponentCount(&s), 3);
  NmsComponent c;
  ASSERT_EQ(nmsDescribeComponent(&s, NMS_VALUES, &c), 0);
  EXPECT_STREQ(c.name, "values");
  EXPECT_EQ((std::vector<int64_t>{c.batch, c.rows, c.columns, c.elementBytes}),
            (std::vector<int64_t>{3, 6, 128, 2}));
  ASSERT_EQ(nmsDescribeComponent(&s, NMS_INDEX, &c), 0);
  EXPECT_STREQ(c.name, "index");
  EXPECT_EQ((std::vector<int64_t>{c.batch, c.rows, c.columns, c.elementBytes}),
            (std::vector<int64_t>{3, 12, 2, 2}));
  ASSERT_EQ(nmsDescribeComponent(&s, NMS_INNER_INDEX, &c), 0);
  EXPECT_STREQ(c.name, "inner_index");
  EXPECT_EQ((std::vector<int64_t>{c.batch, c.rows, c.columns, c.elementBytes}),
            (std::vector<int64_t>{3, 6, 128, 1}));
  s.levelCount = 1;
  EXPECT_NE(nmsDescribeComponent(&s, NMS_INNER_INDEX, &c), 0);
  EXPECT_NE(std::string(nmsLastError()).find("there are components 0 to 1"),
            std::string::npos);
}

/// A ranked memref descriptor of rank 2.
struct Descriptor {
  Descriptor(void *data, int64_t rows, int64_t cols, int64_t offset = 0) {
    auto address = reinterpret_cast<int64_t>(data);
    words = {address, address, offset, rows, cols, cols, 1};
  }
  void *get() { return words.data(); }

  std::array<int64_t, 7> words;
};

TEST(PackRuntime, Memrefs) {
  // N x K, so dim = 1; the data start at element 2.
  std::vector<float> dense = {9, 9, 0, 1, 0, 2, 3, 0, 0, 0};
  std::vector<float> values(4), back(8);
  std::vector<uint8_t> index(4);
  int64_t params[] = {1, NMS_F32, 1, 2, 4, 1, 1};
  Descriptor from(dense.data(), 2, 4, 2), v(values.data(), 2, 2),
      i(index.data(), 2, 2), to(back.data(), 2, 4);
  void *components[] = {v.get(), i.get()};
  nmsRuntimePack(2, from.get(), components, params);
  EXPECT_EQ(values, (std::vector<float>{1, 3, 2, 0}));
  EXPECT_EQ(index, (std::vector<uint8_t>{1, 0, 3, 1}));
  nmsRuntimeUnpack(2, to.get(), components, params);
  EXPECT_EQ(back, std::vector<float>(dense.begin() + 2, dense.end()));

  params[3] = 1;
  nmsRuntimePrune(2, from.get(), to.get(), params);
  EXPECT_EQ(back, (std::vector<float>{0, 0, 0, 2, 3, 0, 0, 0}));
}

TEST(PackRuntime, MemrefsOfTwoLevels) {
  std::vector<float> dense = {0, 0, 0, 2, 0, 0, 1, 0}, values(2), back(8);
  std::vector<uint8_t> index(2), inner(2);
  int64_t params[] = {0, NMS_F32, 2, 2, 4, 1, 2, 1, 2, 1, 1};
  Descriptor from(dense.data(), 4, 2), v(values.data(), 1, 2),
      i(index.data(), 2, 1), ii(inner.data(), 1, 2), to(back.data(), 4, 2);
  void *components[] = {v.get(), i.get(), ii.get()};
  nmsRuntimePack(2, from.get(), components, params);
  EXPECT_EQ(values, (std::vector<float>{1, 2}));
  EXPECT_EQ(index, (std::vector<uint8_t>{1, 3}));
  EXPECT_EQ(inner, (std::vector<uint8_t>{1, 0}));
  nmsRuntimeUnpack(2, to.get(), components, params);
  EXPECT_EQ(back, dense);
}

TEST(PackRuntime, BitmapsOfADenseWeight) {
  // Section 4 of docs/Encoding.md; one tile of bitmaps.
  std::vector<float> dense = {1, 2, 0, 0, 0, 0,   0, 0, 5,
                              0, 3, 6, 0, 0, -0., 0, 4, 0};
  std::vector<float> values(16), stored(512), wanted(512);
  std::vector<uint8_t> index(8);
  std::vector<uint32_t> bits(32), wantedBits(32);
  int64_t params[] = {0, NMS_F32, 1, 2, 4, 1, 2, 6, 3};
  Descriptor from(dense.data(), 6, 3), v(values.data(), 4, 4),
      i(index.data(), 4, 2);
  auto describe = [](void *data, int64_t size) {
    auto address = reinterpret_cast<int64_t>(data);
    return std::array<int64_t, 9>{address, address, 0,    1, 1,
                                  size,    size,    size, 1};
  };
  auto s = describe(stored.data(), 512), w = describe(wanted.data(), 512);
  auto b = describe(bits.data(), 32), wb = describe(wantedBits.data(), 32);
  void *canonical[] = {v.get(), i.get()}, *direct[] = {s.data(), b.data()},
       *indirect[] = {w.data(), wb.data()};
  nmsRuntimePack(2, from.get(), canonical, params);
  nmsRuntimePackBitmap(2, canonical, indirect, params);
  nmsRuntimePackDenseBitmap(2, from.get(), direct, params);
  EXPECT_EQ(stored, wanted);
  EXPECT_EQ(bits, wantedBits);
  EXPECT_EQ(bits[0], 0x9cccccccu);

  s[5] = 511;
  EXPECT_EXIT(nmsRuntimePackDenseBitmap(2, from.get(), direct, params),
              testing::ExitedWithCode(1),
              "values of the bitmap has shape 1 x 1 x 511");
}

TEST(CheckIndex, LegalPositionsPass) {
  // Two windows of two slots, two panels; 255 is legal for m = 256.
  std::vector<uint8_t> index = {0, 254, 1, 255, 7, 3, 255, 9};
  int64_t params[] = {2, 256, 4};
  nmsRuntimeCheckIndex(2, Descriptor(index.data(), 4, 2).get(), params);
}

TEST(CheckIndexDeathTest, NamesTheFirstBadPosition) {
  std::vector<uint8_t> index = {0, 2, 1, 3, 1, 3, 2, 4};
  int64_t params[] = {2, 4, 7};
  auto check = [&] {
    nmsRuntimeCheckIndex(2, Descriptor(index.data(), 4, 2).get(), params);
  };
  EXPECT_EXIT(check(), testing::ExitedWithCode(1),
              "check index: argument 7: window 1, panel 1: slot 1 holds "
              "position 4, which is not below m = 4: positions are 0 to 3");
  index = {0, 2, 1, 2, 0, 0, 1, 1};
  EXPECT_EXIT(check(), testing::ExitedWithCode(1),
              "window 0, panel 1: slot 1 holds position 2, which is not above "
              "that of the slot before, 2");
  params[0] = 3;
  EXPECT_EXIT(check(), testing::ExitedWithCode(1),
              "argument 7 has 4 rows: 3:4 wants a multiple of 3");
}

/// Bits of the encoding 1:5, block = [3, 2], of 30 rows and 3 outputs of f32:
/// one tile of 240 rows in eight words, of which the last 16 bits stand for
/// nothing.
class CheckBits : public testing::Test {
protected:
  void SetUp() override {
    NmsPackSpec spec = {};
    spec.kind = NMS_F32;
    spec.levelCount = 1;
    spec.levels[0] = {1, 5, 3, 2};
    spec.batch = 1;
    spec.k = 30;
    spec.outputs = 3;
    std::vector<float> values(size_t(2 * 3 * 4), 0.0F);
    std::vector<uint8_t> index = {0, 1, 2, 4};
    ASSERT_EQ(nmsBitmapShape(&spec, &shape), 0);
    std::vector<float> pieces(shape.blocks * shape.tiles * shape.tileValues *
                              32);
    bits.resize(shape.blocks * shape.tiles * shape.words * 32);
    ASSERT_EQ(nmsPackBitmap(&spec, values.data(), index.data(), pieces.data(),
                            bits.data()),
              0)
        << nmsLastError();
  }

  void check() {
    int64_t params[] = {NMS_F32, 1, 5, 3, 2, 30, 3, 5};
    struct {
      void *allocated, *aligned;
      int64_t offset, sizes[3], strides[3];
    } descriptor = {bits.data(),
                    bits.data(),
                    0,
                    {shape.blocks, shape.tiles, shape.words * 32},
                    {shape.tiles * shape.words * 32, shape.words * 32, 1}};
    nmsRuntimeCheckBits(3, &descriptor, params);
  }

  void expectError(const char *text) {
    EXPECT_EXIT(check(), testing::ExitedWithCode(1), text);
  }

  NmsBitmapShape shape;
  std::vector<uint32_t> bits;
};

TEST_F(CheckBits, LegalBitsPass) { check(); }

using CheckBitsDeathTest = CheckBits;

TEST_F(CheckBitsDeathTest, NamesTheFirstWrongWindow) {
  const std::vector<uint32_t> legal = bits;
  ASSERT_EQ(shape.words, 8);
  ASSERT_EQ(shape.tileRows, 240);
  // Output 2 loses the first of the rows 27 to 29, which it keeps of window 1.
  bits[2 * 8] ^= uint32_t(1) << (31 - 27);
  expectError(
      "check bits: argument 5: window 1 of output 2 \\(batch 0\\) keeps "
      "2 rows: legal is 3; the bits are damaged");
  // Row 26 in its place: as many, but no whole block.
  bits[2 * 8] ^= uint32_t(1) << (31 - 26);
  expectError(
      "window 1 of output 2 \\(batch 0\\) keeps a part of a block: legal "
      "are whole blocks of 3 rows");
  // Output 1 keeps the other block of window 0 than output 0, of its panel.
  bits = legal;
  bits[1 * 8] ^= uint32_t(0x3f) << 26;
  expectError(
      "window 0 of output 1 \\(batch 0\\) keeps other rows than output 0 "
      "of the same panel");
  // Past the rows of the tile, of an output that exists and of one that does
  // not.
  bits = legal;
  bits[1 * 8 + 7] |= 1;
  expectError(
      "tile 0 of output 1 \\(batch 0\\) has bits past its 240 rows: legal "
      "is 0");
  bits = legal;
  bits[31 * 8] ^= uint32_t(0x3f) << 26;
  expectError("window 0 of output 31 \\(batch 0\\) lies past the end of the "
              "weight: legal is to keep its first 3 rows");
}

TEST(PackRuntimeDeathTest, ErrorsEndTheProcess) {
  float data[8] = {1, 2, 3, 4};
  uint8_t bytes[8];
  int64_t params[] = {0, NMS_F32, 1, 2, 4, 1, 1};
  Descriptor from(data, 4, 1), v(data, 2, 1), i(bytes, 2, 1), bad(data, 3, 1);
  void *good[] = {v.get(), i.get()}, *wrong[] = {bad.get(), i.get()};
  EXPECT_EXIT(nmsRuntimePack(2, from.get(), good, params),
              testing::ExitedWithCode(1),
              "nm_sparse: error: pack: weight is not 2:4: window 0 of panel 0 "
              "has 4 nonzero");
  EXPECT_EXIT(nmsRuntimePack(2, from.get(), wrong, params),
              testing::ExitedWithCode(1), "values has shape 1 x 3 x 1");
  params[2] = 5;
  EXPECT_EXIT(nmsRuntimePack(2, from.get(), good, params),
              testing::ExitedWithCode(1), "5 levels are not legal");
}

TEST(PackRuntimeDeathTest, NamesWhatAKernelFound) {
  nmsRuntimeCheckPacked(NMS_PACKED_NOTHING_FOUND, 2, 4, 1, 5, 7);
  // Batch 0, window 4, panel 6 is the last of 5 x 7.
  int64_t last = (int64_t(34) << NMS_PACKED_COUNT_BITS) + 3;
  EXPECT_EXIT(nmsRuntimeCheckPacked(last, 2, 4, 1, 5, 7),
              testing::ExitedWithCode(1),
              "nm_sparse: error: pack: weight is not 2:4: window 4 of panel 6 "
              "has 3 nonzero blocks, legal is at most 2; prune");
  int64_t next = (int64_t(35) << NMS_PACKED_COUNT_BITS) + 64;
  EXPECT_EXIT(nmsRuntimeCheckPacked(next, 1, 64, 2, 5, 7),
              testing::ExitedWithCode(1),
              "weight is not 1:64: window 0 of panel 0 of batch 1 has 64 "
              "nonzero blocks, legal is at most 1");
}

} // namespace
