//===- CombineWorkTest.cpp - work becomes time ----------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Analysis/CombineWork.h"
#include "gtest/gtest.h"

using namespace mlir::nm_sparse;

/// A wave, of CTAs with an SM each, takes 100 clocks for a step.
TEST(CombineWork, CountsWaves) {
  ProductCosts costs;
  costs.step = 100;
  costs.norm = 12;
  auto time = [&](double ctas, double streamK) {
    Work work;
    work.ctas = ctas;
    work.multiprocessors = 132;
    work.streamK = streamK;
    work.steps = 1;
    return combineWork(work, costs, {}).seconds / 100;
  };
  EXPECT_NEAR(time(1, 0), 1, 1e-9);
  EXPECT_NEAR(time(132, 0), 1, 1e-9);
  EXPECT_NEAR(time(140, 0), 2, 1e-9);
  EXPECT_NEAR(time(140, 1), 140.0 / 132, 1e-9);
  EXPECT_NEAR(time(280, 1), 280.0 / 132, 1e-9);
  // All of 140 are shared, and of 280 all but the first wave.
  costs.apart = 1;
  EXPECT_NEAR(time(140, 1), 2 * 140.0 / 132, 1e-9);
  EXPECT_NEAR(time(280, 1), (280.0 + 148) / 132, 1e-9);
  // A part of a last wave runs beside the one before.
  costs.lastWave = 0;
  EXPECT_NEAR(time(140, 0), 140.0 / 132, 1e-9);
}
