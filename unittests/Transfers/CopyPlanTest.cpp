//===- CopyPlanTest.cpp - each chunk once, and in different banks ---------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Transfers/CopyPlan.h"

#include <gtest/gtest.h>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

using namespace mlir::nm_sparse;

namespace {

using Shape = CopyPlan::Shape;

std::string describe(const CopyPlan &plan) {
  const Shape &shape = plan.getShape();
  return "order " + std::to_string(static_cast<int>(plan.getOrder())) + ", " +
         std::to_string(shape.rows) + " x " + std::to_string(shape.columns) +
         " by " + std::to_string(shape.threads) + " threads, chunks of " +
         std::to_string(shape.width);
}

/// Rounds of `thread`, with the one that only stragglers have.
int64_t countRounds(const CopyPlan &plan, int64_t thread) {
  return plan.getRounds() + (thread < plan.getStragglers() ? 1 : 0);
}

/// Each chunk is copied by one thread in one round, whole and aligned to its
/// width.
void expectCovers(const CopyPlan &plan) {
  SCOPED_TRACE(describe(plan));
  const Shape &shape = plan.getShape();
  ASSERT_GE(plan.getStragglers(), 0);
  ASSERT_LE(plan.getCopiers(), shape.threads);
  ASSERT_LT(plan.getStragglers(), plan.getCopiers());
  std::map<std::pair<int64_t, int64_t>, int64_t> times;
  for (int64_t thread = 0; thread < plan.getCopiers(); ++thread)
    for (int64_t round = 0; round < countRounds(plan, thread); ++round) {
      // Stragglers take chunks by their number.
      ChunkPlace<int64_t> place =
          round < plan.getRounds()
              ? plan.getPlace(NumberMath(), thread, round)
              : plan.getPlaceOf(NumberMath(),
                                plan.getDigits(NumberMath(),
                                               thread + round * shape.threads));
      ASSERT_EQ(place.column % shape.width, 0);
      ASSERT_TRUE(place.row >= 0 && place.row < shape.rows);
      ASSERT_TRUE(place.column >= 0 &&
                  place.column + shape.width <= shape.columns);
      ++times[{place.row, place.column}];
    }
  ASSERT_EQ(static_cast<int64_t>(times.size()),
            shape.rows * shape.columns / shape.width);
  for (const auto &entry : times)
    ASSERT_EQ(entry.second, 1);
}

/// Expects offsets from round to round that are the same for all threads.
void expectOffsets(const CopyPlan &plan) {
  SCOPED_TRACE(describe(plan));
  if (!plan.hasOffsets())
    return;
  for (int64_t round = 0; round < plan.getRounds(); ++round)
    for (int64_t thread = 0; thread < plan.getShape().threads; ++thread) {
      ChunkPlace<int64_t> first = plan.getPlace(NumberMath(), thread, 0);
      ChunkPlace<int64_t> place = plan.getPlace(NumberMath(), thread, round);
      ChunkPlace<int64_t> offset = plan.getOffset(round);
      ASSERT_EQ(place.row, first.row + offset.row);
      ASSERT_EQ(place.column, first.column + offset.column);
    }
}

/// The rounds of the loop, whose induction variable is a chunk's number, are
/// those that are left out behind it.
void expectLoop(const CopyPlan &plan) {
  SCOPED_TRACE(describe(plan));
  int64_t looped = plan.getLoopedRounds();
  if (looped == 0)
    return;
  ASSERT_EQ(looped % plan.getBatch(), 0);
  ASSERT_LE(looped, plan.getRounds());
  int64_t threads = plan.getShape().threads;
  for (int64_t round = 0; round < looped; ++round)
    for (int64_t thread = 0; thread < threads; ++thread) {
      ChunkPlace<int64_t> inLoop = plan.getPlaceOf(
          NumberMath(), plan.getDigits(NumberMath(), thread + round * threads));
      ChunkPlace<int64_t> place = plan.getPlace(NumberMath(), thread, round);
      ASSERT_EQ(inLoop.row, place.row);
      ASSERT_EQ(inLoop.column, place.column);
    }
}

void expectAll(const CopyPlan &plan) {
  expectCovers(plan);
  expectOffsets(plan);
  expectLoop(plan);
}

/// The lane that a thread asks for the row of a row round has looked it up.
void expectLookups(const CopyPlan &plan) {
  SCOPED_TRACE(describe(plan));
  int64_t perLookup = plan.getRowRoundsOfLookup();
  for (int64_t thread = 0; thread < plan.getShape().threads; ++thread)
    for (int64_t i = 0; i < plan.getRowRounds(); ++i) {
      int64_t lane = plan.getLookupLane(NumberMath(), thread) +
                     i % perLookup * plan.getRowsTogether();
      ASSERT_LT(lane, 32);
      int64_t known = plan.getLookedUpRow(NumberMath(), thread / 32 * 32 + lane,
                                          i / perLookup * perLookup);
      int64_t round = i * plan.getRoundsOfRow();
      ASSERT_EQ(known, plan.getPlace(NumberMath(), thread, round).row);
    }
}

TEST(CopyPlan, ChunkByChunkCoversTilesOfAnyShape) {
  // NOLINTNEXTLINE(bugprone-random-generator-seed): the same in each run.
  std::mt19937 random(13);
  auto draw = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  };
  for (int i = 0; i < 300; ++i) {
    int64_t width = int64_t(1) << draw(0, 3);
    Shape shape{draw(1, 70), width * draw(1, 40), draw(1, 300), width};
    bool rowsFirst = width == 1 && draw(0, 1) == 1;
    expectAll(CopyPlan::chunkByChunk(shape, rowsFirst, draw(1, 8)));
  }
}

