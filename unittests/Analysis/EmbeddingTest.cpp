//===- EmbeddingTest.cpp - patterns that hold another pattern -------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Dialect/NMSparse/Utils/Embedding.h"
#include "mlir/IR/MLIRContext.h"
#include "gtest/gtest.h"
#include <numeric>

using namespace mlir;
using namespace mlir::nm_sparse;

namespace {

/// The most rows that any legal weight keeps of `rows` aligned ones: all
/// choices of blocks are tried.
int64_t tryAll(const SparsityLevel &level, int64_t rows) {
  int64_t most = 0, period = std::lcm(level.getWindowRows(), rows);
  for (int64_t first = 0; first < period; first += rows) {
    int64_t kept = 0;
    for (int64_t window = 0; window < period; window += level.getWindowRows()) {
      int64_t best = 0;
      for (unsigned blocks = 0; blocks < (1u << level.m); ++blocks) {
        if (llvm::popcount(blocks) != level.n)
          continue;
        int64_t count = 0;
        for (int64_t row = first; row < first + rows; ++row) {
          int64_t at = row - window;
          count += at >= 0 && at < level.getWindowRows() &&
                   (blocks >> (at / level.blockK) & 1);
        }
        best = std::max(best, count);
      }
      kept += best;
    }
    most = std::max(most, kept);
  }
  return most;
}

TEST(Embedding, CountsWhatAnyWeightMayKeep) {
  for (int64_t m = 1; m <= 9; ++m)
    for (int64_t n = 1; n <= m; ++n)
      for (int64_t blockK : {1, 2, 3, 4, 7})
        for (int64_t rows : {1, 2, 4, 5}) {
          SparsityLevel level{n, m, blockK, 1};
          EXPECT_EQ(getMostKept(level, rows), tryAll(level, rows))
              << n << ":" << m << ", block of " << blockK << ", of " << rows;
        }
}

TEST(Embedding, TwoOfFour) {
  MLIRContext context;
  context.loadDialect<NMSparseDialect>();
  auto embeds = [&](ArrayRef<SparsityLevel> levels) {
    return alwaysEmbeds(
        EncodingAttr::get(&context, levels, 0, OutputOrder::Identity), {2, 4});
  };
  for (SparsityLevel level : {SparsityLevel{1, 2},
                              {1, 3},
                              {1, 4},
                              {2, 4},
                              {2, 8},
                              {1, 16},
                              {2, 12},
                              {1, 2, 2, 1},
                              {1, 4, 1, 128}})
    EXPECT_TRUE(embeds(level)) << level.n << ":" << level.m;
  for (SparsityLevel level : {SparsityLevel{1, 1},
                              {4, 8},
                              {2, 5},
                              {2, 6},
                              {3, 16},
                              {1, 2, 4, 1},
                              {1, 3, 2, 1}})
    EXPECT_FALSE(embeds(level)) << level.n << ":" << level.m;
  EXPECT_FALSE(embeds(SparsityLevel{0, 0}));
}

/// The elements that the inner level keeps of each window of the outer one
/// decide, whatever the panels are.
TEST(Embedding, TwoLevels) {
  MLIRContext context;
  context.loadDialect<NMSparseDialect>();
  auto get = [&](ArrayRef<SparsityLevel> levels) {
    return EncodingAttr::get(&context, levels, 0, OutputOrder::Identity);
  };
  for (int64_t panel : {1, 30, 64})
    for (int64_t m : {4, 5, 8, 10, 16, 18, 20}) {
      EncodingAttr encoding = get({{4, m, 1, panel}, {2, 4}});
      EXPECT_EQ(getElementLevel(encoding), (SparsityLevel{2, m}));
      EXPECT_EQ(alwaysEmbeds(encoding, {2, 4}), m % 4 == 0) << m;
      EXPECT_TRUE(alwaysEmbeds(encoding, {2, m})) << m;
    }
  EncodingAttr blocks = get({{4, 8, 2, 64}, {1, 4, 2, 1}});
  EXPECT_EQ(getElementLevel(blocks), (SparsityLevel{2, 16}));
  EXPECT_TRUE(alwaysEmbeds(blocks, {2, 4}));
}

/// The longest windows are counted as fast as others.
TEST(Embedding, LongWindows) {
  EXPECT_EQ(getMostKept({2, 65536}, 4), 2);
  EXPECT_EQ(getMostKept({3, 65535}, 4), 4);
}

} // namespace
