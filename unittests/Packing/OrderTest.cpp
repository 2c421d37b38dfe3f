//===- OrderTest.cpp - Orders of outputs ----------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Base/Error.h"
#include "nm_sparse/Base/Random.h"
#include "nm_sparse/Packing/Packing.h"

#include "gtest/gtest.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <string>
#include <vector>

namespace {

/// A k x outputs weight of one level, row-major.
NmsPackSpec makeSpec(NmsPackLevel level, int64_t k, int64_t outputs) {
  NmsPackSpec spec = {};
  spec.levels[0] = level;
  spec.levelCount = 1;
  spec.batch = 1;
  spec.k = k;
  spec.outputs = outputs;
  spec.strideK = outputs;
  spec.strideN = 1;
  spec.kind = NMS_F32;
  return spec;
}

TEST(Order, OutputsWithTheSameRowsArePackedTogether) {
  NmsPackSpec spec = makeSpec({2, 4, 1, 2}, 4, 4);
  const float weight[] = {1, 0, 2, 0, 0, 5, 0, 6, 3, 0, 4, 0, 0, 7, 0, 8};
  std::vector<float> values(8), back(16);
  std::vector<uint8_t> index(4);
  std::vector<uint32_t> perm(4);
  void *components[] = {values.data(), index.data()};
  ASSERT_EQ(nmsPackShuffled(&spec, 0, weight, components, perm.data()), 0);
  EXPECT_EQ(perm, (std::vector<uint32_t>{0, 2, 1, 3}));
  EXPECT_EQ(values, (std::vector<float>{1, 2, 5, 6, 3, 4, 7, 8}));
  EXPECT_EQ(index, (std::vector<uint8_t>{0, 1, 2, 3}));
  const void *read[] = {values.data(), index.data()};
  ASSERT_EQ(nmsUnpackShuffled(&spec, read, perm.data(), back.data()), 0);
  EXPECT_TRUE(std::equal(back.begin(), back.end(), weight));
}

TEST(Order, WhatIsNoPermutationIsNamed) {
  NmsPackSpec spec = makeSpec({0, 0, 1, 2}, 2, 3);
  for (auto [perm, message] :
       {std::pair(std::vector<uint32_t>{0, 3, 1},
                  "has 3 at place 1, which is not below 3"),
        std::pair(std::vector<uint32_t>{0, 1, 0},
                  "has 0 at place 2, which place 0 holds, too")}) {
    ASSERT_EQ(nmsCheckOrder(&spec, perm.data()), 1);
    EXPECT_NE(std::string(nmsLastError()).find(message), std::string::npos)
        << nmsLastError();
  }
}

TEST(Order, TheSearchDoesNotDependOnThreads) {
  constexpr int64_t k = 96, outputs = 150;
  NmsPackSpec spec = makeSpec({0, 0, 2, 8}, k, outputs);
  std::vector<float> weight(k * outputs);
  ASSERT_EQ(nmsRandomNormal(NMS_F32, weight.data(), k * outputs, 1, 2), 0);
  std::vector<std::vector<uint32_t>> found;
  for (const char *threads : {"1", "2", "7"}) {
    setenv("NM_SPARSE_THREADS", threads, 1);
    std::vector<uint32_t> perm(outputs);
    ASSERT_EQ(nmsSearchOrder(&spec, 0.3, 0, weight.data(), perm.data(), nullptr,
                             nullptr),
              0);
    EXPECT_EQ(nmsCheckOrder(&spec, perm.data()), 0);
    found.push_back(perm);
  }
  unsetenv("NM_SPARSE_THREADS");
  std::vector<uint32_t> identity(outputs);
  std::iota(identity.begin(), identity.end(), 0);
  EXPECT_NE(found[0], identity);
  EXPECT_EQ(found[0], found[1]);
  EXPECT_EQ(found[0], found[2]);
}

} // namespace