TEST(CopyPlan, ChunkByChunkGoesAlongRows) {
  // 64 x 64 elements of 2 bytes: 8 threads share a row, each stays in a column.
  CopyPlan plan = CopyPlan::chunkByChunk({64, 64, 128, 8}, false, 8);
  EXPECT_EQ(plan.getRounds(), 4);
  EXPECT_EQ(plan.getStragglers(), 0);
  EXPECT_EQ(plan.getLoopedRounds(), 0);
  EXPECT_TRUE(plan.hasOffsets());
  EXPECT_EQ(plan.getPlace(NumberMath(), 9, 0).row, 1);
  EXPECT_EQ(plan.getPlace(NumberMath(), 9, 0).column, 8);
  EXPECT_EQ(plan.getPlace(NumberMath(), 9, 3).row, 49);
  EXPECT_EQ(plan.getPlace(NumberMath(), 9, 3).column, 8);
}

TEST(CopyPlan, LongCopiesAreALoopOfWholeBatches) {
  CopyPlan plan = CopyPlan::chunkByChunk({100, 64, 32, 4}, false, 8);
  EXPECT_EQ(plan.getRounds(), 50);
  EXPECT_EQ(plan.getLoopedRounds(), 48);
  EXPECT_EQ(CopyPlan::chunkByChunk({32, 64, 32, 4}, false, 8).getLoopedRounds(),
            0);
}

/// Eight threads that write 16 bytes each share one access to shared memory.
TEST(CopyPlan, ChunksOfSwizzledRowsLieInDifferentBanks) {
  NumberMath math;
  for (int64_t columns : {64, 128, 192, 256})
    for (int64_t threads : {96, 128, 256}) {
      CopyPlan plan =
          CopyPlan::chunkByChunk({64, columns, threads, 8}, false, 8);
      for (int64_t thread = 0; thread < threads; thread += 8)
        for (int64_t round = 0; round < plan.getRounds(); ++round) {
          std::set<int64_t> words;
          for (int64_t i = 0; i < 8; ++i) {
            auto place = plan.getPlace(math, thread + i, round);
            int64_t key = getSwizzleKey(math, place.row, 2);
            words.insert((place.column ^ key) / 8 % 8);
          }
          ASSERT_EQ(words.size(), 8u) << describe(plan);
        }
    }
}

