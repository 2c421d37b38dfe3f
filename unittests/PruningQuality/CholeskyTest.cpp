//===- CholeskyTest.cpp - solve positive definite systems -----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/PruningQuality/Cholesky.h"
#include "nm_sparse/PruningQuality/KeptQuality.h"
#include "gtest/gtest.h"
#include <cmath>
#include <random>

using namespace mlir::nm_sparse;

/// X^T X of a random X with `tokens` rows, and `ridge` on the diagonal.
static std::vector<double> makeGram(int64_t n, int64_t tokens, double ridge) {
  std::mt19937_64 generator(n);
  std::normal_distribution<double> normal;
  std::vector<double> a(n * n), x(n);
  for (int64_t t = 0; t < tokens; ++t) {
    for (double &value : x)
      value = normal(generator);
    for (int64_t i = 0; i < n; ++i)
      for (int64_t j = 0; j < n; ++j)
        a[i * n + j] += x[i] * x[j];
  }
  for (int64_t i = 0; i < n; ++i)
    a[i * n + i] += ridge;
  return a;
}

TEST(Cholesky, SolvesSystemsOfAnySize) {
  for (int64_t n : {0, 1, 2, 3, 63, 64, 65, 96, 129, 200, 331}) {
    std::vector<double> a = makeGram(n, n + 5, 1.0), u = a, x(n), b(n);
    for (int64_t i = 0; i < n; ++i)
      x[i] = std::sin(double(i + 1));
    for (int64_t i = 0; i < n; ++i)
      for (int64_t j = 0; j < n; ++j)
        b[i] += a[i * n + j] * x[j];
    // Below the diagonal nothing is read.
    for (int64_t i = 0; i < n; ++i)
      for (int64_t j = 0; j < i; ++j)
        u[i * n + j] = NAN;
    ASSERT_TRUE(factorCholesky(u, n)) << n;
    solveCholesky(u, n, b);
    for (int64_t i = 0; i < n; ++i)
      ASSERT_NEAR(b[i], x[i], 1e-9) << n << " " << i;
  }
}

TEST(Cholesky, RefusesWhatIsNotPositiveDefinite) {
  for (int64_t n : {1, 70, 130}) {
    std::vector<double> a = makeGram(n, n, 1.0), bad = a;
    bad[(n - 1) * n + n - 1] = -1;
    EXPECT_FALSE(factorCholesky(bad, n));
    bad = a;
    bad[n - 1] = n == 1 ? 0 : 1e9;
    EXPECT_FALSE(factorCholesky(bad, n));
    a[0] = NAN;
    EXPECT_FALSE(factorCholesky(a, n));
  }
}

TEST(DrawOutputs, AreDistinctAndTheSameEachTime) {
  std::vector<int64_t> drawn = drawOutputs(1000, 32);
  EXPECT_EQ(drawn.size(), 32u);
  EXPECT_TRUE(std::is_sorted(drawn.begin(), drawn.end()));
  EXPECT_EQ(std::adjacent_find(drawn.begin(), drawn.end()), drawn.end());
  EXPECT_EQ(drawn, drawOutputs(1000, 32));
  EXPECT_LT(drawn.back(), 1000);
  EXPECT_EQ(drawOutputs(3, 32), (std::vector<int64_t>{0, 1, 2}));
}
