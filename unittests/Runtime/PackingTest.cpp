//===- PackingTest.cpp - The canonical packed layout ----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Checked against a direct transcription of docs/Encoding.md, element by
// element, over shapes with partial windows and panels and all strides.
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Runtime/Packing.h"
#include "nm_sparse/Runtime/Error.h"
#include "nm_sparse/Runtime/Random.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <string>
#include <vector>

namespace {

struct Case {
  int64_t n, m, bk, bn, batch, k, outputs;
  int order; // of the dense array: 0 row-major, 1 transposed, 2 with gaps
};

NmsPackSpec makeSpec(const Case &c, int32_t kind) {
  NmsPackSpec s = {c.n,       c.m, c.bk, c.bn, c.batch, c.k,
                   c.outputs, 0,   0,    0,    kind,    nmsIndexBytes(c.m)};
  s.strideK = c.order == 0 ? c.outputs : c.order == 1 ? 1 : 3 * c.outputs;
  s.strideN = c.order == 0 ? 1 : c.order == 1 ? c.k : 3;
  s.strideB = c.k * c.outputs * (c.order == 2 ? 3 : 1);
  return s;
}

size_t denseSize(const NmsPackSpec &s) {
  return static_cast<size_t>(s.batch * s.k * s.outputs * 3 + 1);
}

template <typename T>
void referencePack(const NmsPackSpec &s, const std::vector<T> &dense,
                   std::vector<T> &values, std::vector<int64_t> &index) {
  constexpr T sign = static_cast<T>(T(1) << (8 * sizeof(T) - 1));
  int64_t windows = (s.k + s.m * s.bk - 1) / (s.m * s.bk);
  int64_t panels = (s.outputs + s.bn - 1) / s.bn;
  auto at = [&](int64_t b, int64_t w, int64_t pos, int64_t i, int64_t p,
                int64_t j) {
    int64_t k = (w * s.m + pos) * s.bk + i, o = p * s.bn + j;
    if (k >= s.k || o >= s.outputs)
      return T(0);
    return dense[static_cast<size_t>(b * s.strideB + k * s.strideK +
                                     o * s.strideN)];
  };
  for (int64_t b = 0; b < s.batch; ++b)
    for (int64_t w = 0; w < windows; ++w)
      for (int64_t p = 0; p < panels; ++p) {
        std::vector<int64_t> kept, negative, rest;
        for (int64_t pos = 0; pos < s.m; ++pos) {
          bool live = false, minus = false;
          for (int64_t i = 0; i < s.bk; ++i)
            for (int64_t j = 0; j < s.bn; ++j) {
              T bits = at(b, w, pos, i, p, j);
              live |= static_cast<T>(bits << 1) != 0;
              minus |= bits == sign;
            }
          (live ? kept : minus ? negative : rest).push_back(pos);
        }
        kept.insert(kept.end(), negative.begin(), negative.end());
        kept.insert(kept.end(), rest.begin(), rest.end());
        kept.resize(static_cast<size_t>(s.n));
        std::sort(kept.begin(), kept.end());
        for (int64_t slot = 0; slot < s.n; ++slot) {
          int64_t pos = kept[static_cast<size_t>(slot)];
          index[static_cast<size_t>(((b * windows + w) * s.n + slot) * panels +
                                    p)] = pos;
          for (int64_t i = 0; i < s.bk; ++i)
            for (int64_t j = 0; j < s.bn; ++j)
              values[static_cast<size_t>(
                  (((b * windows + w) * s.n + slot) * s.bk + i) * panels *
                      s.bn +
                  p * s.bn + j)] = at(b, w, pos, i, p, j);
        }
      }
}

int64_t readIndex(const std::vector<uint8_t> &bytes, int32_t width, size_t i) {
  uint32_t value = 0;
  memcpy(&value, bytes.data() + i * static_cast<size_t>(width),
         static_cast<size_t>(width));
  return value;
}

template <typename T>
void roundTrip(const Case &c, int32_t kind) {
  SCOPED_TRACE(testing::Message()
               << c.n << ":" << c.m << " [" << c.bk << "," << c.bn
               << "] b=" << c.batch << " k=" << c.k << " n=" << c.outputs
               << " order " << c.order << " kind " << kind);
  NmsPackSpec s = makeSpec(c, kind);
  std::vector<T> dense(denseSize(s));
  ASSERT_EQ(nmsRandomNormal(kind, dense.data(),
                            static_cast<int64_t>(dense.size()), 5, 6),
            0);
  ASSERT_EQ(nmsPrune(&s, dense.data(), dense.data()), 0) << nmsLastError();
  // Some blocks are left empty, and negative zeros appear among them.
  T sign = kind == NMS_I8 ? T(0) : static_cast<T>(T(1) << (8 * sizeof(T) - 1));
  for (size_t i = 0; i < dense.size(); i += 3)
    if (i % 5 < 2)
      dense[i] = i % 2 ? sign : T(0);
  size_t count = static_cast<size_t>(nmsPackedValuesCount(&s));
  size_t positions = static_cast<size_t>(nmsPackedIndexCount(&s));
  std::vector<T> values(count, T(77)), wantValues(count, T(55));
  std::vector<uint8_t> index(positions * static_cast<size_t>(s.indexBytes), 99);
  std::vector<int64_t> wantIndex(positions, -1);
  ASSERT_EQ(nmsPack(&s, dense.data(), values.data(), index.data()), 0)
      << nmsLastError();
  referencePack(s, dense, wantValues, wantIndex);
  EXPECT_EQ(values, wantValues);
  for (size_t i = 0; i < positions; ++i)
    ASSERT_EQ(readIndex(index, s.indexBytes, i), wantIndex[i]) << i;

  std::vector<T> back = dense, again(count, T(33));
  for (size_t i = 0; i < back.size(); i += 7)
    back[i] = static_cast<T>(back[i] + (s.strideN == 3 && i % 3 ? 0 : 1));
  ASSERT_EQ(nmsUnpack(&s, values.data(), index.data(), back.data()), 0)
      << nmsLastError();
  ASSERT_EQ(nmsPack(&s, back.data(), again.data(), index.data()), 0);
  EXPECT_EQ(again, values);
}

TEST(Packing, MatchesTheSpecification) {
  const Case cases[] = {
      {2, 4, 1, 1, 1, 16, 8, 0},       {2, 4, 1, 1, 1, 18, 7, 1},
      {1, 4, 2, 2, 1, 21, 9, 2},       {8, 32, 1, 4, 2, 70, 30, 0},
      {8, 32, 1, 128, 1, 96, 200, 0},  {4, 4, 1, 3, 3, 10, 10, 1},
      {3, 7, 4, 4, 2, 60, 33, 2},      {2, 300, 1, 2, 1, 650, 5, 0},
      {1, 1, 1, 1, 1, 5, 5, 0},        {16, 32, 1, 32, 1, 33, 1500, 0},
      {2, 70000, 1, 1, 1, 70001, 2, 1}};
  for (const Case &c : cases) {
    roundTrip<uint32_t>(c, NMS_F32);
    roundTrip<uint16_t>(c, NMS_F16);
    roundTrip<uint16_t>(c, NMS_BF16);
  }
}

TEST(Packing, Integers) {
  // -128 has the bits that a negative zero has in other types: it is nonzero.
  NmsPackSpec s = {1, 4, 1, 1, 1, 4, 1, 4, 1, 1, NMS_I8, 1};
  int8_t dense[] = {0, 0, -128, 0}, value = 0, back[] = {1, 1, 1, 1};
  uint8_t index = 9;
  ASSERT_EQ(nmsPack(&s, dense, &value, &index), 0) << nmsLastError();
  EXPECT_EQ(value, -128);
  EXPECT_EQ(index, 2);
  ASSERT_EQ(nmsUnpack(&s, &value, &index, back), 0) << nmsLastError();
  EXPECT_TRUE(std::equal(dense, dense + 4, back));
}

TEST(Packing, TooManyBlocks) {
  NmsPackSpec s = {2, 4, 1, 1, 1, 8, 3, 24, 3, 1, NMS_F32, 1};
  std::vector<float> dense(24), values(12);
  std::vector<uint8_t> index(12);
  for (int k = 4; k < 7; ++k)
    dense[static_cast<size_t>(3 * k + 1)] = 1;
  EXPECT_NE(nmsPack(&s, dense.data(), values.data(), index.data()), 0);
  EXPECT_STREQ(
      nmsLastError(),
      "pack: window 1 of panel 1 holds 3 nonzero blocks, 2:4 allows 2: "
      "prune the weight first");
}

TEST(Packing, DamagedIndex) {
  NmsPackSpec s = {2, 4, 1, 1, 1, 3, 1, 3, 1, 1, NMS_F32, 1};
  float values[] = {1, 2}, dense[3];
  uint8_t beyond[] = {1, 4}, repeated[] = {1, 1}, padded[] = {1, 3};
  EXPECT_NE(nmsUnpack(&s, values, beyond, dense), 0);
  EXPECT_NE(std::string(nmsLastError()).find("position 4 in slot 1"),
            std::string::npos);
  EXPECT_NE(nmsUnpack(&s, values, repeated, dense), 0);
  EXPECT_NE(nmsUnpack(&s, values, padded, dense), 0);
  EXPECT_NE(std::string(nmsLastError()).find("past the end of the weight"),
            std::string::npos);
  values[1] = 0;
  EXPECT_EQ(nmsUnpack(&s, values, padded, dense), 0) << nmsLastError();
  EXPECT_EQ(dense[1], 1);
}

TEST(Packing, IllegalSpecs) {
  NmsPackSpec legal = {2, 4, 1, 1, 1, 8, 3, 24, 3, 1, NMS_F32, 1};
  auto message = [&](auto change) {
    NmsPackSpec s = legal;
    change(s);
    float x = 0;
    EXPECT_NE(nmsPack(&s, &x, &x, &x), 0);
    return std::string(nmsLastError());
  };
  EXPECT_EQ(message([](NmsPackSpec &s) { s.n = 5; }),
            "pack: 5:4 is not legal: n must be 1 to m, and m 1 to 2^31");
  EXPECT_EQ(message([](NmsPackSpec &s) { s.m = 300; }),
            "pack: positions of m=300 do not fit in 1 bytes: use 2");
  EXPECT_EQ(message([](NmsPackSpec &s) { s.kind = NMS_I32; }),
            "pack: element kind i32 (4) cannot be packed: use f32, f16, bf16 "
            "or i8");
}

TEST(Prune, KeepsTheLargestBlocks) {
  NmsPackSpec s = {2, 4, 1, 2, 1, 4, 2, 8, 2, 1, NMS_F32, 1};
  float nan = NAN;
  // Sums of squares 2, 2, 1, 2: of equals the smaller positions stay.
  std::vector<float> dense = {1, 1, -1, -1, 1, 0, 1, 1};
  ASSERT_EQ(nmsPrune(&s, dense.data(), dense.data()), 0);
  EXPECT_EQ(dense, (std::vector<float>{1, 1, -1, -1, 0, 0, 0, 0}));
  dense = {1, 1, -1, -1, nan, 0, 1, 2};
  ASSERT_EQ(nmsPrune(&s, dense.data(), dense.data()), 0);
  EXPECT_EQ(dense[0], 0);
  EXPECT_EQ(dense[2], 0);
  EXPECT_TRUE(std::isnan(dense[4]));
  EXPECT_EQ(dense[7], 2);
}

/// A ranked memref descriptor of rank 2.
struct Descriptor {
  Descriptor(void *data, int64_t rows, int64_t cols, int64_t offset = 0)
      : words{reinterpret_cast<int64_t>(data),
              reinterpret_cast<int64_t>(data),
              offset,
              rows,
              cols,
              cols,
              1} {}
  int64_t words[7];
};

TEST(PackRuntime, Memrefs) {
  // N x K, so dim = 1; the data start at element 2.
  std::vector<float> dense = {9, 9, 0, 1, 0, 2, 3, 0, 0, 0};
  std::vector<float> values(4), back(8);
  std::vector<uint8_t> index(4);
  int64_t params[] = {2, 4, 1, 1, 1, NMS_F32, 1};
  Descriptor from(dense.data(), 2, 4, 2), v(values.data(), 2, 2),
      i(index.data(), 2, 2), to(back.data(), 2, 4);
  nmsRuntimePack(2, from.words, v.words, i.words, params);
  EXPECT_EQ(values, (std::vector<float>{1, 3, 2, 0}));
  EXPECT_EQ(index, (std::vector<uint8_t>{1, 0, 3, 1}));
  nmsRuntimeUnpack(2, to.words, v.words, i.words, params);
  EXPECT_EQ(back, std::vector<float>(dense.begin() + 2, dense.end()));

  params[0] = 1;
  nmsRuntimePrune(2, from.words, to.words, params);
  EXPECT_EQ(back, (std::vector<float>{0, 0, 0, 2, 3, 0, 0, 0}));
}

TEST(CheckIndex, LegalPositionsPass) {
  // Two windows of two slots, two panels; 255 is legal for m = 256.
  std::vector<uint8_t> index = {0, 254, 1, 255, 7, 3, 255, 9};
  int64_t params[] = {2, 256, 1, 4};
  nmsRuntimeCheckIndex(2, Descriptor(index.data(), 4, 2).words, params);
}

TEST(CheckIndexDeathTest, NamesTheFirstBadPosition) {
  std::vector<uint8_t> index = {0, 2, 1, 3, 1, 3, 2, 4};
  int64_t params[] = {2, 4, 1, 7};
  auto check = [&] {
    nmsRuntimeCheckIndex(2, Descriptor(index.data(), 4, 2).words, params);
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

TEST(PackRuntimeDeathTest, ErrorsEndTheProcess) {
  float data[8] = {1, 2, 3, 4};
  uint8_t bytes[8];
  int64_t params[] = {2, 4, 1, 1, 0, NMS_F32, 1};
  Descriptor from(data, 4, 1), v(data, 2, 1), i(bytes, 2, 1), bad(data, 3, 1);
  EXPECT_EXIT(nmsRuntimePack(2, from.words, v.words, i.words, params),
              testing::ExitedWithCode(1),
              "nm_sparse: error: pack: window 0 of panel 0 holds 4 nonzero");
  EXPECT_EXIT(nmsRuntimePack(2, from.words, bad.words, i.words, params),
              testing::ExitedWithCode(1), "values has shape 1 x 3 x 1");
}

} // namespace