/// As ldmatrix reads them.
TEST(CopyPlan, EightSwizzledRowsOfAColumnLieInDifferentBanks) {
  for (int64_t column = 0; column < 64; column += 8) {
    std::set<int64_t> words;
    for (int64_t row = 16; row < 24; ++row)
      words.insert((column ^ getSwizzleKey(NumberMath(), row, 2)) / 8);
    EXPECT_EQ(words.size(), 8u);
    EXPECT_LT(*words.rbegin(), 8);
  }
}

/// Shapes that the orders for special tiles are asked for, drawn so that many
/// of them divide.
std::vector<Shape> drawShapes(int64_t count, int64_t mostWidth) {
  // NOLINTNEXTLINE(bugprone-random-generator-seed): the same in each run.
  std::mt19937 random(7);
  auto draw = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  };
  std::vector<Shape> shapes;
  for (int64_t i = 0; i < count; ++i) {
    int64_t width = int64_t(1) << draw(0, mostWidth);
    shapes.push_back({4 * draw(1, 64), width * (int64_t(1) << draw(0, 6)),
                      32 * draw(1, 12), width});
  }
  return shapes;
}

TEST(CopyPlan, InterleavedCoversWhatItAccepts) {
  int64_t accepted = 0;
  for (const Shape &shape : drawShapes(400, /*mostWidth=*/1))
    if (auto plan = CopyPlan::interleaved(shape, 8)) {
      ++accepted;
      expectAll(*plan);
    }
  EXPECT_GT(accepted, 10);
  EXPECT_FALSE(CopyPlan::interleaved({12, 64, 64, 1}, 8));
  EXPECT_FALSE(CopyPlan::interleaved({16, 64, 64, 2}, 8));
}

TEST(CopyPlan, InterleavedWritesToDifferentBanksOfPaddedRows) {
  int64_t accepted = 0;
  for (const Shape &shape : drawShapes(400, /*mostWidth=*/0)) {
    auto plan = CopyPlan::interleaved(shape, 8);
    if (!plan || shape.columns % 32 != 0)
      continue;
    ++accepted;
    SCOPED_TRACE(describe(*plan));
    for (int64_t warp = 0; warp < shape.threads; warp += 32)
      for (int64_t round = 0; round < plan->getRounds(); ++round) {
        std::set<int64_t> banks;
        std::map<int64_t, std::set<int64_t>> rowsOfColumn;
        for (int64_t lane = 0; lane < 32; ++lane) {
          auto place = plan->getPlace(NumberMath(), warp + lane, round);
          banks.insert((place.row * (shape.columns + 4) + place.column) % 32);
          rowsOfColumn[place.column].insert(place.row);
        }
        ASSERT_EQ(banks.size(), 32u);
        // A sector of the source: 8 neighbours, aligned.
        ASSERT_EQ(rowsOfColumn.size(), 4u);
        for (const auto &[column, rows] : rowsOfColumn) {
          ASSERT_EQ(rows.size(), 8u);
          ASSERT_EQ(*rows.begin() % 8, 0);
          ASSERT_EQ(*rows.rbegin() - *rows.begin(), 7);
        }
      }
  }
  EXPECT_GT(accepted, 10);
}

TEST(CopyPlan, WholeRowsCoversWhatItAccepts) {
  int64_t accepted = 0;
  for (const Shape &shape : drawShapes(400, /*mostWidth=*/2))
    if (auto plan = CopyPlan::wholeRows(shape)) {
      ++accepted;
      expectAll(*plan);
      expectLookups(*plan);
    }
  EXPECT_GT(accepted, 30);
  EXPECT_FALSE(CopyPlan::wholeRows({16, 64, 48, 4}));
  EXPECT_FALSE(CopyPlan::wholeRows({17, 256, 64, 4}));
}

