//===- PackingTest.cpp - The canonical packed layout ----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Checked against a direct transcription of docs/Encoding.md, element by
// element, over shapes with partial windows and panels and all strides.
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Packing/Packing.h"
#include "nm_sparse/Base/Error.h"
#include "nm_sparse/Base/Random.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <string>
#include <vector>

namespace {

struct Case {
  NmsPackLevel outer;
  NmsPackLevel inner; // n = 0: there is none
  int64_t batch, k, outputs;
  int order; // of the dense array: 0 row-major, 1 transposed, 2 with gaps
};

NmsPackSpec makeSpec(const Case &c, int32_t kind) {
  NmsPackSpec s = {};
  s.levels[0] = c.outer;
  s.levels[1] = c.inner;
  s.levelCount = c.inner.n ? 2 : 1;
  s.batch = c.batch;
  s.k = c.k;
  s.outputs = c.outputs;
  s.strideK = c.order == 0 ? c.outputs : c.order == 1 ? 1 : 3 * c.outputs;
  s.strideN = c.order == 0 ? 1 : c.order == 1 ? c.k : 3;
  s.strideB = c.k * c.outputs * (c.order == 2 ? 3 : 1);
  s.kind = kind;
  return s;
}

/// One level, row-major: k and outputs are those of the array that it packs.
NmsPackSpec oneLevel(NmsPackLevel level, int64_t k, int64_t outputs,
                     int32_t kind = NMS_F32) {
  return makeSpec({level, {}, 1, k, outputs, 0}, kind);
}

size_t denseSize(const NmsPackSpec &s) {
  return static_cast<size_t>(s.batch * s.k * s.outputs * 3 + 1);
}

/// The part of an array that one level keeps.
template <typename T>
struct Kept {
  std::vector<T> values;
  std::vector<int64_t> index;
  int64_t k, outputs; // shape of the values
};

/// `dense(b, k, o)` is an element of an array of `rows` x `columns`.
template <typename T, typename Dense>
Kept<T> referencePack(const NmsPackLevel &l, int64_t batch, int64_t rows,
                      int64_t columns, Dense dense) {
  constexpr T sign = static_cast<T>(T(1) << (8 * sizeof(T) - 1));
  int64_t windows = (rows + l.m * l.bk - 1) / (l.m * l.bk);
  int64_t panels = (columns + l.bn - 1) / l.bn;
  Kept<T> result = {{}, {}, windows * l.n * l.bk, panels * l.bn};
  result.values.resize(static_cast<size_t>(batch * result.k * result.outputs));
  result.index.resize(static_cast<size_t>(batch * windows * l.n * panels));
  auto at = [&](int64_t b, int64_t w, int64_t pos, int64_t i, int64_t p,
                int64_t j) {
    int64_t k = (w * l.m + pos) * l.bk + i, o = p * l.bn + j;
    return k >= rows || o >= columns ? T(0) : dense(b, k, o);
  };
  for (int64_t b = 0; b < batch; ++b)
    for (int64_t w = 0; w < windows; ++w)
      for (int64_t p = 0; p < panels; ++p) {
        std::vector<int64_t> kept, negative, rest;
        for (int64_t pos = 0; pos < l.m; ++pos) {
          bool live = false, minus = false;
          for (int64_t i = 0; i < l.bk; ++i)
            for (int64_t j = 0; j < l.bn; ++j) {
              T bits = at(b, w, pos, i, p, j);
              live |= static_cast<T>(bits << 1) != 0;
              minus |= bits == sign;
            }
          (live ? kept : minus ? negative : rest).push_back(pos);
        }
        kept.insert(kept.end(), negative.begin(), negative.end());
        kept.insert(kept.end(), rest.begin(), rest.end());
        kept.resize(static_cast<size_t>(l.n));
        std::sort(kept.begin(), kept.end());
        for (int64_t slot = 0; slot < l.n; ++slot) {
          int64_t pos = kept[static_cast<size_t>(slot)];
          int64_t row = (b * windows + w) * l.n + slot;
          result.index[static_cast<size_t>(row * panels + p)] = pos;
          for (int64_t i = 0; i < l.bk; ++i)
            for (int64_t j = 0; j < l.bn; ++j)
              result.values[static_cast<size_t>(
                  (row * l.bk + i) * panels * l.bn + p * l.bn + j)] =
                  at(b, w, pos, i, p, j);
        }
      }
  return result;
}

/// The arrays of a packed weight, filled with what no test expects.
struct Components {
  explicit Components(const NmsPackSpec &s) {
    for (int64_t i = 0; i < nmsComponentCount(&s); ++i) {
      NmsComponent c;
      EXPECT_EQ(nmsDescribeComponent(&s, i, &c), 0) << nmsLastError();
      bytes.emplace_back(
          static_cast<size_t>(c.batch * c.rows * c.columns * c.elementBytes),
          uint8_t(99));
      width.push_back(c.elementBytes);
    }
    for (std::vector<uint8_t> &component : bytes)
      arrays.push_back(component.data());
  }

