//===- ReferenceTest.cpp - Reference products and comparison --------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Runtime/Reference.h"
#include "nm_sparse/Base/Convert.h"
#include "nm_sparse/Base/Random.h"
#include "nm_sparse/Runtime/Error.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <gtest/gtest.h>
#include <limits>
#include <vector>

namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

TEST(Compare, Errors) {
  std::vector<double> want = {3, -4, 0};
  std::vector<float> got = {3, -4, 0.5};
  NmsComparison result;
  ASSERT_EQ(nmsCompare(NMS_F32, got.data(), want.data(), 3, &result), 0);
  EXPECT_DOUBLE_EQ(result.relativeError, 0.1);
  EXPECT_EQ(result.maxAbsError, 0.5);
  EXPECT_EQ(result.worstIndex, 2);
  EXPECT_EQ(result.nanMismatches, 0);

  got[1] = NAN;
  ASSERT_EQ(nmsCompare(NMS_F32, got.data(), want.data(), 3, &result), 0);
  EXPECT_EQ(result.relativeError, infinity);
  EXPECT_EQ(result.nanMismatches, 1);
  EXPECT_EQ(result.worstIndex, 1);
  want[1] = NAN;
  got[2] = 0;
  ASSERT_EQ(nmsCompare(NMS_F32, got.data(), want.data(), 3, &result), 0);
  EXPECT_EQ(result.relativeError, 0);

  got[0] = infinity;
  want[0] = -infinity;
  ASSERT_EQ(nmsCompare(NMS_F32, got.data(), want.data(), 3, &result), 0);
  EXPECT_EQ(result.infMismatches, 1);
  EXPECT_EQ(result.relativeError, infinity);

  want = {0, 0};
  got = {0, 1e-30f};
  ASSERT_EQ(nmsCompare(NMS_F32, got.data(), want.data(), 2, &result), 0);
  EXPECT_EQ(result.relativeError, infinity);
  ASSERT_EQ(nmsCompare(NMS_F32, got.data(), want.data(), 0, &result), 0);
  EXPECT_EQ(result.relativeError, 0);
  EXPECT_EQ(result.worstIndex, -1);
}

TEST(Reference, MatchesThePlainLoops) {
  struct Shape {
    int64_t batch, m, n, k;
  };
  for (Shape s : {Shape{1, 1, 1, 1},
                  {2, 5, 17, 9},
                  {3, 200, 33, 300},
                  {1, 193, 400, 513}}) {
    for (int order = 0; order < 4; ++order) {
      bool xt = order & 1, wt = order & 2;
      std::vector<double> x(static_cast<size_t>(s.batch * s.m * s.k));
      std::vector<double> w(static_cast<size_t>(s.k * s.n));
      std::vector<double> y(static_cast<size_t>(s.batch * s.m * s.n), 1);
      nmsRandomNormal(NMS_F64, x.data(), static_cast<int64_t>(x.size()), 1, 1);
      nmsRandomNormal(NMS_F64, w.data(), static_cast<int64_t>(w.size()), 1, 2);
      // Small integers make every order of additions exact.
      for (double &value : x)
        value = std::nearbyint(8 * value);
      for (double &value : w)
        value = std::nearbyint(8 * value);
      int64_t xsm = xt ? 1 : s.k, xsk = xt ? s.m : 1;
      int64_t wsk = wt ? 1 : s.n, wsn = wt ? s.k : 1;
      // One weight for all batches, and y transposed.
      ASSERT_EQ(nmsReferenceMatmul(s.batch, s.m, s.n, s.k, x.data(), s.m * s.k,
                                   xsm, xsk, w.data(), 0, wsk, wsn, y.data(),
                                   s.m * s.n, 1, s.m),
                0);
      for (int64_t b = 0; b < s.batch; ++b)
        for (int64_t i = 0; i < s.m; ++i)
          for (int64_t j = 0; j < s.n; j += 3) {
            double sum = 1;
            for (int64_t l = 0; l < s.k; ++l)
              sum += x[static_cast<size_t>(b * s.m * s.k + i * xsm + l * xsk)] *
                     w[static_cast<size_t>(l * wsk + j * wsn)];
            ASSERT_EQ(y[static_cast<size_t>(b * s.m * s.n + i + j * s.m)], sum)
                << b << " " << i << " " << j << " order " << order;
          }
    }
  }
  EXPECT_NE(nmsReferenceMatmul(1, -1, 1, 1, nullptr, 0, 0, 0, nullptr, 0, 0, 0,
                               nullptr, 0, 0, 0),
            0);
}

TEST(Reference, DropsTheZerosOfPrunedWeights) {
  const double infinity = std::numeric_limits<double>::infinity();
  // Rows 1 and 2 of x meet a dropped and a kept weight.
  const double x[] = {1, infinity, 2, 3, -infinity, NAN};
  const double w[] = {4, 5, 0, 6, 7, 0};
  double y[] = {10, 20, 30, 40};
  ASSERT_EQ(
      nmsReferenceSparseMatmul(1, 2, 2, 3, x, 0, 3, 1, w, 0, 2, 1, y, 0, 2, 1),
      0);
  EXPECT_EQ(y[0], 10 + 4 + 14);
  EXPECT_EQ(y[1], infinity);
  EXPECT_TRUE(std::isnan(y[2]));
  EXPECT_EQ(y[3], -infinity);
  double dense[] = {0, 0, 0, 0};
  ASSERT_EQ(
      nmsReferenceMatmul(1, 2, 2, 3, x, 0, 3, 1, w, 0, 2, 1, dense, 0, 2, 1),
      0);
  EXPECT_TRUE(std::isnan(dense[0]));
  EXPECT_NE(
      nmsReferenceSparseMatmul(1, 1, -1, 1, x, 0, 1, 1, w, 0, 1, 1, y, 0, 1, 1),
      0);
}

} // namespace