TEST(CopyPlan, WholeRowsLeavesWarpsTheirRows) {
  // Rows of 64 chunks: each lane has two of a row, and the warps take turns.
  auto plan = CopyPlan::wholeRows({16, 256, 64, 4});
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->getRoundsOfRow(), 2);
  EXPECT_EQ(plan->getRowRounds(), 8);
  for (int64_t thread = 0; thread < 64; ++thread)
    for (int64_t round = 0; round < plan->getRounds(); ++round)
      EXPECT_EQ(plan->getPlace(NumberMath(), thread, round).row % 2,
                thread / 32);
}

TEST(CopyPlan, LinesCoverWhatTheyAccept) {
  int64_t accepted = 0;
  for (int64_t rows : {16, 48, 64, 128, 192, 256})
    for (int64_t columns : {64, 128, 192, 256, 320})
      for (int64_t threads : {32, 128, 256, 384})
        for (int64_t width : {2, 8}) {
          Shape shape{rows, columns, threads, width};
          auto plan = CopyPlan::lines(shape, 64, 4);
          if (!plan)
            continue;
          ++accepted;
          expectAll(*plan);
          EXPECT_EQ(plan->getStragglers(), 0) << describe(*plan);
          EXPECT_TRUE(plan->hasOffsets()) << describe(*plan);
        }
  EXPECT_GT(accepted, 150);
  // Rows that are no lines, and more rows of a thread than go without a loop.
  EXPECT_FALSE(CopyPlan::lines({64, 96, 128, 8}, 64, 4));
  EXPECT_FALSE(CopyPlan::lines({256, 64, 32, 8}, 64, 4));
}

TEST(CopyPlan, LinesOfARowHaveOneThread) {
  // 24 chunks of a row: each eight threads take a row, and all of its lines.
  auto plan = CopyPlan::lines({64, 192, 128, 8}, 64, 4);
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->getCopiers(), 128);
  EXPECT_EQ(plan->getLineRows(), 16);
  EXPECT_EQ(plan->getLinesOfRow(), 3);
  EXPECT_EQ(plan->getRounds(), 12);
  EXPECT_EQ(plan->getPlace(NumberMath(), 9, 0).row, 1);
  EXPECT_EQ(plan->getPlace(NumberMath(), 9, 0).column, 8);
  EXPECT_EQ(plan->getPlace(NumberMath(), 9, 2).row, 1);
  EXPECT_EQ(plan->getPlace(NumberMath(), 9, 2).column, 136);
  EXPECT_EQ(plan->getPlace(NumberMath(), 9, 3).row, 17);
  EXPECT_EQ(plan->getPlace(NumberMath(), 9, 3).column, 8);
}

/// Twelve warps would have 48 rows at a time, which 64 are no multiple of.
TEST(CopyPlan, LinesLeaveThreadsOut) {
  auto plan = CopyPlan::lines({64, 128, 384, 8}, 64, 4);
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->getLineRows(), 32);
  EXPECT_EQ(plan->getCopiers(), 256);
}

/// Eight threads that write 16 bytes each share one access to shared memory.
TEST(CopyPlan, ChunksOfLinesLieInDifferentBanks) {
  for (int64_t threads : {32, 96, 128, 256}) {
    auto plan = CopyPlan::lines({48, 192, threads, 8}, 64, 4);
    ASSERT_TRUE(plan);
    for (int64_t thread = 0; thread < plan->getCopiers(); thread += 8)
      for (int64_t round = 0; round < plan->getRounds(); ++round) {
        std::set<int64_t> words;
        for (int64_t i = 0; i < 8; ++i) {
          auto place = plan->getPlace(NumberMath(), thread + i, round);
          int64_t key = getSwizzleKey(NumberMath(), place.row, 2);
          words.insert((place.column ^ key) / 8 % 8);
        }
        ASSERT_EQ(words.size(), 8u) << describe(*plan);
      }
  }
}

} // namespace
