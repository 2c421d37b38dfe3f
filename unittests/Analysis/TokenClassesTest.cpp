//===- TokenClassesTest.cpp - which kernels serve which token counts ------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Analysis/TokenClasses.h"
#include "llvm/ADT/STLExtras.h"
#include "gtest/gtest.h"
#include <random>

using namespace mlir;
using namespace mlir::nm_sparse;

namespace {

/// Candidates for few and for many tokens, one in between, and a copy of the
/// first.
TokenCosts makeCosts() {
  return {{1, 2, 3, 4},
          {{1.0, 2.0, 4.0, 8.0},
           {3.0, 3.0, 3.0, 3.0},
           {1.5, 2.01, 3.02, 5.0},
           {1.0, 2.0, 4.0, 8.0}}};
}

TEST(TokenClasses, GridAscends) {
  SmallVector<int64_t> grid = getTokenGrid();
  EXPECT_TRUE(llvm::is_sorted(grid));
  EXPECT_EQ(std::unique(grid.begin(), grid.end()), grid.end());
  // Each candidate is held against the others where it is chosen.
  for (int64_t tokens : getCandidateTokens())
    EXPECT_TRUE(llvm::is_contained(grid, tokens)) << tokens;
}

TEST(TokenClasses, EqualCandidatesAreOne) {
  EXPECT_EQ(getDistinct(makeCosts()), (SmallVector<unsigned>{0, 1, 2}));
}

TEST(TokenClasses, FewestWithinTolerance) {
  TokenCosts costs = makeCosts();
  EXPECT_EQ(chooseCandidates(costs, {0, 1, 2}, 8, 0.0),
            (SmallVector<unsigned>{0, 1}));
  EXPECT_EQ(chooseCandidates(costs, {0, 1, 2}, 1, 0.0),
            (SmallVector<unsigned>{2}));
  EXPECT_EQ(chooseCandidates(costs, {0, 1, 2}, 8, 2.0).size(), 1u);
}

/// One token weighs as much as the numbers up to the next one would, and not as
/// little as one of many neighbours does.
TEST(TokenClasses, DoublingsCountAlike) {
  TokenCosts costs{{1, 8}, {{1.0, 1.0}, {1.5, 1.0}}};
  for (int64_t tokens = 1024; tokens <= 2048; tokens += 64) {
    costs.tokens.push_back(tokens);
    costs.scores[0].push_back(1.2);
    costs.scores[1].push_back(1.0);
  }
  EXPECT_EQ(chooseCandidates(costs, {0, 1}, 1, 0.0),
            (SmallVector<unsigned>{0}));
}

TEST(TokenClasses, RangesGoOnWithinTolerance) {
  TokenCosts costs = makeCosts();
  auto toPairs = [](ArrayRef<TokenRange> ranges) {
    SmallVector<std::pair<int64_t, unsigned>> pairs;
    for (TokenRange range : ranges)
      pairs.emplace_back(range.last, range.candidate);
    return pairs;
  };
  using Pairs = SmallVector<std::pair<int64_t, unsigned>>;
  EXPECT_EQ(toPairs(assignTokens(costs, {0, 1}, 0.0)), (Pairs{{2, 0}, {4, 1}}));
  EXPECT_EQ(toPairs(assignTokens(costs, {0, 1}, 0.4)), (Pairs{{3, 0}, {4, 1}}));
}

/// Whatever the costs: no more candidates than allowed, and within the
/// tolerance when as many as there are may be chosen.
TEST(TokenClasses, RandomCosts) {
  // The same numbers in every run.
  // NOLINTNEXTLINE(bugprone-random-generator-seed)
  std::mt19937 random(14);
  std::uniform_real_distribution<double> seconds(1.0, 2.0);
  for (int round = 0; round < 200; ++round) {
    TokenCosts costs;
    for (int64_t tokens = 1; tokens <= 20; ++tokens)
      costs.tokens.push_back(tokens);
    for (int candidate = 0; candidate < 7; ++candidate) {
      costs.scores.emplace_back();
      for (size_t i = 0; i < costs.tokens.size(); ++i)
        costs.scores.back().push_back(seconds(random));
    }
    SmallVector<unsigned> all = getDistinct(costs);
    SmallVector<unsigned> chosen = chooseCandidates(costs, all, 7, 0.05);
    for (size_t i = 0; i < costs.tokens.size(); ++i) {
      double best = 1e9;
      for (unsigned candidate : chosen)
        best = std::min(best, costs.scores[candidate][i]);
      EXPECT_LE(best, 1.05 * costs.getBest(i) + 1e-12);
    }
    EXPECT_LE(chooseCandidates(costs, all, 2, 0.05).size(), 2u);
    SmallVector<TokenRange> ranges = assignTokens(costs, chosen, 0.01);
    EXPECT_EQ(ranges.back().last, costs.tokens.back());
  }
}

} // namespace