  /// A component as numbers.
  std::vector<int64_t> read(size_t component) const {
    std::vector<int64_t> numbers;
    auto step = static_cast<size_t>(width[component]);
    for (size_t i = 0; i < bytes[component].size(); i += step) {
      uint32_t value = 0;
      memcpy(&value, bytes[component].data() + i, step);
      numbers.push_back(value);
    }
    return numbers;
  }

  std::vector<std::vector<uint8_t>> bytes;
  std::vector<int64_t> width;
  std::vector<void *> arrays;
};

template <typename T>
std::vector<int64_t> widen(const std::vector<T> &values) {
  return std::vector<int64_t>(values.begin(), values.end());
}

template <typename T>
void roundTrip(const Case &c, int32_t kind) {
  SCOPED_TRACE(testing::Message()
               << c.outer.n << ":" << c.outer.m << " [" << c.outer.bk << ","
               << c.outer.bn << "] inner " << c.inner.n << ":" << c.inner.m
               << " [" << c.inner.bk << "," << c.inner.bn << "] b=" << c.batch
               << " k=" << c.k << " n=" << c.outputs << " order " << c.order
               << " kind " << kind);
  NmsPackSpec s = makeSpec(c, kind);
  std::vector<T> dense(denseSize(s));
  ASSERT_EQ(nmsRandomNormal(kind, dense.data(),
                            static_cast<int64_t>(dense.size()), 5, 6),
            0);
  ASSERT_EQ(nmsPrune(&s, dense.data(), dense.data()), 0) << nmsLastError();
  std::vector<T> pruned = dense;
  ASSERT_EQ(nmsPrune(&s, pruned.data(), pruned.data()), 0) << nmsLastError();
  EXPECT_EQ(pruned, dense);
  // Some blocks are left empty, and negative zeros appear among them.
  T sign = kind == NMS_I8 ? T(0) : static_cast<T>(T(1) << (8 * sizeof(T) - 1));
  for (size_t i = 0; i < dense.size(); i += 3)
    if (i % 5 < 2)
      dense[i] = i % 2 ? sign : T(0);

  Components packed(s), again(s);
  ASSERT_EQ(nmsPack(&s, dense.data(), packed.arrays.data()), 0)
      << nmsLastError();
  Kept<T> want = referencePack<T>(
      c.outer, c.batch, c.k, c.outputs, [&](int64_t b, int64_t k, int64_t o) {
        return dense[static_cast<size_t>(b * s.strideB + k * s.strideK +
                                         o * s.strideN)];
      });
  EXPECT_EQ(packed.read(NMS_INDEX), want.index);
  if (c.inner.n) {
    Kept<T> outer = want;
    want = referencePack<T>(c.inner, c.batch, outer.k, outer.outputs,
                            [&](int64_t b, int64_t k, int64_t o) {
                              return outer.values[static_cast<size_t>(
                                  (b * outer.k + k) * outer.outputs + o)];
                            });
    EXPECT_EQ(packed.read(NMS_INNER_INDEX), want.index);
  }
  EXPECT_EQ(packed.read(NMS_VALUES), widen(want.values));

  std::vector<T> back = dense;
  for (size_t i = 0; i < back.size(); i += 7)
    back[i] = static_cast<T>(back[i] + (s.strideN == 3 && i % 3 ? 0 : 1));
  ASSERT_EQ(nmsUnpack(&s, packed.arrays.data(), back.data()), 0)
      << nmsLastError();
  ASSERT_EQ(nmsPack(&s, back.data(), again.arrays.data()), 0);
  EXPECT_EQ(again.bytes[NMS_VALUES], packed.bytes[NMS_VALUES]);
}

TEST(Packing, MatchesTheSpecification) {
  const Case cases[] = {{{2, 4, 1, 1}, {}, 1, 16, 8, 0},
                        {{2, 4, 1, 1}, {}, 1, 18, 7, 1},
                        {{1, 4, 2, 2}, {}, 1, 21, 9, 2},
                        {{8, 32, 1, 4}, {}, 2, 70, 30, 0},
                        {{8, 32, 1, 128}, {}, 1, 96, 200, 0},
                        {{4, 4, 1, 3}, {}, 3, 10, 10, 1},
                        {{3, 7, 4, 4}, {}, 2, 60, 33, 2},
                        {{2, 300, 1, 2}, {}, 1, 650, 5, 0},
                        {{1, 1, 1, 1}, {}, 1, 5, 5, 0},
                        {{16, 32, 1, 32}, {}, 1, 33, 1500, 0},
                        {{2, 70000, 1, 1}, {}, 1, 70001, 2, 1}};
  for (const Case &c : cases) {
    roundTrip<uint32_t>(c, NMS_F32);
    roundTrip<uint16_t>(c, NMS_F16);
    roundTrip<uint16_t>(c, NMS_BF16);
    roundTrip<uint8_t>(c, NMS_F8E4M3FN);
  }
}

TEST(Packing, TwoLevelsMatchTheSpecification) {
  std::vector<Case> cases = {// Blocks of several rows, inner panels.
                             {{2, 5, 4, 6}, {3, 8, 1, 1}, 2, 47, 20, 2},
                             {{2, 5, 4, 6}, {1, 4, 2, 3}, 1, 47, 20, 1},
                             {{3, 3, 2, 4}, {1, 3, 2, 4}, 1, 13, 9, 0},
                             // Positions of two bytes in both levels.
                             {{300, 400, 1, 2}, {9, 300, 1, 1}, 1, 900, 3, 0}};
  for (int64_t m : {5, 8, 10, 16, 20})
    for (int64_t v : {32, 64, 128})
      cases.push_back({{4, m, 1, v},
                       {2, 4, 1, 1},
                       1,
                       3 * m - 2,
                       v + 7,
                       static_cast<int>(m % 3)});
  for (const Case &c : cases) {
    roundTrip<uint32_t>(c, NMS_F32);
    roundTrip<uint16_t>(c, NMS_BF16);
    roundTrip<uint8_t>(c, NMS_F8E5M2);
  }
}

TEST(Packing, Integers) {
  // -128 has the bits that a negative zero has in other types: it is nonzero.
  NmsPackSpec s = oneLevel({1, 4, 1, 1}, 4, 1, NMS_I8);
  int8_t dense[] = {0, 0, -128, 0}, value = 0, back[] = {1, 1, 1, 1};
  uint8_t index = 9;
  void *arrays[] = {&value, &index};
  ASSERT_EQ(nmsPack(&s, dense, arrays), 0) << nmsLastError();
  EXPECT_EQ(value, -128);
  EXPECT_EQ(index, 2);
  ASSERT_EQ(nmsUnpack(&s, arrays, back), 0) << nmsLastError();
  EXPECT_TRUE(std::equal(dense, dense + 4, back));
}

TEST(Packing, TooManyBlocks) {
  NmsPackSpec s = oneLevel({2, 4, 1, 1}, 8, 3);
  std::vector<float> dense(24);
  Components packed(s);
  for (int k = 4; k < 7; ++k)
    dense[static_cast<size_t>(3 * k + 1)] = 1;
  EXPECT_NE(nmsPack(&s, dense.data(), packed.arrays.data()), 0);
  EXPECT_STREQ(nmsLastError(),
               "pack: weight is not 2:4: window 1 of panel 1 has 3 nonzero "
               "blocks, legal is at most 2; prune the weight or use a larger "
               "n");
}

TEST(Packing, TooManyInnerBlocks) {
  NmsPackSpec s = makeSpec({{3, 5, 1, 2}, {2, 3, 1, 1}, 1, 10, 4, 0}, NMS_F32);
  std::vector<float> dense(40);
  Components packed(s);
  // Three rows of the second window are what the outer level allows.
  for (size_t k : {5u, 7u, 9u})
    dense[4 * k + 3] = 1;
  EXPECT_NE(nmsPack(&s, dense.data(), packed.arrays.data()), 0);
  EXPECT_STREQ(nmsLastError(),
               "pack: weight is not 2:3 in what 3:5 keeps: window 1 of inner "
               "panel 3 has 3 nonzero blocks, legal is at most 2; prune the "
               "weight or use a larger n");
  dense[4 * 5 + 3] = 0;
  dense[4 * 5 + 2] = 1;
  EXPECT_EQ(nmsPack(&s, dense.data(), packed.arrays.data()), 0)
      << nmsLastError();
}

TEST(Packing, DamagedIndex) {
  NmsPackSpec s = oneLevel({2, 4, 1, 1}, 3, 1);
  float values[] = {1, 2}, dense[3];
  uint8_t beyond[] = {1, 4}, repeated[] = {1, 1}, padded[] = {1, 3};
  auto unpack = [&](uint8_t *index) {
    void *arrays[] = {values, index};
    return nmsUnpack(&s, arrays, dense);
  };
  EXPECT_NE(unpack(beyond), 0);
  EXPECT_NE(std::string(nmsLastError()).find("position 4 in slot 1"),
            std::string::npos);
  EXPECT_NE(unpack(repeated), 0);
  EXPECT_NE(unpack(padded), 0);
  EXPECT_NE(std::string(nmsLastError()).find("past the end of the weight"),
            std::string::npos);
  values[1] = 0;
  EXPECT_EQ(unpack(padded), 0) << nmsLastError();
  EXPECT_EQ(dense[1], 1);
}

TEST(Packing, DamagedInnerIndex) {
  NmsPackSpec s = makeSpec({{2, 4, 1, 2}, {1, 2, 1, 1}, 1, 4, 2, 0}, NMS_F32);
  float values[] = {1, 2}, dense[8];
  uint8_t index[] = {1, 3}, inner[] = {1, 0};
  void *arrays[] = {values, index, inner};
  ASSERT_EQ(nmsUnpack(&s, arrays, dense), 0) << nmsLastError();
  EXPECT_EQ(std::vector<float>(dense, dense + 8),
            (std::vector<float>{0, 0, 0, 2, 0, 0, 1, 0}));
  inner[1] = 2;
  EXPECT_NE(nmsUnpack(&s, arrays, dense), 0);
  EXPECT_NE(std::string(nmsLastError())
                .find("inner_index: window 0 of panel 1 (batch 0) has "
                      "position 2 in slot 0"),
            std::string::npos);
}

TEST(Packing, IllegalSpecs) {
  NmsPackSpec legal =
      makeSpec({{2, 4, 1, 2}, {1, 2, 1, 1}, 1, 8, 3, 0}, NMS_F32);
  auto message = [&](auto change) {
    NmsPackSpec s = legal;
    change(s);
    float x = 0;
    void *arrays[] = {&x, &x, &x};
    EXPECT_NE(nmsPack(&s, &x, arrays), 0);
    return std::string(nmsLastError());
  };
  EXPECT_EQ(message([](NmsPackSpec &s) { s.levels[0].n = 5; }),
            "pack: 5:4 is not legal: n must be 1 to m, and m 1 to 2^31");
  EXPECT_EQ(message([](NmsPackSpec &s) { s.levels[1].m = 0; }),
            "pack: 1:0 is not legal: n must be 1 to m, and m 1 to 2^31");
  EXPECT_EQ(message([](NmsPackSpec &s) { s.levels[1].bn = 0; }),
            "pack: block = [1, 0] is not legal: both must be 1 to 2^31");
  EXPECT_EQ(message([](NmsPackSpec &s) { s.levelCount = 3; }),
            "pack: 3 levels are not legal: use 1 or 2");
  EXPECT_EQ(
      message([](NmsPackSpec &s) { s.levels[0].bn = 3, s.levels[1].bn = 2; }),
      "pack: inner blocks [1, 2] must divide the outer ones, [1, 3]");
  EXPECT_EQ(message([](NmsPackSpec &s) { s.levels[1].m = 4; }),
            "pack: an inner window of 4 x 1 rows must be the 2 x 1 rows that "
            "the outer level keeps of a window");
  EXPECT_EQ(message([](NmsPackSpec &s) { s.kind = NMS_I32; }),
            "pack: element kind i32 (4) cannot be packed: use f32, f16, bf16, "
            "f8E4M3FN, f8E5M2 or i8");
  float x = 0;
  void *arrays[] = {&x, &x, nullptr};
  EXPECT_NE(nmsPack(&legal, &x, arrays), 0);
  EXPECT_STREQ(nmsLastError(), "pack: component inner_index is null");
}

// Scores are no weights, and need every bit.
TEST(Prune, TakesDoubles) {
  NmsPackSpec s = oneLevel({1, 2, 1, 1}, 4, 1);
  s.kind = NMS_F64;
  std::vector<double> dense = {1.0, 1.0 + 0x1p-40, -2.0, 2.0}, pruned(4);
  ASSERT_EQ(nmsPrune(&s, dense.data(), pruned.data()), 0);
  EXPECT_EQ(pruned, (std::vector<double>{0.0, 1.0 + 0x1p-40, -2.0, 0.0}));
  EXPECT_NE(nmsPack(&s, dense.data(), nullptr), 0);
}

TEST(Prune, KeepsTheLargestBlocks) {
  NmsPackSpec s = oneLevel({2, 4, 1, 2}, 4, 2);
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

TEST(Prune, ChoosesBothLevelsTogether) {
  // Two of four rows, shared by two outputs, and one of these for each output.
  NmsPackSpec s = makeSpec({{2, 4, 1, 2}, {1, 2, 1, 1}, 1, 4, 2, 0}, NMS_F32);
  // The first row has the largest sum, but is the best of no output.
  std::vector<float> dense = {4, 4, 5, 0, 0, 0, 0, -5};
  ASSERT_EQ(nmsPrune(&s, dense.data(), dense.data()), 0);
  EXPECT_EQ(dense, (std::vector<float>{0, 0, 5, 0, 0, 0, 0, -5}));
  // Where one row is the best of both, the second is the first that is left,
  // and a -0 is no value to keep.
  dense = {-0.0F, 1, 0, 2, 9, 9, 3, 3};
  ASSERT_EQ(nmsPrune(&s, dense.data(), dense.data()), 0);
  EXPECT_EQ(dense, (std::vector<float>{0, 0, 0, 0, 9, 9, 0, 0}));
  EXPECT_FALSE(std::signbit(dense[0]));
}

} // namespace
