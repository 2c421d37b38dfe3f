//===- PredictClocksTest.cpp - which clock a product's time goes with -----===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CostModelFixture.h"

#include "nm_sparse/Analysis/PredictClocks.h"

using namespace mlir;
using namespace mlir::nm_sparse;

namespace {

TEST_F(CostModel, PartsAddUpToAboutThePrediction) {
  const Chip &chip = *findChip("sm_90a");
  size_t seen = 0;
  for (bool f16 : {false, true})
    for (int64_t tokens : {1, 16, 500, 4096})
      for (auto [schedule, prediction] :
           rankSchedules(problem(encoding(8, 32, 128), tokens, f16), chip)) {
        ClockParts parts = predictClockParts(
            problem(encoding(8, 32, 128), tokens, f16), schedule, chip);
        ASSERT_GT(parts.fixed, 0);
        ASSERT_GE(parts.core, 0);
        ASSERT_GT(parts.memory, 0);
        // Overlapped work shows in part.
        double most = parts.fixed + std::max(parts.core, parts.memory);
        EXPECT_LE(most, prediction.seconds * 1.02);
        EXPECT_GE(most, prediction.seconds * 0.5);
        ++seen;
      }
  EXPECT_GT(seen, 1000u);
}

TEST_F(CostModel, FasterMemoryShortensItsPartAlone) {
  const Chip &chip = *findChip("sm_90a");
  Chip twice = chip;
  twice.dramBytes *= 2;
  for (int64_t tokens : {1, 4096}) {
    MatmulProblem wide = problem(encoding(8, 32, 128), tokens, true);
    ScheduleAttr best = rankSchedules(wide, chip).front().first;
    ClockParts parts = predictClockParts(wide, best, chip);
    ClockParts faster = predictClockParts(wide, best, twice);
    EXPECT_NEAR(faster.memory / parts.memory, 0.5, 0.02);
    EXPECT_NEAR(faster.core / parts.core, 1, 1e-3);
    EXPECT_EQ(faster.fixed, parts.fixed);
  }
}

} // namespace
